"""How fast requests may go out: as many in flight as allowed, as fast as the endpoint takes them.

The number in flight starts small and doubles each round trip (*slow start*), so that an endpoint
with a low limit is not hit by hundreds of requests at once. Once more than a few of a hundred are
refused (429), requests are spaced out at the rate that the endpoint was seen to take; that rate
creeps up, is cut when refusals come again, and is lifted when none comes for long. The odd 429 of
an endpoint that is short of something for a moment slows nothing down.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Final

_START: Final = 32
"""Requests in flight before the first reply."""
_WINDOW_S: Final = 1.5
"""Replies of so long tell the rate that an endpoint takes."""
_FIRST_RATE: Final = 20.0
"""Least rate after the first 429: little was sent yet, so what was taken tells little."""
_TOLERATED: Final = 0.03
"""Share of refused requests above which the rate is cut."""
_SHARE_WINDOW_S: Final = 5.0
_LEAST_RATE: Final = 0.1
_LIVELY_RATE: Final = 3.0
"""Requests a second below which the rate changes more slowly: there is less to learn from."""
_CUT: Final = 0.95
_CUT_EVERY_S: Final = 0.5
_SLOW_GROWTH: Final = 0.01
"""Growth of the rate a second, right after a cut."""
_FAST_GROWTH: Final = 0.5
"""Growth a second while looking for the limit: after the first 429, and when it seems lifted."""
_DOUBLE_EVERY_S: Final = 3.0
"""Growth doubles when no 429 came for so long."""


class Pacing:
    """Limits of requests in flight and of requests a second; pure arithmetic on a given clock.

    Args:
        most: Upper bound of requests in flight, >= 1.
        start: Requests in flight before the first reply, by default few.
    """

    def __init__(self, most: int, *, start: int | None = None) -> None:
        self._most = most
        self._limit = min(most, start or _START)
        self._successes: deque[float] = deque()
        self._sent: deque[float] = deque()
        # Of the last seconds, and since the last cut.
        self._answered: deque[float] = deque()
        self._refused: deque[float] = deque()
        self._n_cuts = 0
        self._last_cut_s = -inf
        self._last_tick_s = -inf
        self._tokens = 0.0
        self.rate = inf
        """Requests a second that may go out; infinite until a 429 came."""

    @property
    def limit(self) -> int:
        """Requests that may be in flight now, in [1, ``most``]."""
        return self._limit

    def on_success(self, now_s: float) -> None:
        """One request was answered."""
        if self._limit < self._most and self.rate == inf:
            self._limit += 1
        _count(self._successes, now_s)
        _count(self._answered, now_s, _SHARE_WINDOW_S)

    def on_rate_limit(self, now_s: float) -> None:
        """One request was refused as too fast: cut, but once for all that went out together."""
        if now_s - self._last_cut_s < _CUT_EVERY_S:
            return
        _count(self._refused, now_s, _SHARE_WINDOW_S)
        _forget(self._answered, now_s - _SHARE_WINDOW_S)
        n_refused = len(self._refused)
        if n_refused <= _TOLERATED * (n_refused + len(self._answered)):
            return
        # Before the first reply only what went out tells how much may be taken.
        seen = self._successes or self._sent
        # One more than was counted: the window cuts through the last interval.
        taken = (1 + sum(s >= now_s - _WINDOW_S for s in seen)) / _WINDOW_S
        if self.rate == inf:
            self.rate = max(taken, _FIRST_RATE)
        else:
            self.rate = max(_LEAST_RATE, min(self.rate, max(taken, self.rate / 2)) * _CUT)
        self._limit = self._most
        self._n_cuts += 1
        self._last_cut_s = self._last_tick_s = now_s
        self._answered.clear()
        self._refused.clear()
        self._tokens = 0.0

    def take(self, now_s: float) -> bool:
        """Whether one more request may go out now; counts it if so."""
        if self.rate == inf:
            if not self._successes:
                _count(self._sent, now_s)
            return True
        self._refill(now_s)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait_s(self) -> float:
        """Seconds until :meth:`take` is worth asking again, > 0."""
        return max(0.001, (1.0 - self._tokens) / self.rate)

    def _refill(self, now_s: float) -> None:
        elapsed_s = now_s - self._last_tick_s
        self._last_tick_s = now_s
        self.rate *= 1.0 + min(1.0, self._growth(now_s) * elapsed_s)
        if self._is_lifted(now_s):
            self.rate = inf
            self._n_cuts = 0
        # At most a twentieth of a second's worth goes out at once.
        self._tokens = min(max(1.0, self.rate / 20), self._tokens + elapsed_s * self.rate)

    def _growth(self, now_s: float) -> float:
        pace = self._pace()
        if self._n_cuts < 2:
            return _FAST_GROWTH * pace
        doublings = min(10.0, (now_s - self._last_cut_s) * pace // _DOUBLE_EVERY_S)
        return min(_FAST_GROWTH, _SLOW_GROWTH * 2**doublings) * pace

    def _pace(self) -> float:
        """How fast time passes for the growth of the rate, in (0, 1]."""
        return min(1.0, self.rate / _LIVELY_RATE)

    def _is_lifted(self, now_s: float) -> bool:
        """Whether the rate is no limit any more: far above what is sent, and no 429 for long."""
        if (now_s - self._last_cut_s) * self._pace() < 2 * _DOUBLE_EVERY_S:
            return False
        return self.rate > 4 * max(1, len(self._successes)) / _WINDOW_S


def _count(times: deque[float], now_s: float, window_s: float = _WINDOW_S) -> None:
    """Add a moment, and forget those that left the window."""
    times.append(now_s)
    _forget(times, now_s - window_s)


def _forget(times: deque[float], before_s: float) -> None:
    while times and times[0] < before_s:
        times.popleft()
