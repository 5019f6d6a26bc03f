"""The engine: asks a model as many questions at once as its endpoint takes.

An event loop in a thread of its own, usable from any thread. A *chain* is the requests of one
question, one after the other or several at once. Chains start in the order of submission, and the
requests of earlier chains go out first, so that the questions of a caption stay together. A request
holds a slot on the wire and while its reply is saved, never while it waits to be sent again.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.asker import Asker, Turn
from lmms_eval_captions.judges.endpoint.batch import BatchClient
from lmms_eval_captions.judges.endpoint.client import ChatClient, Replicas
from lmms_eval_captions.judges.endpoint.cost import Budget, CappedClient, load_prices
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.failures import WORDS
from lmms_eval_captions.judges.endpoint.limits import AddressLimits, Concurrency, Pace, Slots
from lmms_eval_captions.judges.endpoint.progress import Meter, Progress, Totals
from lmms_eval_captions.judges.endpoint.request import About, Chain, Client, Shown
from lmms_eval_captions.judges.endpoint.store import StoredReplies
from lmms_eval_captions.judges.endpoint.urls import endpoint_name, is_self_hosted, scrub
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgingEndedError

R = TypeVar("R")

_CLOSE_S: Final = 60.0
"""Seconds that the thread has to end in: a file system may have stopped answering."""
_MOST_CHAINS: Final = 5
"""Chains that may be alive at once, as a multiple of the requests in flight; the others wait to
send a request again."""
_YOUNG_OBJECTS: Final = 50_000
"""Least threshold of the garbage collector while the engine runs: measured with 256 requests in
flight, 95.1% of the ideal calls/s instead of 89.5%."""
_FORKED: Final = (
    "this process was forked from one that was {words.work}, and the {words.who}'s connections "
    "stayed there: hand captions in where {words.work} began, or start the process with "
    "multiprocessing's spawn"
)


@dataclass(slots=True, eq=False)
class _Caption(Generic[R]):
    chains: Sequence[Chain[R]]
    future: Future[list[R]]
    about: About
    n_left: int
    results: dict[int, R] = field(default_factory=dict)


class Engine:
    """Runs chains against one endpoint. Close it, or use it as a context manager."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        prices = load_prices(config.prices)
        self.meter = Meter(prices, config.mode)
        self.defect: str | None = None
        """The internal error that ended judging; ``None`` if there was none."""
        self._pid = os.getpid()
        self._words = WORDS[config.role]
        self._budget: Budget | None = None
        if config.max_cost_usd is not None:
            self._budget = Budget(
                config.max_cost_usd,
                prices,
                mode=config.mode,
                spent_usd=config.spent_usd,
                role=config.role,
                purse=config.purse,
                is_own_server=all(map(is_self_hosted, config.urls)),
            )
        # All that may wait for a batch does so at once.
        start = config.concurrency if config.mode == "batch" else None
        self._limits = [AddressLimits(config.patience_s) for _ in config.urls]
        self._replicas = Replicas(list(map(endpoint_name, config.urls)))
        concurrency = Concurrency(config.concurrency, start=start)
        self._slots = Slots(concurrency, Pace(self._limits, config.max_rate), self._fill)
        endpoints = config.endpoints if config.store_by == "endpoint" else None
        self._stored = StoredReplies(
            config.store, patience_s=config.store_patience_s, endpoints=endpoints
        )
        self._progress = Progress(config, self.meter, lambda: self.n_in_flight)
        self._asker = Asker(
            config, self._open_client, self._stored, self._slots, self.meter, self._progress
        )
        self._queue: deque[tuple[_Caption[Any], int]] = deque()
        self._chains: set[asyncio.Task[None]] = set()
        self._n_started = 0
        self._futures: set[Future[Any]] = set()
        self._logged: set[str] = set()
        self._lock = threading.Lock()
        self._closed, self._finish_s = False, 0.0
        self._loop = asyncio.new_event_loop()
        self._ending: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._serve, name="judge", daemon=True)
        self._thread.start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_in_flight(self) -> int:
        """Requests sent and not answered; from any thread."""
        return len(self._asker.in_flight)

    @property
    def spent_usd(self) -> float:
        """US dollars of ``max_cost_usd`` that are billed, or may be; 0 without a limit."""
        return 0.0 if self._budget is None else self._budget.spent_usd + self._budget.reserved_usd

    def totals(self) -> Totals:
        """Return the counts so far; from any thread, empty in a forked child."""
        if os.getpid() != self._pid:
            return Totals()
        return self.meter.totals(self.config.endpoints)

    def stopped(self, model: str, shown: Shown) -> str | None:
        """Return why nothing more is asked of a model; ``None`` if it is. From any thread."""
        return self._asker.stopped(model, shown)

    def submit(self, chains: Sequence[Chain[R]], *, about: About = None) -> Future[list[R]]:
        """Queue the chains of one caption; returns at once, from any thread.

        Args:
            chains: Coroutine functions that are handed the engine's ``ask``.
            about: Digest of the caption, or one for each chain, which chooses the replica.

        Returns:
            Future of the chains' results, in order. It is always settled, with
            :class:`JudgeStoppedError` if the engine ends before, and in a forked child. If it is
            cancelled, nothing more is asked for it; replies on their way are stored.
        """
        future: Future[list[R]] = Future()
        if not chains:
            future.set_result([])
        elif os.getpid() != self._pid:
            # No lock: another thread of the parent may have held it.
            future.set_exception(JudgeStoppedError(_FORKED.format(words=self._words)))
        else:
            caption = _Caption(list(chains), future, about, len(chains))
            with self._lock:
                if self._closed or not self._thread.is_alive():
                    future.set_exception(self._over())
                else:
                    self._futures.add(future)
                    future.add_done_callback(self._futures.discard)
                    self._loop.call_soon_threadsafe(self._enqueue, caption)
        return future

    def close(self, finish_s: float = 0.0) -> None:
        """Stop after ``finish_s`` for requests in flight; everything answered is on disk."""
        if os.getpid() != self._pid:  # it is the parent's to close
            return
        with self._lock:
            self._finish_s = finish_s
            if not self._closed and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._end)
            self._closed = True
        if threading.current_thread() is not self._thread:  # which may collect what is dropped
            self._thread.join(_CLOSE_S)
        self._settle_all()

    def _enqueue(self, caption: _Caption[Any]) -> None:
        if not self.config.outage_is_final and not self._chains and not self._queue:
            self._asker.forget_outages()
        self.meter.count_submitted(len(caption.chains))
        self._queue.extend((caption, index) for index in range(len(caption.chains)))
        self._fill()

    def _fill(self) -> None:
        """Start chains, one for each request that may be in flight."""
        try:
            most = _MOST_CHAINS * self.config.concurrency
            while self._queue and len(self._chains) < most and not self._ending.done():
                n_active = len(self._chains) - self._asker.n_idle
                if n_active >= self._slots.concurrency.limit:
                    return
                caption, index = self._queue.popleft()
                if caption.future.cancelled():
                    self.meter.count_done()
                else:
                    task = self._loop.create_task(self._run(caption, index))
                    self._chains.add(task)
                    task.add_done_callback(self._ended)
        except BaseException as error:
            self._on_defect(error)
            raise

    async def _run(self, caption: _Caption[Any], index: int) -> None:
        """Run one chain; its caption's future is settled whatever is raised."""
        future = caption.future
        digests = caption.about if len(self._replicas) > 1 else None
        about = digests if digests is None or isinstance(digests, bytes) else digests[index]
        self._n_started += 1
        turn = Turn(self._n_started, about, future.cancelled)
        try:
            caption.results[index] = await caption.chains[index](partial(self._asker.ask, turn))
        except asyncio.CancelledError as error:
            if self._ending.done():
                raise
            _settle(future, JudgeStoppedError(f"a question was cancelled: {error!r}"))
        except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
            _settle(future, error)
        except BaseException as error:  # noqa: BLE001 - must not end the caller's thread
            _settle(future, self._over(self._scrubbed(error)))
        finally:
            if not self._ending.done():
                self.meter.count_done()
                caption.n_left -= 1
                if not caption.n_left:
                    # It is settled already if it failed or was cancelled.
                    with suppress(InvalidStateError, KeyError):
                        future.set_result([caption.results[i] for i in range(len(caption.chains))])

    def _ended(self, task: asyncio.Task[None]) -> None:
        try:
            self._chains.discard(task)
            if not self._ending.done():
                task.result()
                self._fill()
        except BaseException as error:  # noqa: BLE001 - captions might wait for ever
            self._on_defect(error)

    def _open_client(self) -> Client:
        config, key = self.config, self.config.api_key
        client: Client
        if config.mode == "batch":
            client = BatchClient(config.urls[0], key, config.batches, config.batch_pace)
        else:
            limits, loads = self._limits, self._replicas
            client = ChatClient(config.urls, key, config.role, config.api, limits, loads)
        return client if self._budget is None else CappedClient(client, self._budget)

    def _serve(self) -> None:
        """Run the loop; every future is settled however it ends."""
        young, *older = gc.get_threshold()
        is_raised = 0 < young < _YOUNG_OBJECTS
        try:
            if is_raised:
                gc.set_threshold(_YOUNG_OBJECTS, *older)
            asyncio.set_event_loop(self._loop)
            self._loop.set_exception_handler(self._on_callback_error)
            self._loop.call_soon(self._tick)
            self._loop.run_until_complete(self._ending)
        except BaseException as error:  # noqa: BLE001 - reported to all who wait
            self._on_defect(error)
        finally:
            if is_raised:
                gc.set_threshold(young, *older)
            try:
                with self._lock:
                    self._closed = True
                self._loop.run_until_complete(self._shut_down())
            except BaseException as error:  # noqa: BLE001 - reported to all who wait
                self._on_defect(error)
            finally:
                self._settle_all()
                self._loop.close()

    async def _shut_down(self) -> None:
        try:
            self._slots.close()
            # Requests in flight are waited for, and then their chains' turn.
            sent, deadline_s = set(self._asker.in_flight), self._loop.time() + self._finish_s
            while sent & self._asker.in_flight and self._loop.time() < deadline_s:
                await asyncio.sleep(0.05)
            if sent and self._finish_s > 0.0:
                await asyncio.sleep(0.05)
            for task in self._chains:
                task.cancel()
            if self._chains:
                await asyncio.wait(self._chains, timeout=10.0)
            self.meter.rest()
            self._attempt(self._progress.close)
        finally:
            try:
                await asyncio.wait_for(self._asker.close(), 30.0)
            finally:
                self._stored.close()

    def _tick(self) -> None:
        self._loop.call_later(0.25, self._tick)
        self._attempt(self._stored.refresh)
        if not self._ending.done():
            self._attempt(self._progress.tick)

    def _attempt(self, act: Any) -> None:  # noqa: ANN401 - a function without arguments
        """Do what judging can do without; an error is logged once."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the rest is done all the same
            name, words = act.__qualname__, self._scrubbed(error)
            if name not in self._logged:
                self._logged.add(name)
                logger.error("{} failed, {} continues: {}", name, self._words.work, words)

    def _end(self) -> None:
        if not self._ending.done():
            self._ending.set_result(None)

    def _on_defect(self, error: BaseException) -> None:
        """End judging after an internal error, by which captions might wait for ever."""
        try:
            if self.defect is None and not self._ending.done():
                self.defect = type(error).__name__
                self.defect = self._scrubbed(error)
                logger.error("{} ends after an internal error: {}", self._words.work, self.defect)
        finally:
            self._end()

    def _on_callback_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note what nobody caught; an error in a callback of ours ends judging."""
        error = context.get("exception")
        if isinstance(error, BaseException) and "handle" in context:
            folder = str(Path(__file__).parent)
            if any(folder in frame.filename for frame in traceback.extract_tb(error.__traceback__)):
                self._on_defect(error)
        logger.debug("{}: {}", context.get("message"), self._scrubbed(error))

    def _scrubbed(self, error: object) -> str:
        return scrub(repr(error), self.config.api_key, *self.config.urls)

    def _over(self, defect: str | None = None) -> JudgeStoppedError:
        """Return the error of captions that are not judged any more."""
        defect, work = defect or self.defect, self._words.work
        if defect is None:
            return JudgingEndedError(f"{work} was ended before this caption's turn")
        return JudgingEndedError(
            f"{work} ended after an internal error: {defect}; what was answered is kept, run the "
            "same command again to resume"
        )

    def _settle_all(self) -> None:
        for future in list(self._futures):
            _settle(future, self._over())


def _settle(future: Future[Any], error: Exception) -> None:
    with suppress(InvalidStateError):
        future.set_exception(error)
