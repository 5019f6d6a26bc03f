"""The engine: asks a judge as many questions at once as its endpoint takes.

One a process, an event loop in a thread of its own, usable from any thread. A *chain* is one
question's requests, one after the other. As many chains run as requests may be in flight, oldest
first, so the questions of one caption stay next to each other; a chain that waits to ask again
gives its place to another one.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.asker import Asker
from lmms_eval_captions.judges.endpoint.batch.client import BatchClient
from lmms_eval_captions.judges.endpoint.budget import Budget, CappedClient
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.gc_threshold import rarer_collections
from lmms_eval_captions.judges.endpoint.http.client import ChatClient
from lmms_eval_captions.judges.endpoint.load import Load
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.endpoint.progress.meter import Bar, Meter
from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.reply_source import ReplySource
from lmms_eval_captions.judges.endpoint.request import Client, Reply, Request
from lmms_eval_captions.judges.endpoint.roles import WORDS
from lmms_eval_captions.judges.endpoint.sender import Sender
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.endpoint.store.claims import Claims
from lmms_eval_captions.judges.endpoint.store.stored_replies import StoredReplies
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.verdict import Asked

T = TypeVar("T")
R = TypeVar("R")

_TICK_S: Final = 0.25
_BATCH_BAR_S: Final = 10.0
"""Seconds after which the bar is drawn again while batches are waited for, for hours."""
_CLOSE_S: Final = 60.0
"""Seconds that the engine's thread has to end in: a file system may have stopped answering."""
_ENDED: Final = "{role.work} was ended before this caption's turn"
_FORKED: Final = (
    "this process was forked from one that was {role.work}, and the {role.who}'s connections "
    "stayed there: hand captions in where {role.work} began, or start the process with "
    "multiprocessing's spawn"
)


class Ask(Protocol):
    """How a protocol puts one request to the judge."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Ask, read the reply, and ask afresh where it cannot be read. Never raises."""


Chain = Callable[[Ask], Awaitable[R]]


class Engine:
    """Runs chains against one endpoint. Close it, or use it as a context manager."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._role = WORDS[config.role]
        self.meter = Meter(load_prices(config.prices), config.mode)
        # All that may wait for a batch does so at once: no slow start.
        start = config.concurrency if config.mode == "batch" else None
        load = Load(config.concurrency, start=start)
        self._places = Slots(
            lambda: load.limit,
            most_waiting=4 * config.concurrency,
            on_defect=self._on_defect,
        )
        self._budget = _budget(config)
        self._trouble = Trouble(config, self.meter)
        self._sender = Sender(
            config,
            partial(_open_client, config, self._budget),
            meter=self.meter,
            load=load,
            places=self._places,
            trouble=self._trouble,
        )
        self._shelf = StoredReplies(config.store, patience_s=config.store_patience_s)
        # Who waits for a batch would hold its claims for hours; batches are written down elsewhere.
        self._claims = Claims(config.store / ".claims" if config.mode == "now" else None)
        replies = ReplySource(
            shelf=self._shelf,
            claims=self._claims,
            sender=self._sender,
            places=self._places,
            meter=self.meter,
            trouble=self._trouble,
            config=config,
            ended_by=lambda error: self._over(self._words(error)),
        )
        self._asker = Asker(replies, meter=self.meter, config=config)
        idle_s = _BATCH_BAR_S if config.mode == "batch" else 1.0
        self._bar = Bar(visible=config.progress, idle_s=idle_s)
        self._futures: set[Future[list[object]]] = set()
        self._said: set[str] = set()
        self._submitting = threading.Lock()
        self._closed = False
        self._defect: str | None = None
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._ending: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._serve, name="judge", daemon=True)
        self._thread.start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def defect(self) -> str | None:
        """What of ours ended judging before its time, ``None`` where nothing did."""
        return self._defect

    @property
    def spent_usd(self) -> float:
        """US dollars of ``max_cost_usd`` that are billed, or may be; 0 where there is no limit."""
        return 0.0 if self._budget is None else self._budget.spent_usd + self._budget.reserved_usd

    def submit(self, chains: Sequence[Chain[R]]) -> Future[list[R]]:
        """Queue the chains of one caption; returns at once, from any thread.

        Args:
            chains: Coroutine functions that are handed the engine's ``ask``.

        Returns:
            Future of the chains' results, in order; it is always settled, with
            :class:`JudgeStoppedError` where the engine ends before the caption's turn, and in a
            forked child, where no thread serves it.
        """
        future: Future[list[R]] = Future()
        if not chains:
            future.set_result([])
            return future
        if os.getpid() != self._pid:
            # No lock: another thread of the parent may have held it.
            future.set_exception(JudgeStoppedError(_FORKED.format(role=self._role)))
            return future
        with self._submitting:
            if self._closed or not self._thread.is_alive():
                future.set_exception(self._over())
            else:
                self._futures.add(future)  # type: ignore[arg-type]  # only its state is looked at
                future.add_done_callback(self._futures.discard)
                self._loop.call_soon_threadsafe(self._enqueue, list(chains), future)
        return future

    def close(self) -> None:
        """Stop: requests in flight are dropped, everything answered is on disk."""
        if os.getpid() != self._pid:
            return  # the parent's to close
        with self._submitting:
            # What was submitted before stands before the end in the loop's queue.
            if not self._closed and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._end)
            self._closed = True
        self._thread.join(_CLOSE_S)
        self._settle_all()

    def _enqueue(self, chains: list[Chain[R]], future: Future[list[R]]) -> None:
        results: dict[int, R] = {}
        n_left = len(chains)

        async def run(index: int) -> None:
            nonlocal n_left
            try:
                results[index] = await chains[index](self._asker.ask)
            except asyncio.CancelledError as error:
                if self._places.closing:
                    raise
                why = self._words(error)
                _settle(future, JudgeStoppedError(f"a question was cancelled: {why}"))
            except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
                _settle(future, error)
            except BaseException as error:  # noqa: BLE001 - must not end the caller's thread
                _settle(future, self._over(self._words(error)))
            finally:
                # What the end of judging cancels is not done.
                self.meter.n_done += not self._places.closing
                n_left -= 1
                if not n_left and not future.done() and not self._places.closing:
                    if len(results) == len(chains):
                        future.set_result([results[index] for index in range(len(chains))])
                    else:  # Not even the words of an error could be made.
                        future.set_exception(RuntimeError("a question ended without a result"))

        self.meter.n_submitted += len(chains)
        try:
            for index in range(len(chains)):
                self._places.add(partial(run, index))
            self._places.fill()
        except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
            _settle(future, error)

    def _serve(self) -> None:
        try:
            asyncio.set_event_loop(self._loop)
            self._loop.set_exception_handler(self._on_callback_error)
            self._loop.call_soon(self._tick)
            with rarer_collections():
                self._loop.run_until_complete(self._ending)
        except BaseException as error:  # noqa: BLE001 - told to all that wait
            self._on_defect(error)
        finally:
            try:
                with self._submitting:
                    self._closed = True
                self._loop.run_until_complete(self._shut_down())
            except BaseException as error:  # noqa: BLE001 - told to all that wait
                self._on_defect(error)
            finally:
                self._settle_all()
                self._loop.close()

    async def _shut_down(self) -> None:
        try:
            await self._places.close()
            self._attempt(self._close_bar)
        finally:
            try:
                await asyncio.wait_for(self._sender.close(), _CLOSE_S / 2)
            finally:
                try:
                    self._shelf.close()
                finally:
                    self._claims.close()

    def _end(self) -> None:
        """Leave the loop; the thread then shuts down."""
        if not self._ending.done():
            self._ending.set_result(None)

    def _on_callback_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody catches: a callback of ours that raised ends judging, others are noted."""
        error = context.get("exception")
        if isinstance(error, BaseException) and "handle" in context and _is_ours(error):
            self._on_defect(error)
        else:
            logger.debug("{}: {}", context.get("message"), self._words(error))

    def _on_defect(self, error: BaseException) -> None:
        """End judging: after this exception captions might wait for ever."""
        try:
            if self._defect is None and not self._ending.done():
                self._defect = type(error).__name__
                self._defect = self._words(error)
                logger.error("{} ends after an internal error: {}", self._role.work, self._defect)
        finally:
            self._end()

    def _words(self, error: object) -> str:
        """An exception in a line, without the key."""
        return scrub(repr(error), self.config.api_key, *self.config.urls)

    def _over(self, defect: str | None = None) -> JudgeStoppedError:
        """The error of captions that are not judged any more."""
        defect = defect or self._defect
        if defect is None:
            return JudgeStoppedError(_ENDED.format(role=self._role))
        return JudgeStoppedError(
            f"{self._role.work} ended after an internal error: {defect}; what was answered is "
            "kept, run the same command again to go on"
        )

    def _settle_all(self) -> None:
        for future in list(self._futures):
            _settle(future, self._over())

    def _tick(self) -> None:
        """What is done a few times a second."""
        self._loop.call_later(_TICK_S, self._tick)
        self._attempt(self._sender.copy_stragglers)
        self._attempt(self._shelf.refresh)
        self._attempt(self._claims.tick)
        self._attempt(self._watch)
        self._attempt(self._draw)

    def _attempt(self, act: Callable[[], None]) -> None:
        """Do something that judging can do without; what it raises is said once."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the others are done all the same
            if act.__name__ not in self._said:
                self._said.add(act.__name__)
                logger.error(
                    "{} failed, {} goes on: {}",
                    act.__name__,
                    self._role.work,
                    self._words(error),
                )

    def _watch(self) -> None:
        sender = self._sender
        self._trouble.tick(time.monotonic(), sender.n_in_flight, sender.first_due_s)

    def _draw(self) -> None:
        if not self._places.closing:
            self._bar.refresh(self.meter)

    def _close_bar(self) -> None:
        self._bar.close(self.meter)


def _settle(future: Future[Any], error: Exception) -> None:
    """Give a caption's future an error, where it has no outcome yet."""
    with suppress(InvalidStateError):
        future.set_exception(error)


def _is_ours(error: BaseException) -> bool:
    """Whether code of this folder was under way."""
    folder = str(Path(__file__).parents[1])
    return any(
        frame.f_code.co_filename.startswith(folder)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _budget(config: EngineConfig) -> Budget | None:
    if config.max_cost_usd is None:
        return None
    prices = load_prices(config.prices)
    return Budget(config.max_cost_usd, prices, mode=config.mode, spent_usd=config.spent_usd)


def _open_client(config: EngineConfig, budget: Budget | None) -> Client:
    """What requests are sent through: at once or in batches, within a limit or without."""
    client: Client
    if config.mode == "batch":
        client = BatchClient(
            config.urls[0],
            config.api_key,
            folder=config.batches,
            pace=config.batch_pace,
        )
    else:
        client = ChatClient(config.urls, config.api_key, role=config.role, api=config.api)
    return client if budget is None else CappedClient(client, budget)
