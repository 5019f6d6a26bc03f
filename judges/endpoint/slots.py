"""Slots for requests on the wire, first come first served."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from lmms_eval_captions.judges.endpoint.limits import Pace
from lmms_eval_captions.judges.errors import TooLateError


class Slots:
    """A semaphore whose size changes and whose rate is limited; for the event loop alone.

    Args:
        limit: Returns the number of slots, >= 1.
        pace: Rate at which requests may go out; who waits for it holds no slot.
        on_free: Called when a slot is free that no request waits for.
    """

    def __init__(self, limit: Callable[[], int], pace: Pace, on_free: Callable[[], None]) -> None:
        self._limit = limit
        self._pace = pace
        self._on_free = on_free
        self.n_held = 0
        """Slots that are taken."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None

    def has_room_for(self, n: int) -> bool:
        """Return whether more than ``n`` slots are free that no request waits for."""
        return not self._waiting and self.n_held + n < self._limit()

    async def acquire(self, until_s: float | None = None) -> None:
        """Take a slot; hold it on the wire and while the reply is saved.

        Args:
            until_s: Time (:func:`time.monotonic`) until which it is waited for.

        Raises:
            TooLateError: If it is not free by then.
        """
        if not self._waiting and self.n_held < self._limit() and self._pace.take(time.monotonic()):
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
        while self._waiting and self.n_held < self._limit():
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
        self._limit = lambda: 0
        if self._timer is not None:
            self._timer.cancel()

    def _on_timer(self) -> None:
        self._timer = None
        self.hand_out()


def _be_late(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_exception(TooLateError())
