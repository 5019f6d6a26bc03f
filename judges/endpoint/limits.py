"""Limits of requests in flight and requests a second, and the queue of requests that wait.

They follow refusals, time-outs, and the headers of answers. All of it except :class:`Slots` is
arithmetic on a given clock (``time.monotonic``) and waits for nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, sqrt
from typing import Final

from lmms_eval_captions.judges.endpoint.failures import quotas_in
from lmms_eval_captions.judges.errors import TooLateError

MOST_TIME: Final = 4.0
"""Longest time for a request after time-outs, as a multiple of its time-out."""


@dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """A request under way, with ``given_s`` seconds to be answered in; no two are equal."""

    timeout_s: float
    given_s: float
    sent_s: float


class Concurrency:
    """Requests that may be in flight: more, as long as that brings more replies a second.

    A provider's limit, a laptop's queue and random refusals all show in replies a second: if twice
    as many in flight do not bring clearly more, the number goes back and is kept for a while.
    """

    _START: Final = 16
    _GAIN: Final = 0.3
    """Share of the growth that replies a second must gain for more growth."""
    _HOLD_S: Final = (5.0, 60.0)
    """Seconds for which a number is kept, at first and at most."""

    def __init__(self, most: int, *, start: int | None = None) -> None:
        self._most = most
        self.limit = min(most, start or self._START)
        """Requests that may be in flight now, in [1, ``most``]."""
        self._best, self._before = 0.0, self.limit
        self._hold_s, self._held_until_s = self._HOLD_S[0], -inf
        self._n_replies, self._since_s, self._latency_s = 0, -inf, 0.0
        self._slowest_s: deque[float] = deque(maxlen=32)

    def time_for(self, timeout_s: float, n_timeouts: int) -> float:
        """Seconds until a reply must be complete, in [``timeout_s``, 4 ``timeout_s``]."""
        needed_s = 2.0 * max(self._slowest_s, default=0.0)
        return min(MOST_TIME * timeout_s, max(timeout_s * 2.0**n_timeouts, needed_s))

    def on_reply(self, flight: Flight, now_s: float) -> None:
        """Count an answered request."""
        latency_s = now_s - flight.sent_s
        self._slowest_s.append(latency_s)
        self._latency_s += (latency_s - self._latency_s) * (0.1 if self._latency_s else 1.0)
        if self._since_s == -inf:
            self._since_s = flight.sent_s
        self._n_replies += 1
        elapsed_s = now_s - self._since_s
        is_told = self._n_replies >= self.limit and elapsed_s >= self._latency_s
        if self.limit == self._most or now_s < self._held_until_s or not is_told:
            return
        # A server that only queues must still answer in time; small steps after a limit was found.
        most_growth = 4.0 if self._hold_s == self._HOLD_S[0] else 1.5
        growth = min(most_growth, 0.5 * flight.timeout_s / latency_s)
        rate, limit = self._n_replies / elapsed_s, self.limit
        if rate > self._best * (1.0 + self._GAIN * (limit / self._before - 1.0)):
            self._best, self._before = rate, limit
            self.limit = min(self._most, max(limit + 1, int(limit * growth)))
            self._restart(now_s, hold=growth <= 1.0)
        else:
            self.limit, self._best = self._before, max(rate, 0.9 * self._best)
            self._restart(now_s, hold=True)

    def on_timeout(self, flight: Flight, now_s: float) -> None:
        """Count a request that was not answered in time."""
        self._slowest_s.append(now_s - flight.sent_s)
        if flight.sent_s >= self._since_s:
            # Four that are answered in turn, each in time, are answered in four times it.
            least = 1 if flight.given_s >= MOST_TIME * flight.timeout_s else 4
            self.limit = min(self.limit, max(least, self.limit // 2))
            self._before, self._best = self.limit, 0.0
            self._restart(now_s, hold=True)

    def _restart(self, now_s: float, *, hold: bool) -> None:
        if hold:
            self._held_until_s = now_s + self._hold_s
            self._hold_s = min(self._HOLD_S[1], 2.0 * self._hold_s)
        self._n_replies, self._since_s = 0, now_s


class AddressLimits:
    """When an address may be asked again, by the headers of its answers.

    As many requests go out as are left; if none is, nothing goes out before the reset. A
    ``Retry-After`` holds everything back if nothing is left, or if the latest 8 requests were all
    refused; else it is that request's alone. Headers are not believed any more after 10 replies
    before one reset that all say that nothing is left.
    """

    _IN_A_ROW: Final = 8
    _LIES: Final = 10

    def __init__(self, patience_s: float = 900.0) -> None:
        self._patience_s = patience_s
        self._held_until_s = self._reset_s = -inf
        self._n_sent = self._n_in_a_row = self._n_at_none = 0
        self._left = self._limit = inf
        """Requests that may go out before the reset, and after it."""

    def wait_s(self, now_s: float) -> float:
        """Seconds until a request may go out; 0 or less for now."""
        if self._left < 1.0 and now_s >= self._reset_s:
            # The next answer says when the reset after this one is.
            self._left, self._reset_s = self._limit, now_s + 60.0
            self._n_at_none = 0
        return max(self._reset_s if self._left < 1.0 else -inf, self._held_until_s) - now_s

    def send(self) -> int:
        """Number of a request that goes out now."""
        self._n_sent += 1
        self._left -= 1.0
        return self._n_sent

    def hear_answer(self, headers: Mapping[str, str], number: int, now_s: float) -> None:
        """Read the headers of a reply to the request of that number."""
        self._n_in_a_row = 0
        if self._read(headers, number, now_s):
            self._n_at_none += 1
            if self._n_at_none >= self._LIES:
                self._held_until_s, self._left = -inf, inf

    def hear_refusal(
        self, headers: Mapping[str, str], number: int, now_s: float, retry_after_s: float | None
    ) -> bool:
        """Read the headers of a 429; return whether they say that nothing is left."""
        self._n_in_a_row += 1
        is_spent = self._read(headers, number, now_s)
        if retry_after_s is not None and (is_spent or self._n_in_a_row >= self._IN_A_ROW):
            self._hold(retry_after_s, now_s)
        return is_spent

    def _read(self, headers: Mapping[str, str], number: int, now_s: float) -> bool:
        if self._n_at_none >= self._LIES:
            return False
        is_spent = False
        for quota in quotas_in(headers):
            is_none = quota.remaining < 1.0 and quota.reset_s is not None
            is_spent |= is_none
            if quota.resource == "requests" and quota.reset_s is not None:
                # Requests that went out since are not counted in what remains.
                self._left = quota.remaining - (self._n_sent - number)
                self._limit = quota.limit or inf
                # Whole seconds are rounded down.
                reset_s = quota.reset_s + quota.reset_s.is_integer()
                self._reset_s = now_s + min(reset_s, self._patience_s)
            elif is_none:
                self._hold(quota.reset_s or 0.0, now_s)
        return is_spent

    def _hold(self, seconds: float, now_s: float) -> None:
        until_s = now_s + min(seconds, self._patience_s)
        self._held_until_s = max(self._held_until_s, until_s)


class Pace:
    """Requests a second that may go out: all, until more than a few are refused (429).

    Refusals come from a limit, or by chance whatever the rate. A trial tells which: for a moment
    requests go out clearly more slowly than they were answered. If as many are refused, it is
    chance, their share is the ``base``, and the rate is what it was. Else the rate is set to what
    was answered, and creeps up as long as few more than the base are refused. The user's own limit
    is ``max_rate``.
    """

    _TOLERATED: Final = 0.05
    """Share of requests that may be refused beyond the base."""
    _SURELY_LIMIT: Final = 0.5
    """Share of refusals that chance alone never has."""
    _TRIAL: Final = 0.75
    """Rate of a trial, as a share of what was answered."""
    _LEAST: Final = 0.1

    def __init__(
        self, addresses: Sequence[AddressLimits] = (), max_rate: float | None = None
    ) -> None:
        self._addresses = addresses
        self._spacing_s = 0.0 if max_rate is None else 1.0 / max_rate
        self._due_s = -inf
        """When the user's limit allows the next request."""
        self.rate = inf
        """Requests a second; infinite until too many were refused."""
        self.base = 0.0
        self._tokens, self._refilled_s, self._wait_s = 1.0, 0.0, 0.0
        self._trial: tuple[float, float, float] | None = None
        """Rate, answers a second and share refused before the trial."""
        self._n_calm = 0
        """Windows since the rate was last cut."""
        self._calm_rate, self._ceiling = 0.0, inf
        """Latest rate at which few were refused, and at which too many were."""
        self._closed_rate: float | None = None
        """Rate before nothing was answered any more."""
        self._n_sent = self._n_refused = self._n_held = 0
        self._since_s = -inf

    @property
    def is_noise(self) -> bool:
        """Return whether refusals come by chance, as far as is known."""
        return self.rate == inf or self.base > self._TOLERATED

    def take(self, now_s: float) -> bool:
        """Return whether one more request may go out now, and count it if so."""
        held_s = min((each.wait_s(now_s) for each in self._addresses), default=0.0)
        self._wait_s = max(held_s, self._due_s - now_s)
        if held_s > 0.0:
            # What is answered meanwhile says nothing of the rate.
            self._begin_window(-inf)
        if self._wait_s > 0.0:
            return False
        if self.rate < inf:
            elapsed_s, self._refilled_s = now_s - self._refilled_s, now_s
            # A twentieth of a second's worth may go out at once.
            most = max(1.0, self.rate / 20)
            self._tokens = min(most, self._tokens + elapsed_s * self.rate)
            if self._tokens < 1.0:
                self._n_held += 1
                self._wait_s = (1.0 - self._tokens) / self.rate
                return False
            self._tokens -= 1.0
        self.count(now_s)
        self._n_sent += 1
        if self._since_s == -inf:
            self._since_s = now_s
        self._look(now_s)
        return True

    def count(self, now_s: float) -> None:
        """Count a request that goes out for the user's limit."""
        # A request that is a little late does not delay the next ones.
        self._due_s = max(self._due_s, now_s - 0.05) + self._spacing_s

    def send_again(self, now_s: float) -> float:
        """Count a request that is sent again at once; seconds until it may go out."""
        wait_s = max(0.0, self._due_s - now_s)
        self.count(now_s)
        return wait_s

    def wait_s(self) -> float:
        """Seconds until :meth:`take` is worth asking again, in (0, 1]."""
        return min(1.0, max(0.001, self._wait_s))

    def on_answer(self) -> None:
        """Take note that the endpoint answers."""
        if self._closed_rate is not None:
            self.rate, self._closed_rate = self._closed_rate, None

    def on_refused(self, now_s: float, sent_s: float) -> None:
        """Count a request that was refused as too fast."""
        if sent_s >= self._since_s > -inf:
            self._n_refused += 1
            self._look(now_s)

    def _look(self, now_s: float) -> None:
        """Update the rate at the end of a window of requests."""
        n, elapsed_s = self._n_sent, now_s - self._since_s
        is_over = (n >= 20 and elapsed_s >= 1.0) or (n >= 250 and elapsed_s >= 0.25)
        # What is refused beyond a limit that was just passed need not fill a window.
        is_passed = self._n_calm > 0 and self._n_refused >= max(5, (0.4 + self.base) * n)
        if not (is_over or is_passed) and elapsed_s < 60.0:
            return
        share = self._n_refused / max(1, n)
        answered = (n - self._n_refused) / elapsed_s
        chance = 2.0 * sqrt(max(share, self.base) * (1.0 - self.base) / max(1, n))
        surely = self._SURELY_LIMIT + 1.0 / sqrt(max(1, n))
        if self._trial is not None:
            rate, answered_before, share_before = self._trial
            self._trial, self.base = None, min(share, self._SURELY_LIMIT)
            if share > 0.6 * share_before:
                self.rate = rate
            else:
                self._cut(answered_before / (1.0 - self.base))
            self._n_calm = 1
        elif not is_passed and share <= min(surely, self.base + self._TOLERATED + chance):
            self._grow(n / elapsed_s)
        elif self._n_refused >= n:
            self._closed_rate = self._closed_rate or self.rate
            self.rate = 1.0
        elif share > surely:
            self.base = 0.0
            self._cut(answered)
        elif self.rate < inf and self._n_calm > 0:
            # A limit without any slack refuses every other request that comes a little early.
            self._cut(max(answered / (1.0 - self.base), 0.97 * self._calm_rate))
        else:
            self._trial = (self.rate, answered, share)
            self.rate = max(self._LEAST, self._TRIAL * answered / (1.0 - self.base))
        self._begin_window(now_s)
        self._refilled_s = now_s

    def _begin_window(self, now_s: float) -> None:
        self._n_sent = self._n_refused = self._n_held = 0
        self._since_s = now_s

    def _cut(self, rate: float) -> None:
        self._ceiling = self.rate
        self.rate = max(self._LEAST, min(self.rate, rate))
        self._n_calm = 0

    def _grow(self, sent_rate: float) -> None:
        self._n_calm += 1
        if self.rate == inf:
            return
        self._calm_rate = self.rate
        if self.rate >= self._ceiling:
            self._ceiling = inf
        if self._n_held:
            grown = self.rate * (1.0 + min(0.5, 0.05 * 2.0 ** (self._n_calm // 3)))
            # Slowly near the last limit.
            self.rate = min(grown, max(1.01 * self.rate, 0.97 * self._ceiling))
        elif self.rate > 2.0 * sent_rate and self._n_calm >= 4:
            # It has not held anything back for a while: the limit may be gone.
            self.rate = inf


class Slots:
    """A semaphore whose size changes and whose rate is limited; for the event loop alone.

    The request with the lowest order is next.
    """

    def __init__(self, concurrency: Concurrency, pace: Pace, on_free: Callable[[], None]) -> None:
        self.concurrency = concurrency
        self.pace = pace
        self._on_free = on_free
        self.n_held = self._n_asked = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._is_due = self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, order: int, until_s: float | None = None) -> None:
        """Take a slot; hold it on the wire and while the reply is saved."""
        is_free = not self._waiting and self.n_held < self.concurrency.limit
        if is_free and not self._is_closed and self.pace.take(time.monotonic()):
            self.n_held += 1
            return
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        self._n_asked += 1
        heappush(self._waiting, (order, self._n_asked, granted))
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
        """Hand out free slots to those who wait, then start new chains."""
        self._is_due = False
        while self._waiting and self.n_held < self.concurrency.limit and not self._is_closed:
            if self._waiting[0][2].done():
                heappop(self._waiting)
            elif self.pace.take(time.monotonic()):
                heappop(self._waiting)[2].set_result(None)
                self.n_held += 1
            else:
                if self._timer is None:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(self.pace.wait_s(), self._on_timer)
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
