"""What a judge said: the records that protocols fill and metrics read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

Match = Literal["yes", "no"]
"""Whether a predicted answer matches the gold answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one or more calls were billed for in this run; calls from the store cost none."""

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.n_calls + other.n_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """The outcome of one request: a value read from the reply, or why there is none."""

    value: T | None
    """What the reply was read as, ``None`` where the request is unscored."""
    reply: str
    """The judge's raw text, the last one where it was asked again; empty where none came."""
    reason: str | None
    """Why there is no value, ``None`` where there is one."""
    cached: bool
    """Whether every reply came from the store."""
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What every benchmark's judgement of one question holds."""

    run: int
    """Judge run, which is its seed, >= 0."""
    reply: str
    """Raw text that the verdict was read from."""
    reason: str | None
    """Why the question is unscored, else ``None``."""
    cached: bool
    """Whether every reply came from the store."""
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchJudgement(Judgement):
    """VDC: one question answered from the caption, and the answer matched with the gold one."""

    question: str
    answer: str
    """Gold answer."""
    predicted_answer: str | None
    """The judge's answer from the caption alone, ``None`` where it gave none."""
    verdict: Match | None
    """``None`` is unscored."""
    score: float | None
    """Quality of the match in [0, 5]; for ROUGE matching in [0, 1]. ``None`` is unscored."""
