"""Who may ask now: as many chains run as requests may be in flight, the others wait their turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

R = TypeVar("R")

Work = Callable[[], Awaitable[None]]


class Places:
    """Runs work in as many places as there are; to be used inside the event loop alone.

    A chain holds a place from its start to its end, but for the time it waits to ask again: then
    another chain has it. Work starts in the order it was added, so that the questions of one
    caption stay next to each other.

    Args:
        limit: Tells how many places there are now, >= 1.
        most_waiting: Bound of chains that wait without a place; beyond it none is started.
    """

    def __init__(self, limit: Callable[[], int], *, most_waiting: int) -> None:
        self._limit = limit
        self._most_waiting = most_waiting
        self._pending: deque[Work] = deque()
        self._resuming: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._n_running = 0
        self._n_waiting = 0
        self._closing = False

    def add(self, work: Work) -> None:
        """Queue one chain; it starts with the next :meth:`fill`."""
        self._pending.append(work)

    def fill(self) -> None:
        """Start or wake as many chains as there are free places."""
        while self._n_running < self._limit() and not self._closing:
            if self._resuming:
                waiter = self._resuming.popleft()
                if not waiter.done():
                    self._n_running += 1
                    waiter.set_result(None)
            # A storm of failures must not start every chain there is.
            elif self._pending and self._n_waiting < self._most_waiting:
                self._n_running += 1
                self.spawn(self._run(self._pending.popleft()))
            else:
                break

    async def without_place(self, wait: Awaitable[R]) -> R:
        """Wait for something while another chain uses this one's place."""
        self._n_running -= 1
        self._n_waiting += 1
        self.fill()
        try:
            return await wait
        finally:
            # A chain that is cancelled (the engine closes) takes no place again.
            if not self._closing:
                place = asyncio.get_running_loop().create_future()
                self._resuming.append(place)
                self.fill()
                await place
            self._n_waiting -= 1

    def spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Start something that :meth:`close` ends, with no place of its own."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel everything under way, and wait until it has ended."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def closing(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closing

    async def _run(self, work: Work) -> None:
        try:
            await work()
        finally:
            self._n_running -= 1
            self.fill()
