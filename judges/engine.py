"""The engine: asks a judge as many questions at once as its endpoint takes.

One a process, an event loop in a thread of its own, usable from any thread. A *chain* is one
question's requests, one after the other. As many chains run as requests may be in flight, oldest
first, so the questions of one caption stay next to each other; a chain that waits to ask again
gives its place to another one.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from lmms_eval_captions.judges.client import ChatClient
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
    StoreError,
)
from lmms_eval_captions.judges.meter import Bar, Meter
from lmms_eval_captions.judges.pacing import Pacing
from lmms_eval_captions.judges.request import Reply, Request
from lmms_eval_captions.judges.settings import LEXICAL
from lmms_eval_captions.judges.store import ReplyStore
from lmms_eval_captions.judges.text import slug
from lmms_eval_captions.judges.verdict import Asked, Usage

T = TypeVar("T")
R = TypeVar("R")


class Ask(Protocol):
    """How a protocol puts one request to the judge."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Ask, read the reply, and ask afresh where it cannot be read. Never raises."""


Chain = Callable[[Ask], Awaitable[R]]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How an engine talks to its endpoint."""

    urls: tuple[str, ...]
    store: Path
    """Folder of the stored replies."""
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 64
    """Most requests in flight, >= 1."""
    n_rereads: int = 3
    """Fresh samples asked for after an unreadable reply."""
    n_attempts: int = 7
    """Attempts at a request that fails in a way that can pass, 429 excepted."""
    patience_s: float = 900.0
    """How long one request is tried against 429 answers."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubles with each, at most ``max_backoff_s``."""
    max_backoff_s: float = 30.0
    store_patience_s: float = 60.0
    """How long a reply that cannot be written is held before judging stops."""
    progress: bool = False
    """Whether to draw a progress bar."""


class Engine:
    """Runs chains against one endpoint. Close it, or use it as a context manager."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.meter = Meter()
        self._pacing = Pacing(config.concurrency)
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        self._bar = Bar(visible=config.progress)
        self._stores: dict[str, ReplyStore] = {}
        self._asked: dict[bytes, asyncio.Future[Reply]] = {}
        self._stopped: dict[str, JudgeStoppedError] = {}
        self._last_success_s = float("-inf")
        self._pending: deque[Callable[[], Awaitable[None]]] = deque()
        self._resuming: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._futures: set[Future[list[object]]] = set()
        self._n_running = 0
        self._n_waiting = 0
        self._closing = False
        self._client: ChatClient | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="judge", daemon=True)
        self._thread.start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, chains: Sequence[Chain[R]]) -> Future[list[R]]:
        """Queue the chains of one caption; returns at once, from any thread.

        Args:
            chains: Coroutine functions that are handed the engine's ``ask``.

        Returns:
            Future of the chains' results, in order.
        """
        future: Future[list[R]] = Future()
        if chains:
            self._loop.call_soon_threadsafe(self._enqueue, list(chains), future)
        else:
            future.set_result([])
        return future

    def close(self) -> None:
        """Stop: requests in flight are dropped, everything answered is on disk."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._tick)
        try:
            self._loop.run_forever()
        finally:
            self._closing = True
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(self._shut_down())
            self._loop.close()

    async def _shut_down(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
        for store in self._stores.values():
            store.close()
        for future in list(self._futures):
            if not future.done():
                future.set_exception(
                    JudgeStoppedError("judging was ended before this caption's turn")
                )

    def _tick(self) -> None:
        self._bar.refresh(self.meter)
        self._loop.call_later(0.25, self._tick)

    def _enqueue(self, chains: list[Chain[R]], future: Future[list[R]]) -> None:
        results: dict[int, R] = {}
        n_left = len(chains)

        async def run(index: int) -> None:
            nonlocal n_left
            try:
                results[index] = await chains[index](self.ask)
            except Exception as error:  # noqa: BLE001 - handed to the caller, who is in another thread
                if not future.done():
                    future.set_exception(error)
            finally:
                self.meter.n_done += 1
                n_left -= 1
                if not n_left and not future.done() and not self._closing:
                    future.set_result([results[index] for index in range(len(chains))])

        self._futures.add(future)  # type: ignore[arg-type]  # only its state is looked at
        future.add_done_callback(self._futures.discard)
        self.meter.n_submitted += len(chains)
        for index in range(len(chains)):
            self._pending.append(partial(run, index))
        self._pump()

    def _pump(self) -> None:
        """Start or wake as many chains as there are free places."""
        while self._n_running < self._pacing.limit:
            if self._resuming:
                waiter = self._resuming.popleft()
                if not waiter.done():
                    self._n_running += 1
                    waiter.set_result(None)
            # A storm of failures must not start every chain there is.
            elif self._pending and self._n_waiting < 4 * self.config.concurrency:
                self._n_running += 1
                task = self._loop.create_task(self._run(self._pending.popleft()))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                break

    async def _run(self, chain: Callable[[], Awaitable[None]]) -> None:
        try:
            await chain()
        finally:
            self._n_running -= 1
            if not self._closing:
                self._pump()

    async def _without_place(self, wait: Awaitable[R]) -> R:
        """Wait for something while another chain uses this one's place."""
        self._n_running -= 1
        self._n_waiting += 1
        self._pump()
        try:
            return await wait
        finally:
            # A chain that is cancelled (the engine closes) takes no place again.
            if not self._closing:
                place = self._loop.create_future()
                self._resuming.append(place)
                self._pump()
                await place
            self._n_waiting -= 1

    async def ask(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Ask, read the reply, and ask afresh where it cannot be read; see :class:`Ask`."""
        usage, reply, cached = Usage(), Reply(""), True
        try:
            for attempt in range(1 + self.config.n_rereads):
                reply, from_store = await self._reply(request, attempt)
                if not from_store:
                    cached = False
                    usage += Usage(1, reply.input_tokens, reply.output_tokens)
                value = read(reply)
                if value is not None:
                    return Asked(value, reply.text, None, cached=cached, usage=usage)
                if request.model == LEXICAL:
                    break
        except _UnsavedReplyError as error:
            reply, reason = error.reply, str(error)
        except JudgeError as error:
            reason = str(error)
        else:
            reason = f"unreadable reply, asked {attempt + 1} times"
            if reply.finish_reason == "length":
                reason += "; the last one was cut at max_tokens"
        self.meter.n_unscored += 1
        return Asked(None, reply.text, reason, cached=False, usage=usage)

    async def _reply(self, request: Request, attempt: int) -> tuple[Reply, bool]:
        """The reply, and whether it cost nothing: the store, a twin in flight, or the network."""
        if request.model == LEXICAL:
            return Reply(request.stand_in(), "stop"), False
        body = request.body(attempt)
        key = request.key(body)
        store = self._store(request.model)
        stored = store.get(key)
        if stored is not None:
            self.meter.n_cached += 1
            return Reply.from_json(stored), True
        twin = self._asked.get(key)
        if twin is not None:
            reply = await self._without_place(asyncio.shield(twin))
            self.meter.n_cached += 1
            return reply, True
        self._asked[key] = twin = self._loop.create_future()
        try:
            reply = await self._fetch(request, body)
            await self._save(store, key, reply)
        except BaseException as error:
            if isinstance(error, JudgeError):
                twin.set_exception(error)
                twin.exception()  # seen: nobody may be waiting
            else:
                twin.cancel()
            raise
        finally:
            del self._asked[key]
        twin.set_result(reply)
        return reply, False

    async def _fetch(self, request: Request, body: bytes) -> Reply:
        """Send until answered, or until it is clear that this cannot pass."""
        if self._client is None:
            self._client = ChatClient(self.config.urls, self.config.api_key)
        started_s = time.monotonic()
        n_failed = 0
        n_limited = 0
        while True:
            stopped = self._stopped.get(request.model)
            if stopped is not None:
                raise JudgeStoppedError(str(stopped))
            try:
                reply = await self._client.complete(body, timeout_s=request.timeout_s)
            except JudgeStoppedError as error:
                self._stopped.setdefault(request.model, error)
                raise
            except JudgeUnavailableError as error:
                now_s = time.monotonic()
                if error.rate_limited:
                    self.meter.n_rate_limited += 1
                    self._pacing.on_rate_limit(now_s)
                    n_limited += 1
                else:
                    n_failed += 1
                self._give_up_or_go_on(request, error, started_s, n_failed=n_failed)
                self.meter.n_retried += 1
                await self._without_place(self._back_off(n_failed + n_limited, error))
            else:
                self._last_success_s = time.monotonic()
                self._pacing.on_success()
                self.meter.count_call(request.model, reply.input_tokens, reply.output_tokens)
                return reply

    def _give_up_or_go_on(
        self, request: Request, error: JudgeUnavailableError, started_s: float, *, n_failed: int
    ) -> None:
        out_of_patience = time.monotonic() - started_s > self.config.patience_s
        if n_failed < self.config.n_attempts and not out_of_patience:
            return
        if self._last_success_s < started_s:
            # Not one request got through for as long as this one tried: the endpoint is gone.
            stopped = JudgeStoppedError(
                f"the judge gave no reply to any request for {time.monotonic() - started_s:.0f} s, "
                f"judging stopped: {error}"
            )
            self._stopped.setdefault(request.model, stopped)
            raise stopped from error
        raise JudgeRequestError(f"gave up on this request: {error}") from error

    async def _back_off(self, n_failures: int, error: JudgeUnavailableError) -> None:
        ceiling = min(self.config.max_backoff_s, self.config.backoff_s * 2 ** (n_failures - 1))
        wait_s = ceiling * self._random.uniform(0.5, 1.0)
        # A wild header must not hang the run: patience is the bound.
        asked_s = min(error.retry_after_s or 0.0, self.config.patience_s)
        await asyncio.sleep(max(wait_s, asked_s))

    async def _save(self, store: ReplyStore, key: bytes, reply: Reply) -> None:
        """Put a reply on disk before it counts; on a full disk hold it, and all others, a while."""
        value = reply.to_json()
        deadline_s = time.monotonic() + self.config.store_patience_s
        while True:
            try:
                store.put(key, value)
            except StoreError as error:
                if time.monotonic() >= deadline_s:
                    for model in self._stores:
                        self._stopped.setdefault(model, JudgeStoppedError(str(error)))
                    raise _UnsavedReplyError(
                        f"answered, but the reply could not be saved: {error}", reply
                    ) from error
                # Not without a place: nothing new may be sent while nothing can be kept.
                await asyncio.sleep(min(1.0, self.config.store_patience_s / 10))
            else:
                return

    def _store(self, model: str) -> ReplyStore:
        store = self._stores.get(model)
        if store is None:
            try:
                store = ReplyStore(self.config.store / slug(model))
            except StoreError as error:
                raise JudgeStoppedError(str(error)) from error
            self._stores[model] = store
        return store


class _UnsavedReplyError(JudgeError):
    """A reply that came but is not on disk: it does not count, yet its text is shown."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply
