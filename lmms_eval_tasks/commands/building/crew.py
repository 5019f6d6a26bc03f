"""The models of a build at work: as many requests as their endpoints take, every reply kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.endpoint.adapt import added_params
from lmms_eval_captions.judges.endpoint.cost import Purse
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import NO_USAGE, Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.building.tally import Tally
from lmms_eval_captions.lmms_eval_tasks.named_models import Model
from lmms_eval_captions.model_wrappers.paid_endings import finishing

R = TypeVar("R")
T = TypeVar("T")

FINISH_S: Final = 30.0
"""How long replies that are paid for are waited for where a build is ended."""


@dataclass(frozen=True, slots=True)
class Job(Generic[R]):
    """Requests to one model, up to a result."""

    model: Model
    chain: Chain[R]


class Crew(Protocol):
    """Who does the jobs: endpoints, or an estimate of what they would take."""

    def run(self, jobs: Iterable[Job[R]], tally: Tally, *, n: int, what: str) -> list[R]:
        """The results of jobs, in their order.

        Args:
            jobs: Made one after the other as there is room for them.
            tally: Counts their requests.
            n: How many there are.
            what: What they do, for whoever waits.

        Raises:
            JudgeStoppedError: If a model is asked nothing more.
        """

    @property
    def totals(self) -> Totals:
        """What was asked so far."""

    def close(self) -> None:
        """End, once the replies under way are there."""


class Engines:
    """One engine for each endpoint; all of them stay within one limit of cost.

    Args:
        settings: Where replies are kept, and how many requests may be in flight.
        max_cost_usd: Most US dollars of all models together, ``None`` for no limit.
    """

    def __init__(self, settings: JudgeSettings, max_cost_usd: float | None) -> None:
        self._settings = settings
        self._max_cost_usd = max_cost_usd
        self._purse = Purse()
        self._engines: dict[tuple[object, ...], Engine] = {}
        self._ended = Totals()
        """Those of engines that were closed."""

    def run(self, jobs: Iterable[Job[R]], tally: Tally, *, n: int, what: str) -> list[R]:
        """See :class:`Crew`."""
        room = threading.BoundedSemaphore(2 * self._settings.concurrency)
        futures: list[Future[list[R]]] = []
        with finishing(self._finish), tqdm(total=n, desc=what, unit="", disable=None) as bar:

            def done(_: Future[list[R]]) -> None:
                room.release()
                bar.update()

            for job in jobs:
                room.acquire()
                tally.raise_if_stopped(n)
                chain = partial(_counted, job.chain, tally)
                future = self._engine(job.model).submit([chain])
                futures.append(future)
                future.add_done_callback(done)
            results = [future.result()[0] for future in futures]
        tally.raise_if_stopped(n)
        if tally.has_silent:
            # What is stopped asks nothing more: the next stage begins afresh.
            for engine in self._engines.values():
                engine.close()
            self._ended, self._engines = self.totals, {}
        return results

    @property
    def totals(self) -> Totals:
        """See :class:`Crew`."""
        totals = self._ended
        for engine in self._engines.values():
            totals += engine.totals()
        return totals

    def close(self) -> None:
        """See :class:`Crew`."""
        for engine in self._engines.values():
            engine.close(FINISH_S)

    def _finish(self) -> None:
        """Keep the replies under way, which are paid for; nothing more is asked."""
        if n := sum(engine.n_in_flight for engine in self._engines.values()):
            logger.warning(
                "stopping: {} requests are under way and paid for, their replies are waited for, "
                "{:.0f} s at most; Ctrl-C again ends at once. What came is kept, the same command "
                "goes on from there",
                n,
                FINISH_S,
            )
        self.close()

    def _engine(self, model: Model) -> Engine:
        endpoint = model.endpoint
        key = (endpoint.urls, endpoint.api, endpoint.api_key, endpoint.alias)
        if key not in self._engines:
            settings = self._settings
            self._engines[key] = Engine(
                EngineConfig(
                    urls=endpoint.urls,
                    store=settings.cache / "build_replies",
                    api=endpoint.api,
                    api_key=endpoint.api_key,
                    concurrency=settings.concurrency,
                    max_rate=settings.rate if endpoint == settings.endpoint else None,
                    store_by=settings.store_by,
                    ask_again=settings.ask_again,
                    max_cost_usd=self._max_cost_usd,
                    purse=self._purse,
                    prices=settings.prices,
                    role="builder",
                    alias=endpoint.alias,
                    added_params=added_params(endpoint.urls, endpoint.api),
                )
            )
        return self._engines[key]


async def _counted(chain: Chain[R], tally: Tally, ask: Ask) -> R:
    """A chain's result, each of its requests counted."""

    async def counted(request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        asked = await ask(request, read)
        tally.count(request.model, asked)
        return asked

    return await chain(counted)


class Rehearsal:
    """Counts what a build would ask; every request is answered as it typically would be.

    Args:
        add: Takes each request and the typical reply to it.
    """

    def __init__(self, add: Callable[[Request, str], None]) -> None:
        self._add = add

    def run(self, jobs: Iterable[Job[R]], tally: Tally, *, n: int, what: str) -> list[R]:  # noqa: ARG002
        """See :class:`Crew`."""

        async def each() -> list[R]:
            return [await _counted(job.chain, tally, self._ask) for job in jobs]

        return asyncio.run(each())

    @property
    def totals(self) -> Totals:
        """Nothing was asked."""
        return Totals()

    def close(self) -> None:
        """Do nothing."""

    async def _ask(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        text = request.stand_in()
        self._add(request, text)
        value = read(Reply(text, "stop"))
        if value is None:
            raise JudgeStoppedError(f"a typical reply of {request.protocol} cannot be read")
        return Asked(value, text, None, cached=False, usage=NO_USAGE)
