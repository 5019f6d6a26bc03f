"""How many requests may be in flight: as many as make the endpoint answer more a second.

A laptop's server answers four requests at once and queues the rest; a provider takes hundreds. The
number in flight starts small and grows fourfold each round trip, as long as even a server that only
queued would answer in time. Whether it does only queue shows in how latency grows: where four times
as many in flight take four times as long, nothing was gained (Little's law: requests a second =
in flight / latency). The number then goes back to where that begins, the *knee*, and is tried
higher again after a while. Latencies of one kind of request are compared with each other alone: a
long reply takes longer than a short one, whatever else is in flight.

A request that times out halves the number, and is given more time when it is sent again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt
from typing import Final

MOST_TIME: Final = 4.0
"""Times its time-out that a request is given at most, after time-outs or where others are slow."""
_START: Final = 4
"""Requests in flight before the first reply: what llama.cpp answers at once by default."""
_GROWTH: Final = 4.0
"""Growth each round trip, at most."""
_PROBE: Final = 2.0
"""Growth where a queue was found before."""
_IN_TIME: Final = 0.5
"""Share of the time-out that a server which only queues may take after growth."""
_SLOW_GROWTH: Final = 1.25
"""Growth where replies take longer than that, but no longer than half the time they are given."""
_ROOM: Final = 2.0
"""Times the latest latencies that requests of a kind are given at least."""
_N_KNOWN: Final = 32
"""Latencies of a kind that tell how much time it needs."""
_N_COMPARED: Final = 128
_N_NEEDED: Final = 12
"""Replies that are compared at most, and at least."""
_LOOK_EVERY: Final = 8
"""Replies after which those that are known are compared anew."""
_RANGE: Final = 4.0
"""The largest number in flight is compared with those down to so small a part of it."""
_LEAST_SPREAD: Final = 0.25
"""Least standard deviation of the logarithms of the numbers in flight that are compared."""
_QUEUE: Final = 0.8
_SURELY: Final = 0.5
"""Growth of latency with the number in flight, as an exponent: at least so large, and with 95 in
100 certainty this large, where the server only queues."""
_MARGIN: Final = 1.5
"""Number in flight that is kept, as a multiple of the knee."""
_HOLD_S: Final = 10.0
_HOLD_LATENCIES: Final = 20.0
_MOST_HOLD_S: Final = 600.0
"""How long a number that was found is kept: so long, and so many latencies, at least; each time it
is found again twice as long, up to ten minutes."""


@dataclass(frozen=True, slots=True)
class Flight:
    """One request under way."""

    kind: str
    """Kind of the request; latencies of different kinds are not compared."""
    timeout_s: float
    """Its time-out."""
    given_s: float
    """Seconds that it has, see :meth:`Load.time_for`."""
    sent_s: float
    """When it was sent."""
    n_in_flight: int
    """Requests in flight then, itself included, >= 1."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """One reply."""

    kind: str
    log_n: float
    """Logarithm of the number in flight when its request was sent, itself included."""
    log_s: float
    """Logarithm of its latency in seconds."""


class Load:
    """The number of requests that may be in flight; pure arithmetic on a given clock.

    Args:
        most: Upper bound, >= 1.
        start: Requests in flight before the first reply, by default few.
    """

    def __init__(self, most: int, *, start: int | None = None) -> None:
        self._most = most
        self._limit = min(most, start or _START)
        self._known: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_N_KNOWN))
        """Kind to the latest latencies in seconds."""
        self._compared: deque[_Compared] = deque(maxlen=_N_COMPARED)
        self._n_replies = 0
        self._since_s = -inf
        """When the number was last lowered: what was sent before tells nothing about it."""
        self._held_until_s = -inf
        self._hold_s = 0.0
        """How long a number is kept; 0 until a queue was found."""

    @property
    def limit(self) -> int:
        """Requests that may be in flight now, in [1, ``most``]."""
        return self._limit

    def time_for(self, kind: str, timeout_s: float, n_timeouts: int) -> float:
        """Seconds until a reply must be complete.

        More than the time-out where the latest replies of this kind took half of it or longer, and
        after time-outs, unless replies are known to take far less: then the request was lost.

        Args:
            kind: Kind of the request.
            timeout_s: Its time-out.
            n_timeouts: How often it timed out before, >= 0.

        Returns:
            Seconds in [``timeout_s``, ``MOST_TIME * timeout_s``].
        """
        needed_s = _ROOM * max(self._known[kind], default=0.0)
        patient_s = timeout_s if self._is_fast(kind, timeout_s) else timeout_s * 2.0**n_timeouts
        return min(MOST_TIME * timeout_s, max(timeout_s, needed_s, patient_s))

    def on_reply(self, flight: Flight, now_s: float) -> None:
        """One request was answered."""
        latency_s = max(1e-6, now_s - flight.sent_s)
        self._known[flight.kind].append(latency_s)
        if flight.sent_s < self._since_s:
            return
        self._n_replies += 1
        self._compared.append(_Compared(flight.kind, log(flight.n_in_flight), log(latency_s)))
        if self._n_replies % _LOOK_EVERY == 0:
            self._look_for_queue(now_s)
        if self._limit < self._most and now_s >= self._held_until_s:
            self._grow(flight, latency_s)

    def on_timeout(self, flight: Flight, now_s: float) -> None:
        """One request was not answered in time."""
        if not self._is_fast(flight.kind, flight.timeout_s):
            # It would have taken longer still: the next ones of its kind are given more at once.
            self._known[flight.kind].append(now_s - flight.sent_s)
        if flight.sent_s >= self._since_s:
            # Four that are answered in turn, each in time, are answered in four times it.
            least = 1 if flight.given_s >= MOST_TIME * flight.timeout_s else _START
            self._lower(max(least, flight.n_in_flight // 2), now_s)

    def _is_fast(self, kind: str, timeout_s: float) -> bool:
        """Whether what is not answered in time must have been lost."""
        latencies_s = self._known[kind]
        return bool(latencies_s) and max(latencies_s) < timeout_s / 4

    def _grow(self, flight: Flight, latency_s: float) -> None:
        factor = min(_PROBE if self._hold_s else _GROWTH, _IN_TIME * flight.timeout_s / latency_s)
        if latency_s <= flight.given_s / _ROOM:
            factor = max(factor, _SLOW_GROWTH)
        if factor > 1.0:
            grown = max(int(factor * flight.n_in_flight), flight.n_in_flight + 1)
            self._limit = min(self._most, max(self._limit, grown))

    def _look_for_queue(self, now_s: float) -> None:
        """Go back to the knee where the latest replies show one."""
        largest = max(reply.log_n for reply in self._compared)
        replies = [reply for reply in self._compared if reply.log_n >= largest - log(_RANGE)]
        found = _slope(replies)
        if found is None:
            return
        slope, error = found
        if slope < _QUEUE or slope - 1.64 * error < _SURELY:
            return
        # Up to the knee latency stays as it is, beyond it grows like the number in flight.
        smallest = min(reply.log_n for reply in replies)
        knee = smallest + max(0.0, 1.0 - slope) * (largest - smallest)
        longest_s = exp(max(reply.log_s for reply in replies))
        least_s = max(_HOLD_S, _HOLD_LATENCIES * longest_s)
        self._hold_s = min(_MOST_HOLD_S, max(least_s, 2.0 * self._hold_s))
        self._held_until_s = now_s + self._hold_s
        self._lower(ceil(_MARGIN * exp(knee)), now_s)

    def _lower(self, limit: int, now_s: float) -> None:
        self._limit = max(1, min(self._limit, limit))
        self._since_s = now_s
        self._compared.clear()


def _slope(replies: list[_Compared]) -> tuple[float, float] | None:
    """Growth of log latency with log number in flight within kinds, and its standard error.

    Least squares with a mean for each kind; ``None`` where the numbers hardly differ.
    """
    by_kind: defaultdict[str, list[_Compared]] = defaultdict(list)
    for reply in replies:
        by_kind[reply.kind].append(reply)
    n_free = len(replies) - len(by_kind) - 1
    if len(replies) < _N_NEEDED or n_free < 1:
        return None
    xx = xy = yy = 0.0
    for group in by_kind.values():
        mean_n = sum(reply.log_n for reply in group) / len(group)
        mean_s = sum(reply.log_s for reply in group) / len(group)
        for reply in group:
            x, y = reply.log_n - mean_n, reply.log_s - mean_s
            xx, xy, yy = xx + x * x, xy + x * y, yy + y * y
    if xx < len(replies) * _LEAST_SPREAD**2:
        return None
    slope = xy / xx
    return slope, sqrt(max(0.0, yy - slope * xy) / n_free / xx)
