"""The results of chains as they come in, and what of them is there when time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Generic, TypeVar

from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.errors import TooLateError
from lmms_eval_captions.judges.verdict import Judgement

J = TypeVar("J", bound=Judgement)
T = TypeVar("T")

OVER: Final = str(TooLateError())
"""Why a question is unscored whose time was over."""


class AnswersInTime(Generic[J]):
    """Chains whose results can be had before all are there.

    What is on the wire when time is over is answered and stored all the same. Nothing more is sent
    then: neither what waits for its turn, nor a second step, nor what is to be sent again.

    Args:
        chains: As an engine takes them.
        until_s: When time is over, by :func:`time.monotonic`.
    """

    def __init__(self, chains: Sequence[Chain[Sequence[J]]], until_s: float) -> None:
        self._results: list[Sequence[J]] = [()] * len(chains)
        self._until_s = until_s
        self.chains = [partial(self._run, index, chain) for index, chain in enumerate(chains)]
        """The same for the engine; a chain that was too late gives nothing."""
        self.is_late = False
        """Whether one was."""

    def so_far(self) -> list[Sequence[J]]:
        """Each chain's result, empty where it is not there."""
        return list(self._results)

    async def _run(self, index: int, chain: Chain[Sequence[J]], ask: Ask) -> Sequence[J]:
        in_time = _AskInTime(ask, self._until_s)
        result = await chain(in_time)
        if in_time.is_late and any(judgement.reason is not None for judgement in result):
            self.is_late = True
            return ()
        self._results[index] = result
        return result


class _AskInTime:
    """Asks as another does, until time is over."""

    def __init__(self, ask: Ask, until_s: float) -> None:
        self._ask = ask
        self._until_s = until_s
        self.is_late = False
        """Whether a request was not sent for want of time."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        if time.monotonic() < self._until_s:
            asked = await self._ask(replace(request, until_s=self._until_s), read)
        else:
            asked = Asked(None, "", OVER, cached=False, usage=NO_USAGE, failure="unavailable")
        self.is_late = self.is_late or asked.reason == OVER
        return asked
