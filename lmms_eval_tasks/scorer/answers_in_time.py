"""The results of chains as they come in, and what of them is there when time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Generic, TypeVar

from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.outcome import NO_USAGE, Asked
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.errors import TooLateError

R = TypeVar("R")
T = TypeVar("T")

OVER: Final = str(TooLateError())
"""Why a question is unscored whose time was over."""


class AnswersInTime(Generic[R]):
    """Chains whose results can be had before all are there.

    What is on the wire when time is over is answered and stored all the same. Nothing more is sent
    then: neither what waits for its turn, nor a second step, nor what is to be sent again.

    Args:
        chains: As an engine takes them.
        until_s: When time is over, by :func:`time.monotonic`.
    """

    def __init__(self, chains: Sequence[Chain[Sequence[R]]], until_s: float) -> None:
        self._results: list[Sequence[R]] = [()] * len(chains)
        self._until_s = until_s
        self.chains = [partial(self._run, index, chain) for index, chain in enumerate(chains)]
        """The same for the engine."""

    def so_far(self) -> list[Sequence[R]]:
        """Each chain's result, empty where it is not there."""
        return list(self._results)

    async def _run(self, index: int, chain: Chain[Sequence[R]], ask: Ask) -> Sequence[R]:
        result = await chain(_AskInTime(ask, self._until_s))
        self._results[index] = result
        return result


class _AskInTime:
    """Asks as another does, until time is over."""

    def __init__(self, ask: Ask, until_s: float) -> None:
        self._ask = ask
        self._until_s = until_s

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        if time.monotonic() >= self._until_s:
            return Asked(None, "", OVER, cached=False, usage=NO_USAGE, failure="unavailable")
        return await self._ask(replace(request, until_s=self._until_s), read)
