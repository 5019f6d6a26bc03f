"""Endpoints that are not what they say: each is the honest judge but for one thing."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from judge_server import Say, last_text
from reading_judge import ReadingJudge

Script = Callable[[dict[str, Any]], Say]
SALT: Final = 1
"""Of the honest judge, from whose record impostors are told."""


def honest(seed: int = 0, *, flips: float = 0.0) -> Script:
    """The judge itself; it may differ from itself now and then, as real ones do.

    Args:
        seed: Draws what chance decides.
        flips: Share of its verdicts that chance turns.
    """
    return ReadingJudge(salt=SALT, flips=flips, chance=random.Random(seed))


def another_model(seed: int) -> Script:
    """A weaker model under the same name, with a tokenizer of its own."""
    return ReadingJudge(
        salt=100 + seed,
        differs=0.06,
        guesses=0.4,
        n_tokens=lambda text: len(re.findall(r"\w{1,4}|[^\w\s]", text)) + 4,
    )


def quantised_twin(seed: int, *, differs: float = 0.05) -> Script:
    """The same model in fewer bits: other verdicts on one question in twenty, nothing else.

    Args:
        seed: Another twin for another seed.
        differs: Share of questions with other verdicts.
    """
    return ReadingJudge(salt=SALT, twin=seed + 1, differs=differs, shift=0.1)


def truncating_proxy(seed: int) -> Script:
    """Prompts reach the judge without their end or their middle, or replies come back cut."""
    cuts: list[dict[str, Any]] = [
        {"visible": lambda prompt: prompt[:1500]},
        {"visible": lambda prompt: prompt[:1200] + prompt[-600:] if len(prompt) > 1800 else prompt},
        {"visible": lambda prompt: prompt[-2000:], "counts_visible": False},
        {"shown": lambda text: (text[:40], "length" if len(text) > 40 else "stop")},
        {"shown": lambda text: (text[:120], "stop")},
    ]
    return replace(ReadingJudge(salt=SALT), **cuts[seed % len(cuts)])


def always_warm(seed: int) -> Script:
    """Whatever temperature is asked for, it samples at 1."""
    return ReadingJudge(salt=SALT, always_samples=True, flips=0.03, chance=random.Random(seed))


@dataclass(slots=True)
class StaleCache:
    """A proxy that has replies of its own to what looks like an earlier request."""

    judge: ReadingJudge
    key: Callable[[dict[str, Any]], str]
    kept: dict[str, Say] = field(default_factory=dict)

    def __call__(self, payload: dict[str, Any]) -> Say:
        """The kept answer, word for word, its id included; else the judge's."""
        name = self.key(payload)
        if name not in self.kept:
            self.kept[name] = self.judge(payload)
        return self.kept[name]


def stale_cache(seed: int) -> Script:
    """Replies of earlier requests: whatever the seed, the temperature or the numbers in it."""
    keys: list[Callable[[dict[str, Any]], str]] = [
        last_text,
        lambda payload: re.sub(r"\d+", "#", last_text(payload)),
        lambda payload: json.dumps([last_text(payload), payload.get("temperature")]),
    ]
    return StaleCache(ReadingJudge(salt=SALT), keys[seed % len(keys)])


IMPOSTORS: Final[dict[str, Callable[[int], Script]]] = {
    "another model": another_model,
    "quantised twin": quantised_twin,
    "truncating proxy": truncating_proxy,
    "temperature 1": always_warm,
    "stale cache": stale_cache,
}
