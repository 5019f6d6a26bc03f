"""The results of chains as they come in, and what of them is there when time is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError

R = TypeVar("R")
T = TypeVar("T")

OVER = "the time for it was over"


class AnswersInTime(Generic[R]):
    """Chains whose results can be had before all are there.

    What was sent by then is answered and stored all the same; nothing more is sent.

    Args:
        chains: As an engine takes them.
    """

    def __init__(self, chains: Sequence[Chain[Sequence[R]]]) -> None:
        self._results: list[Sequence[R]] = [()] * len(chains)
        self._is_over = False
        self.chains = [partial(self._run, index, chain) for index, chain in enumerate(chains)]
        """The same for the engine."""

    def end(self) -> list[Sequence[R]]:
        """Each chain's result, empty where it is not there; nothing more is sent."""
        self._is_over = True
        return list(self._results)

    async def _run(self, index: int, chain: Chain[Sequence[R]], ask: Ask) -> Sequence[R]:
        result = await chain(_AskInTime(ask, lambda: self._is_over))
        self._results[index] = result
        return result


class _AskInTime:
    """Asks as another does, until time is over."""

    def __init__(self, ask: Ask, is_over: Callable[[], bool]) -> None:
        self._ask = ask
        self._is_over = is_over

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        if self._is_over():
            raise JudgeStoppedError(OVER)
        return await self._ask(request, read)
