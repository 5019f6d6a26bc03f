"""video-SALMONN 2's test set (arXiv 2506.15220): events that a caption misses, mistakes or invents.

One request per caption. Prompts are ours; the authors' are in their repository.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Reply
from lmms_eval_captions.judges.protocols.asking import (
    JudgeConfig,
    object_schema,
    recall,
    request_of,
)
from lmms_eval_captions.judges.protocols.json_reading import read_json
from lmms_eval_captions.judges.verdict import Judgement

_PARTS: Final = ("missed", "incorrect", "hallucinated")
_MOST: Final = 200
_STRINGS: Final = {"type": "array", "items": {"type": "string"}}
_SCHEMA: Final = object_schema(missed=_STRINGS, incorrect=_STRINGS, hallucinated=_STRINGS)
_NOTHING: Final = ("none", "n/a", "null", "nothing", "")
"""Texts that stand for an empty list, and are no event."""
_REPEATED: Final = re.compile(r"\b(\w[^\n]{0,200}?[.!?]?)(?!\w)(?:[\s,;\"'*-]+\1(?!\w)){2,}")


@dataclass(frozen=True, slots=True)
class BaseEvents:
    """Question about a caption: the events of the clip."""

    events: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorJudgement(Judgement):
    """Errors of one caption, in events."""

    n_events: int
    missed: int | None
    """Base events that the caption misses; ``None`` is unscored, as are the others then."""
    incorrect: int | None
    """Base events that the caption describes wrongly."""
    hallucinated: int | None
    """Events of the caption that are not in the clip."""


async def judge_errors(
    ask: Ask, question: BaseEvents, caption: str, *, config: JudgeConfig, run: int
) -> ErrorJudgement:
    """Count the errors of one caption."""
    caption = collapse_repetitions(caption)
    listed = "\n".join(f"{number}. {event}" for number, event in enumerate(question.events, 1))

    def stand_in() -> str:
        missed = [event for event in question.events if recall(event, caption) < 0.5]
        return json.dumps({"missed": missed, "incorrect": [], "hallucinated": []})

    request = request_of(
        "salmonn2_errors",
        config.prompts.load("salmonn2_errors").render(caption=caption, events=listed),
        config=config,
        seed=run,
        stand_in=stand_in,
        schema=_SCHEMA,
    )
    n = len(question.events)
    asked = await ask(request, lambda reply: read_errors(reply, n))
    missed, incorrect, hallucinated = asked.value or (None, None, None)
    return ErrorJudgement(
        run=run,
        n_events=n,
        missed=missed,
        incorrect=incorrect,
        hallucinated=hallucinated,
        **asked.outcome(),
    )


def silent_errors(question: BaseEvents, run: int) -> ErrorJudgement:
    """Return the judgement of an empty caption: it misses every event."""
    n = len(question.events)
    return ErrorJudgement(run=run, n_events=n, missed=n, incorrect=0, hallucinated=0)


def read_errors(reply: Reply, n_events: int) -> tuple[int, int, int] | None:
    """Return the counts of missed, incorrect and hallucinated events; ``None`` if unreadable.

    A part is a list of events, a count, or an object with both, which must agree.

    >>> text = '{"missed": ["he falls"], "incorrect": 0, "hallucinated": []}'
    >>> read_errors(Reply(text, "stop"), 3)
    (1, 0, 0)
    >>> read_errors(Reply(text, "stop"), 0) is None
    True
    """

    def convert(value: object) -> tuple[int, int, int] | None:
        if not isinstance(value, dict):
            return None
        named = {str(key).lower().removesuffix("_events"): of for key, of in value.items()}
        if len(named) < len(value):
            return None
        missed, incorrect, hallucinated = (_count(named.get(part)) for part in _PARTS)
        if missed is None or incorrect is None or hallucinated is None:
            return None
        if missed + incorrect > n_events or hallucinated > _MOST:
            return None
        return missed, incorrect, hallucinated

    return read_json(reply, convert)


def _count(part: object) -> int | None:
    if isinstance(part, list):
        texts = [text.strip().lower() for text in part if isinstance(text, str)]
        if any(text in _NOTHING for text in texts):
            return 0 if len(part) == 1 and texts[0] else None
        return len(part)
    if isinstance(part, int) and not isinstance(part, bool):
        return part if part >= 0 else None
    if isinstance(part, dict):
        counts = {n for value in part.values() if (n := _count(value)) is not None}
        return counts.pop() if len(counts) == 1 else None
    return None


def collapse_repetitions(text: str) -> str:
    """Return a text in which a phrase that follows itself at least twice stands once.

    >>> collapse_repetitions("He runs. He runs. He runs. Then he stops.")
    'He runs. Then he stops.'
    >>> collapse_repetitions("There is no no none.")
    'There is no no none.'
    """
    return _REPEATED.sub(r"\1", text)
