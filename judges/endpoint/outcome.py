"""The outcome of a request, and the callables by which protocols reach an engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final, Generic, Literal, Protocol, TypedDict, TypeVar

from lmms_eval_captions.judges.endpoint.request import Reply, Request

T = TypeVar("T")
R = TypeVar("R")

UNREADABLE: Final = "unreadable reply"
"""Start of the reason of a request whose replies were all unreadable; they are kept."""
Failure = Literal["unreadable", "refused", "unavailable", "silent", "stopped"]
"""Kind of failure: no readable reply, refused by the endpoint, no reply, no reply to any request,
or nothing more is asked of the model."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens; replies from the store count as nothing."""

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused: tuple[str, ...] = ()
    """Parameters that the model refused, such as ``seed``, of stored replies too."""
    served: tuple[str, ...] = ()
    """Names under which it answered, if they say more than the name asked for."""

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
    """The part of a judgement that comes from its requests."""

    reply: str
    reason: str | None
    cached: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """The outcome of one request."""

    value: T | None
    """The value that was read; ``None`` if the request is unscored."""
    reply: str
    """The judge's raw text, the last one if it was asked again; empty if none came."""
    reason: str | None
    """Why there is no value."""
    cached: bool
    """Whether every reply came from the store."""
    usage: Usage
    failure: Failure | None = None
    """Kind of failure; ``None`` if there is a value."""

    def outcome(self, *earlier: Asked[Any]) -> Outcome:
        """Return the outcome of this request and of the steps before it."""
        steps = (*earlier, self)
        return {
            "reply": self.reply,
            "reason": self.reason,
            "cached": all(step.cached for step in steps),
            "usage": reduce(add, (step.usage for step in steps)),
        }

    def no_answer(self) -> Outcome:
        """Return the outcome of a first step that gave no answer, so that it is the last."""
        return {**self.outcome(), "reason": f"no answer from the caption: {self.reason}"}


class Ask(Protocol):
    """Puts one request to the judge; several may be gathered."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Ask, read the reply, and ask afresh if it cannot be read. Never raises."""


About = bytes | Sequence[bytes] | None
"""Digest of the caption that chains are about, or one for each of them."""
Chain = Callable[[Ask], Awaitable[R]]
"""The requests of one question, one after the other or several at once, up to its result."""
