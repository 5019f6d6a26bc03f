"""What a protocol is handed to reach a judge with, and what it hands an engine to run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.request import Reply, Request

T = TypeVar("T")
R = TypeVar("R")


class Ask(Protocol):
    """How a protocol puts one request to the judge; several may be gathered."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Ask, read the reply, and ask afresh where it cannot be read. Never raises."""


About = bytes | Sequence[bytes] | None
"""What tells the caption that chains are about from others, such as a digest, or that of each of
them; ``None`` where they are about none, or it does not matter."""
Chain = Callable[[Ask], Awaitable[R]]
"""The requests of one question, one after the other or several at once, up to its result."""
