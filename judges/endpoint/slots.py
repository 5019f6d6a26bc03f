"""Who may ask now: as many chains run as requests may be in flight, the others wait their turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

R = TypeVar("R")

Work = Callable[[], Awaitable[None]]
Runner = asyncio.Task[Any]

_END_S: Final = 10.0
"""Seconds that work has to end in once it is cancelled."""


class Slots:
    """Runs work in as many places as there are; to be used inside the event loop alone.

    A chain holds a place from its start to its end, but for the time it waits to ask again: then
    another chain has it. Work starts in the order it was added, so that the questions of one
    caption stay next to each other.

    Args:
        limit: Tells how many places there are now, >= 1.
        most_waiting: Bound of chains that wait without a place; beyond it none is started.
        on_defect: Told of an exception that work may never start or go on after.
    """

    def __init__(
        self,
        limit: Callable[[], int],
        *,
        most_waiting: int,
        on_defect: Callable[[BaseException], None],
    ) -> None:
        self._limit = limit
        self._most_waiting = most_waiting
        self._on_defect = on_defect
        self._pending: deque[Work] = deque()
        self._resuming: deque[tuple[Runner, asyncio.Future[None]]] = deque()
        self._tasks: set[Runner] = set()
        self._running: set[Runner] = set()
        """Tasks of chains that have a place."""
        self._waiting: set[Runner] = set()
        """Tasks of chains that gave theirs away for a while."""
        self._closing = False

    def add(self, work: Work) -> None:
        """Queue one chain; it starts with the next :meth:`fill`."""
        self._pending.append(work)

    def fill(self) -> None:
        """Start or wake as many chains as there are free places."""
        try:
            self._fill()
        except BaseException as error:
            self._on_defect(error)
            raise

    async def without_place(self, wait: Awaitable[R]) -> R:
        """Wait for something while another chain uses this one's place."""
        task: Runner = asyncio.current_task()  # type: ignore[assignment]  # a chain is a task
        self._running.discard(task)
        self._waiting.add(task)
        self.fill()
        try:
            return await wait
        finally:
            # A chain that is cancelled (the engine closes) takes no place again.
            if not self._closing:
                place = asyncio.get_running_loop().create_future()
                self._resuming.append((task, place))
                self.fill()
                await place

    def spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Start something that :meth:`close` ends, with no place of its own."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel everything under way, and wait a moment until it has ended."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_S)

    @property
    def closing(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closing

    def _fill(self) -> None:
        while len(self._running) < self._limit() and not self._closing:
            if self._resuming:
                task, place = self._resuming.popleft()
                if not place.done() and not task.done():
                    self._waiting.discard(task)
                    self._running.add(task)
                    place.set_result(None)
            # A storm of failures must not start every chain there is.
            elif self._pending and len(self._waiting) < self._most_waiting:
                self._running.add(self.spawn(self._pending.popleft()()))
            else:
                break

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Give the place of a task that ended, however it did, to another chain."""
        try:
            is_chain = task in self._running or task in self._waiting
            self._tasks.discard(task)
            self._running.discard(task)
            self._waiting.discard(task)
            self._fill()
            # A chain deals with what is raised in it; others may be cancelled at any time.
            if not self._closing and (is_chain or not task.cancelled()):
                task.result()
        except BaseException as error:  # noqa: BLE001 - told to who can end judging
            self._on_defect(error)
