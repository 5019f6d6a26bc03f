"""How many requests may be in flight: as many as make the endpoint answer more a second.

A laptop's server answers four requests at once and queues the rest; a provider takes hundreds. The
number in flight starts small and grows fourfold each round trip, as long as even a server that only
queued would answer in time. Whether it does only queue shows in how latency grows: where four times
as many in flight take four times as long, nothing was gained (Little's law: requests a second =
in flight / latency). The number then goes back to where that begins, the *knee*, and is tried
higher again after a while. Latencies of one kind of request are compared with each other alone: a
long reply takes longer than a short one, whatever else is in flight.

A request that times out takes one from the number, so that it halves where most do, and is given
more time when it is sent again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log, sqrt
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
"""Share of the time-out that a server which only queues may take after growth, for the slowest of
the latest replies: the first to come are the short ones."""
_SLOW_GROWTH: Final = 1.25
"""Growth where replies take longer than that, but little more than half the time they are given."""
_NOT_LATE: Final = 0.6
"""Share of the time given that the slowest of the latest replies may have taken for this."""
_ROOM: Final = 2.0
"""Times the latest latencies that requests of a kind are given at least."""
_N_KNOWN: Final = 32
"""Latencies of a kind that tell how much time it needs, and of all that tell whether to grow."""
_LEVELS: Final = 2.0
"""Levels that the numbers in flight are sorted into, to each doubling."""
_N_LEVEL: Final = 32
"""Replies of a kind at a level that count, about: older ones fade."""
_N_NEEDED: Final = 12
"""Replies that are compared at least."""
_LOOK_EVERY: Final = 8
"""Replies after which those that are known are compared anew."""
_SETTLED: Final = 1024
"""Replies with all that may be in flight, after which no queue is looked for."""
_FULL: Final = 0.75
"""Share of the requests that may be in flight, from which that number is what held others back. Of
less, latency decides how many there are, and not they how long it is."""
_RECENT: Final = 4.0
"""Latencies since its last reply after which a level is not compared: the endpoint may be another
by now."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """One request under way; no two are equal."""

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
    limit: int = 1
    """Requests that might be in flight then."""


@dataclass(slots=True)
class _Level:
    """Replies of one kind at about one number in flight."""

    weight: float = 0.0
    log_n: float = 0.0
    """Mean logarithm of the number in flight."""
    log_s: float = 0.0
    """Mean logarithm of the latency in seconds."""
    variance: float = 0.0
    """Of that logarithm."""
    latest_s: float = -inf
    """When the latest of them came."""

    def add(self, log_n: float, log_s: float, now_s: float) -> None:
        """One more reply."""
        self.latest_s = now_s
        self.weight = min(self.weight + 1.0, _N_LEVEL)
        off = log_s - self.log_s
        self.log_n += (log_n - self.log_n) / self.weight
        self.log_s += off / self.weight
        self.variance += (off * (log_s - self.log_s) - self.variance) / self.weight


class Load:
    """The number of requests that may be in flight; pure arithmetic on a given clock.

    Args:
        most: Upper bound, >= 1.
        start: Requests in flight before the first reply, by default few.
    """

    def __init__(self, most: int, *, start: int | None = None) -> None:
        self._most = most
        self._limit = min(most, start or _START)
        self._room = float(self._limit)
        """The limit with what growth has gathered towards the next."""
        self._known: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_N_KNOWN))
        """Kind to the latest latencies in seconds."""
        self._answered_s: defaultdict[str, float] = defaultdict(lambda: -inf)
        """Kind to when the request was sent that was sent last of those that were answered."""
        self._shares: deque[tuple[float, float]] = deque(maxlen=_N_KNOWN)
        """Latencies of the latest replies, as shares of the time-out and of the time given."""
        self._levels: defaultdict[str, defaultdict[int, _Level]] = defaultdict(
            lambda: defaultdict(_Level)
        )
        """Kind to the replies at each level of the number in flight."""
        self._n_replies = 0
        self._n_full = 0
        """Replies since all that may be is in flight."""
        self._since_s = -inf
        """When a queue was last found: what was sent before tells nothing about the number now."""
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
        self._answered_s[flight.kind] = max(self._answered_s[flight.kind], flight.sent_s)
        self._n_full = self._n_full + 1 if self._limit == self._most else 0
        # All that may be is in flight: latencies at one number tell nothing of others.
        if flight.sent_s < self._since_s or self._n_full > _SETTLED:
            return
        self._shares.append((latency_s / flight.timeout_s, latency_s / flight.given_s))
        self._n_replies += 1
        if flight.n_in_flight >= _FULL * flight.limit:
            log_n = log(flight.n_in_flight)
            self._levels[flight.kind][_level_of(log_n)].add(log_n, log(latency_s), now_s)
            if self._n_replies % _LOOK_EVERY == 0:
                self._look_for_queue(log_n, now_s)
        if self._limit < self._most and now_s >= self._held_until_s:
            self._grow(flight.n_in_flight)

    def on_timeout(self, flight: Flight, now_s: float) -> None:
        """One request was not answered in time."""
        is_lost = flight.sent_s < self._answered_s[flight.kind]
        if not (is_lost and self._is_fast(flight.kind, flight.timeout_s)):
            # It would have taken longer still: the next ones of its kind are given more at once.
            self._known[flight.kind].append(now_s - flight.sent_s)
        # Four that are answered in turn, each in time, are answered in four times it.
        least = 1 if flight.given_s >= MOST_TIME * flight.timeout_s else _START
        if self._room > least:
            self._set_room(max(least, self._room * (1.0 - 1.0 / flight.n_in_flight)))

    def _is_fast(self, kind: str, timeout_s: float) -> bool:
        """Whether what is not answered in time must have been lost, where later ones were."""
        latencies_s = self._known[kind]
        return bool(latencies_s) and max(latencies_s) < timeout_s / 4

    def _grow(self, n_in_flight: int) -> None:
        """Let in more, after a reply to a request that was sent with so many in flight."""
        of_timeout, of_given = map(max, zip(*self._shares, strict=True))
        factor = min(_PROBE if self._hold_s else _GROWTH, _IN_TIME / of_timeout)
        if of_given <= _NOT_LATE:
            factor = max(factor, _SLOW_GROWTH)
        # Each of the replies of a round trip adds its part: not the first to come decides.
        grown = min(self._room + max(0.0, factor - 1.0), factor * max(_START, n_in_flight))
        self._set_room(max(self._room, grown))

    def _look_for_queue(self, log_n: float, now_s: float) -> None:
        """Go back to the knee where there is one somewhat below the number in flight."""
        first, last = _level_of(log_n - log(_RANGE)), _level_of(log_n)
        groups = [
            _recent([known[level] for level in range(first, last + 1) if level in known], now_s)
            for known in self._levels.values()
        ]
        found = _slope(groups)
        if found is None:
            return
        slope, error = found
        if slope < _QUEUE or slope - 1.64 * error < _SURELY:
            return
        # Up to the knee latency stays as it is, beyond it grows like the number in flight.
        smallest = min(level.log_n for group in groups for level in group)
        knee = smallest + max(0.0, 1.0 - slope) * (log_n - smallest)
        longest_s = exp(max(level.log_s for group in groups for level in group))
        least_s = max(_HOLD_S, _HOLD_LATENCIES * longest_s)
        self._hold_s = min(_MOST_HOLD_S, max(least_s, 2.0 * self._hold_s))
        self._held_until_s = now_s + self._hold_s
        self._set_room(min(self._room, max(_START, ceil(_MARGIN * exp(knee)))))
        self._since_s = now_s
        self._shares.clear()
        for known in self._levels.values():
            for level in [level for level in known if level > _level_of(log(self._room))]:
                del known[level]

    def _set_room(self, room: float) -> None:
        self._room = min(float(self._most), room)
        self._limit = max(1, int(self._room))


def _level_of(log_n: float) -> int:
    return floor(_LEVELS * log_n / log(2.0) + 1e-9)


def _recent(levels: list[_Level], now_s: float) -> list[_Level]:
    """Those of a kind's levels that tell of the endpoint as it is now."""
    longest_s = exp(max((level.log_s for level in levels), default=0.0))
    return [level for level in levels if now_s - level.latest_s <= _RECENT * longest_s]


def _slope(groups: list[list[_Level]]) -> tuple[float, float] | None:
    """Growth of log latency with log number in flight within kinds, and its standard error.

    Least squares with a mean for each kind; ``None`` where the numbers hardly differ.
    """
    n = sum(level.weight for group in groups for level in group)
    n_free = n - sum(map(bool, groups)) - 1
    if n < _N_NEEDED or n_free < 1:
        return None
    xx = xy = yy = 0.0
    for group in groups:
        weight = sum(level.weight for level in group) or 1.0
        mean_n = sum(level.weight * level.log_n for level in group) / weight
        mean_s = sum(level.weight * level.log_s for level in group) / weight
        for level in group:
            x, y = level.log_n - mean_n, level.log_s - mean_s
            xx += level.weight * x * x
            xy += level.weight * x * y
            yy += level.weight * (y * y + level.variance)
    if xx < n * _LEAST_SPREAD**2:
        return None
    slope = xy / xx
    return slope, sqrt(max(0.0, yy - slope * xy) / n_free / xx)
