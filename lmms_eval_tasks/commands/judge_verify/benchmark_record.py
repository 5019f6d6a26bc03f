"""What a judge said of one benchmark's anchors, and what is read of it: every type is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, Final, get_args

from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.probe_facts import ProbeFacts, Seed
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.reply_form import StepForm
from lmms_eval_captions.lmms_eval_tasks.verified_judges import FINGERPRINT

UNREADABLE: Final = "unreadable"
"""Stands for the verdict where the first reply to a request could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRecord:
    """What a judge said of one benchmark's anchors."""

    protocol: int
    prompts: str
    """What tells the prompts from others, empty for those of the papers."""
    anchors: str
    """Digest of the planted facts."""
    verdicts: Mapping[str, str]
    """Anchor to verdict, :data:`UNREADABLE` where there was none."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Anchor to its finer reading, of benchmarks that have one."""
    form: Mapping[str, StepForm] = field(default_factory=dict)
    """Prompt to what its replies look like."""

    def fingerprint(self, model: str, served: tuple[str, ...]) -> str:
        """Eight digits that stand for the judge that said so.

        Args:
            model: Its name.
            served: The names under which it answered.
        """
        said = [model, served, self.protocol, self.prompts, self.anchors]
        text = json.dumps([*said, sorted(self.verdicts.items())])
        return hashlib.blake2b(text.encode("ascii"), digest_size=4).hexdigest()


def benchmark_record(found: Mapping[str, Any]) -> BenchmarkRecord:
    """A benchmark's part of a record, as JSON has it.

    Raises:
        TypeError: If something in it is not what it should be; ``ValueError``, ``LookupError`` or
            ``AttributeError`` also.
    """
    known = {each.name for each in fields(BenchmarkRecord)}
    if set(found) != known:
        raise ValueError(f"expected {', '.join(sorted(known))}, got {', '.join(found)[:200]}")
    return BenchmarkRecord(
        protocol=_whole(found["protocol"]),
        prompts=text(found["prompts"]),
        anchors=text(found["anchors"]),
        verdicts={name: text(verdict) for name, verdict in found["verdicts"].items()},
        numbers={name: _number(number) for name, number in found["numbers"].items()},
        form={
            step: StepForm(**{name: _number(number) for name, number in form.items()})  # type: ignore[arg-type]  # n is whole
            for step, form in found["form"].items()
        },
    )


def probe_facts(found: Mapping[str, Any]) -> ProbeFacts:
    """What of the probes is compared, as JSON has it.

    Raises:
        TypeError: As :func:`benchmark_record`.
    """
    facts = ProbeFacts(**found)
    tokens = {name: _whole(number) for name, number in facts.tokens.items()}
    if facts.seed not in get_args(Seed) or facts.has_logprobs not in (True, False, None):
        raise ValueError(f"probes are {str(found)[:200]!r}")
    return ProbeFacts(tokens, facts.seed, facts.has_logprobs)


def text(found: object) -> str:
    """The same.

    Raises:
        TypeError: If it is no text.
    """
    if not isinstance(found, str):
        raise TypeError(f"expected a text, got {str(found)[:100]!r}")
    return found


def texts(found: object) -> tuple[str, ...]:
    """A list of them.

    Raises:
        TypeError: If it is none.
    """
    if not isinstance(found, list | tuple):
        raise TypeError(f"expected a list, got {str(found)[:100]!r}")
    return tuple(map(text, found))


def fingerprint(found: object) -> str:
    """Eight digits.

    Raises:
        TypeError: If it is no text.
        ValueError: If it is another one.
    """
    digits = text(found)
    if not digits or not FINGERPRINT.fullmatch(digits):
        raise ValueError(f"expected a fingerprint of eight digits, got {digits[:40]!r}")
    return digits


def _whole(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"expected a whole number, got {str(found)[:100]!r}")
    return found


def _number(found: object) -> float:
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if not isinstance(found, int | float) or not is_number or not isfinite(found):
        raise TypeError(f"expected a number, got {str(found)[:100]!r}")
    return found
