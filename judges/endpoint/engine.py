"""The engine: asks a judge as many questions at once as its endpoint takes.

One per process: an event loop in a thread of its own, usable from any thread. A *chain* is the
requests of one question, one after the other or several at once. As many requests are in flight as
may be, those of the oldest questions first, so the questions of one caption stay next to each
other; a request that waits to be sent again leaves its slot to another one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeVar

from lmms_eval_captions.judges.endpoint.answers.sight import Shown
from lmms_eval_captions.judges.endpoint.asker import Asker
from lmms_eval_captions.judges.endpoint.batch.client import BatchClient
from lmms_eval_captions.judges.endpoint.budget import Budget, CappedClient
from lmms_eval_captions.judges.endpoint.caption_runner import CaptionRunner
from lmms_eval_captions.judges.endpoint.chain import About, Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine_thread import EngineThread
from lmms_eval_captions.judges.endpoint.http.client import ChatClient
from lmms_eval_captions.judges.endpoint.limits import AddressLimits, Concurrency, Pace
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.endpoint.progress.bar import Bar
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.progress.totals import Totals, totals_of
from lmms_eval_captions.judges.endpoint.progress.trouble import Trouble
from lmms_eval_captions.judges.endpoint.replicas import Replicas
from lmms_eval_captions.judges.endpoint.reply_source import ReplySource
from lmms_eval_captions.judges.endpoint.request import Client
from lmms_eval_captions.judges.endpoint.roles import WORDS
from lmms_eval_captions.judges.endpoint.sender import Sender
from lmms_eval_captions.judges.endpoint.slots import Slots
from lmms_eval_captions.judges.endpoint.store import StoredReplies
from lmms_eval_captions.judges.endpoint.urls import endpoint_name
from lmms_eval_captions.judges.errors import JudgeStoppedError

R = TypeVar("R")

_BATCH_BAR_S: Final = 10.0
"""Seconds after which the bar is drawn again while batches are waited for, for hours."""
_CLIENT_CLOSE_S: Final = 30.0
"""Seconds that connections have to close in."""
_MOST_CHAINS: Final = 5
"""Chains that may be alive at once, as a multiple of the requests that may be in flight: most of
them then wait to send a request again."""
_FORKED: Final = (
    "this process was forked from one that was {role.work}, and the {role.who}'s connections "
    "stayed there: hand captions in where {role.work} began, or start the process with "
    "multiprocessing's spawn"
)


class Engine:
    """Runs chains against one endpoint. Close it, or use it as a context manager."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.meter = Meter(load_prices(config.prices), config.mode)
        self._pid = os.getpid()
        self._finish_s = 0.0
        self._thread = thread = EngineThread(config)
        # All that may wait for a batch does so at once: no slow start.
        start = config.concurrency if config.mode == "batch" else None
        limits = [AddressLimits(config.patience_s) for _ in config.urls]
        concurrency = Concurrency(config.concurrency, start=start)
        pace = Pace(limits, config.max_rate)
        replicas = Replicas(list(map(endpoint_name, config.urls)))
        self._slots = Slots(
            lambda: concurrency.limit,
            pace,
            most_chains=_MOST_CHAINS * config.concurrency,
            on_defect=thread.on_defect,
        )
        self._budget = _budget(config)
        self._trouble = Trouble(config, self.meter)
        self._sender = Sender(
            config,
            partial(_open_client, config, self._budget, limits, replicas),
            meter=self.meter,
            concurrency=concurrency,
            pace=pace,
            slots=self._slots,
            trouble=self._trouble,
        )
        self._stored = StoredReplies(
            config.store,
            patience_s=config.store_patience_s,
            endpoints=config.serving_endpoints,
        )
        replies = ReplySource(
            stored=self._stored,
            sender=self._sender,
            slots=self._slots,
            meter=self.meter,
            trouble=self._trouble,
            config=config,
            ended_by=lambda error: thread.over(thread.words(error)),
        )
        asker = Asker(replies, meter=self.meter, config=config)
        has_replicas = config.mode == "now" and len(replicas) > 1
        self._runner = CaptionRunner(
            asker, self._slots, self.meter, thread, has_replicas=has_replicas
        )
        idle_s = _BATCH_BAR_S if config.mode == "batch" else 1.0
        self._bar = Bar(visible=config.progress, idle_s=idle_s)
        ticks = (self._refresh, self._watch, self._draw)
        thread.start(ticks=ticks, shut_down=self._shut_down)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def defect(self) -> str | None:
        """What of ours ended judging before its time, ``None`` where nothing did."""
        return self._thread.defect

    def totals(self) -> Totals:
        """What was asked so far, and where replies came from; from any thread.

        Nothing in a forked child: what it has of these is its parent's.
        """
        if os.getpid() != self._pid:
            return Totals()
        return totals_of(self.meter, self.config.endpoints)

    @property
    def spent_usd(self) -> float:
        """US dollars of ``max_cost_usd`` that are billed, or may be; 0 where there is no limit."""
        return 0.0 if self._budget is None else self._budget.spent_usd + self._budget.reserved_usd

    def submit(self, chains: Sequence[Chain[R]], *, about: About = None) -> Future[list[R]]:
        """Queue the chains of one caption; returns at once, from any thread.

        Args:
            chains: Coroutine functions that are handed the engine's ``ask``.
            about: What tells their caption from others, such as a digest, or that of each chain:
                of several replicas all processes then ask the same one about it. ``None`` where
                nothing is shared. It is in no store's key and not on the wire.

        Returns:
            Future of the chains' results, in order; it is always settled, with
            :class:`JudgeStoppedError` where the engine ends before the caption's turn, and in a
            forked child, where no thread serves it.
        """
        future: Future[list[R]] = Future()
        if not chains:
            future.set_result([])
        elif os.getpid() != self._pid:
            # No lock: another thread of the parent may have held it.
            role = WORDS[self.config.role]
            future.set_exception(JudgeStoppedError(_FORKED.format(role=role)))
        else:
            self._thread.post(future, partial(self._runner.enqueue, list(chains), future, about))
        return future

    @property
    def n_in_flight(self) -> int:
        """Requests sent and not answered; from any thread."""
        return self._sender.n_in_flight

    def stopped(self, model: str, shown: Shown) -> str | None:
        """Why nothing more is asked of a model, ``None`` where it is; from any thread.

        Args:
            model: Its name.
            shown: What it is shown.
        """
        return self._sender.stopped(model, shown)

    def close(self, finish_s: float = 0.0) -> None:
        """Stop: nothing more is sent, everything answered is on disk.

        Args:
            finish_s: How long requests in flight are waited for; they are dropped then.
        """
        if os.getpid() == self._pid:  # else it is the parent's to close
            self._finish_s = finish_s
            self._thread.close()

    async def _shut_down(self) -> None:
        try:
            await self._slots.finish(self._finish_s)
            await self._slots.close()
            self.meter.rest()
            self._thread.attempt(self._close_bar)
        finally:
            try:
                await asyncio.wait_for(self._sender.close(), _CLIENT_CLOSE_S)
            finally:
                self._stored.close()

    def _refresh(self) -> None:
        self._stored.refresh()

    def _watch(self) -> None:
        sender = self._sender
        self._trouble.tick(time.monotonic(), sender.n_in_flight, sender.first_due_s)

    def _draw(self) -> None:
        if not self._slots.closing:
            self._bar.refresh(self.meter)

    def _close_bar(self) -> None:
        self._bar.close(self.meter)


def _budget(config: EngineConfig) -> Budget | None:
    if config.max_cost_usd is None:
        return None
    prices = load_prices(config.prices)
    return Budget(
        config.max_cost_usd,
        prices,
        mode=config.mode,
        spent_usd=config.spent_usd,
        role=config.role,
        purse=config.purse,
    )


def _open_client(
    config: EngineConfig, budget: Budget | None, limits: Sequence[AddressLimits], loads: Replicas
) -> Client:
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
        client = ChatClient(
            config.urls,
            config.api_key,
            role=config.role,
            api=config.api,
            limits=limits,
            loads=loads,
        )
    return client if budget is None else CappedClient(client, budget)
