"""What came of a request: a value read from its replies, or why there is none, and what it took."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final, Generic, Literal, TypedDict, TypeVar

T = TypeVar("T")

UNREADABLE: Final = "unreadable reply"
"""How the reason of a request starts whose replies were all unreadable: they are kept."""


Failure = Literal["unreadable", "refused", "unavailable", "silent", "stopped"]
"""Why a request has no value: no reply can be read, the endpoint refuses this one request, no reply
came, none to any request, or nothing more is asked of the model."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or more calls took; those that the store answered were billed for nothing."""

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused: tuple[str, ...] = ()
    """Parameters that the model does not take, such as ``seed``, also of replies in the store."""
    served: tuple[str, ...] = ()
    """Names under which it answered, where they say more than what was asked for (a version)."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.n_calls + other.n_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            _merged(self.refused, other.refused),
            _merged(self.served, other.served),
        )


NO_USAGE: Final = Usage()


def _merged(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *others))) if others else names


class Outcome(TypedDict):
    """What a judgement keeps of the requests that it was read from."""

    reply: str
    reason: str | None
    cached: bool
    usage: Usage


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
    failure: Failure | None = None
    """Which kind of reason it is, ``None`` where there is a value."""

    def outcome(self, *earlier: Asked[Any]) -> Outcome:
        """What a judgement keeps of this request and of the steps before it."""
        steps = (*earlier, self)
        return {
            "reply": self.reply,
            "reason": self.reason,
            "cached": all(step.cached for step in steps),
            "usage": reduce(add, (step.usage for step in steps)),
        }

    def no_answer(self) -> Outcome:
        """What a judgement keeps of a first step that gave no answer, so that it is the last."""
        return {**self.outcome(), "reason": f"no answer from the caption: {self.reason}"}
