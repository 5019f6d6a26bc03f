"""Which caption's request goes next, and to which replica."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import ceil, floor
from typing import Final

from lmms_eval_captions.judges.endpoint.limits import Concurrency, Pace
from lmms_eval_captions.judges.errors import TooLateError


class Slots:
    """A semaphore whose size changes and whose rate is limited; for the event loop alone."""

    def __init__(self, concurrency: Concurrency, pace: Pace, on_free: Callable[[], None]) -> None:
        self._concurrency = concurrency
        self._pace = pace
        self._on_free = on_free
        self.n_held = 0
        """Slots that are taken."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_due = self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None

    def has_room_for(self, n: int) -> bool:
        """Return whether more than ``n`` slots are free that no request waits for."""
        return not self._waiting and self.n_held + n < self._concurrency.limit

    async def acquire(self, until_s: float | None = None) -> None:
        """Take a slot; hold it on the wire and while the reply is saved."""
        is_free = not self._waiting and self.n_held < self._concurrency.limit
        if is_free and not self._is_closed and self._pace.take(time.monotonic()):
            self.n_held += 1
            return
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        self._waiting.append(granted)
        timer = None
        if until_s is not None:
            timer = loop.call_later(until_s - time.monotonic(), _be_late, granted)
        self.hand_out()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.release()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def release(self) -> None:
        """Give up a slot; it is free in a moment, so that the chain's next request finds it."""
        self.n_held -= 1
        self.hand_out_soon()

    def hand_out_soon(self) -> None:
        """Hand out free slots in the loop's next round."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.hand_out)

    def hand_out(self) -> None:
        """Hand out free slots to those who wait, then to new chains."""
        self._is_due = False
        if self._is_closed:
            return
        while self._waiting and self.n_held < self._concurrency.limit:
            if self._waiting[0].done():
                self._waiting.popleft()
            elif self._pace.take(time.monotonic()):
                self._waiting.popleft().set_result(None)
                self.n_held += 1
            else:
                if self._timer is None:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(self._pace.wait_s(), self._on_timer)
                return
        self._on_free()

    def close(self) -> None:
        """Hand out nothing more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _on_timer(self) -> None:
        self._timer = None
        self.hand_out()


def _be_late(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_exception(TooLateError())


_BALANCE: Final = 1.1
"""Requests in flight that a replica may have, as a multiple of the mean."""
_MOST_KNOWN: Final = 4096
"""Captions whose order is kept."""


class Replicas:
    """Load and order of an endpoint's replicas."""

    def __init__(self, names: Sequence[str]) -> None:
        self.in_flight = [0] * len(names)
        """Requests that each has."""
        self._keys = [blake2b(name.encode(), digest_size=16).digest() for name in names]
        self._down_until_s = [0.0] * len(names)
        self._order = lru_cache(maxsize=_MOST_KNOWN)(self._find_order)

    def __len__(self) -> int:
        return len(self.in_flight)

    def order(self, about: bytes) -> tuple[int, ...]:
        """Indices of all replicas in a caption's own order."""
        return self._order(about)

    def _find_order(self, about: bytes) -> tuple[int, ...]:
        keys = [blake2b(about, key=key, digest_size=16).digest() for key in self._keys]
        return tuple(sorted(range(len(self)), key=keys.__getitem__))

    def choose(self, about: bytes | None, now_s: float) -> int:
        """Index of the replica for one more request, one that is up if there is one."""
        everyone = range(len(self))
        up = [i for i in everyone if self._down_until_s[i] <= now_s] or everyone
        if about is not None:
            mean = (sum(self.in_flight[i] for i in up) + 1) / len(up)
            most = max(ceil(mean), floor(_BALANCE * mean))
            for index in self.order(about):
                if index in up and self.in_flight[index] < most:
                    return index
        return min(up, key=self.in_flight.__getitem__)

    def failed(self, index: int, until_s: float) -> None:
        """Send a replica nothing for a while, as long as others are up."""
        self._down_until_s[index] = until_s

    def is_down(self, index: int, now_s: float) -> bool:
        """Whether a replica failed a while ago, and is sent nothing as long as others are up."""
        return self._down_until_s[index] > now_s

    def answered(self, index: int) -> None:
        """Take a replica to be up."""
        self._down_until_s[index] = 0.0
