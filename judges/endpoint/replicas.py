"""Which of several replicas is asked about a caption: always the same one, while its load allows.

A server that caches prefixes computes a caption once where all questions about it come to that
server. So each caption has a place on a ring of the replicas' names, and with it an order of them,
which every process finds by itself. Who is down, or has its share of the requests in flight, hands
on to the next in that order; where one leaves, the captions of the others stay where they are.

Source: V. Mirrokni, M. Thorup, M. Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2016
(arXiv 1608.01350); the bound is theirs, in units of requests in flight.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import ceil, floor
from typing import Final

BALANCE: Final = 1.1
"""Requests in flight that a replica may have, as a multiple of the mean of those that are up: so
much more than the mean is its load at most, in all. ``benchmarks/prefix_caches.py`` measures it."""
_N_POINTS: Final = 512
"""Points of each replica on the ring: their shares of it differ by some 4%."""
_POINT_BYTES: Final = 8
_MOST_KNOWN: Final = 4096
"""Captions whose order is kept."""


class Replicas:
    """The replicas of an endpoint: where each caption belongs, and how busy each is.

    Pure arithmetic on a given clock.

    Args:
        names: Of the replicas, at least one; the same in every process, in any order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.in_flight = [0] * len(names)
        """Requests that each has."""
        self._down_until_s = [0.0] * len(names)
        points = sorted(
            (_point(f"{name} {number}".encode()), index)
            for index, name in enumerate(names)
            for number in range(_N_POINTS if len(names) > 1 else 0)
        )
        self._points = [point for point, _ in points]
        self._owners = [index for _, index in points]
        # Asked for at every request: the captions in flight are few.
        self._order = lru_cache(maxsize=_MOST_KNOWN)(self._find_order)

    def __len__(self) -> int:
        return len(self.in_flight)

    def order(self, about: bytes) -> tuple[int, ...]:
        """All replicas in a caption's own order.

        Args:
            about: What tells the caption from others.
        """
        return self._order(about)

    def _find_order(self, about: bytes) -> tuple[int, ...]:
        owners = self._owners or [0]
        place = bisect_left(self._points, _point(about))
        order: dict[int, None] = {}
        while len(order) < len(self):
            order[owners[place % len(owners)]] = None
            place += 1
        return tuple(order)

    def choose(self, about: bytes | None, now_s: float) -> int:
        """The replica that one more request is sent to; of those that are up, where one is.

        Args:
            about: What tells its caption from others; ``None`` for the one that is least busy.
            now_s: The time.

        Returns:
            Its index. With a caption's request it has at most :func:`most_in_flight` of them.
        """
        if len(self) == 1:
            return 0
        up = self._up(now_s)
        if about is None:
            return min(up, key=self.in_flight.__getitem__)
        most = self._most(up)
        # One of them is below the bound: else there were more requests than there are.
        return next(i for i in self.order(about) if i in up and self.in_flight[i] < most)

    def has_room(self, order: Sequence[int], now_s: float) -> bool:
        """Whether one more request would go to the first replica of an order that is up."""
        up = self._up(now_s)
        return self.in_flight[next(i for i in order if i in up)] < self._most(up)

    def failed(self, index: int, until_s: float) -> None:
        """Send a replica nothing for a while, as long as others are up."""
        self._down_until_s[index] = until_s

    def is_down(self, index: int, now_s: float) -> bool:
        """Whether a replica failed a while ago, and is sent nothing as long as others are up."""
        return self._down_until_s[index] > now_s

    def answered(self, index: int) -> None:
        """Take a replica to be up."""
        self._down_until_s[index] = 0.0

    def _up(self, now_s: float) -> Sequence[int]:
        everyone = range(len(self))
        if not any(self._down_until_s):
            return everyone
        return [i for i in everyone if self._down_until_s[i] <= now_s] or everyone

    def _most(self, up: Sequence[int]) -> int:
        return most_in_flight(sum(self.in_flight[i] for i in up) + 1, len(up))


def most_in_flight(n_requests: int, n_replicas: int) -> int:
    """The most requests that one replica may have of so many in flight.

    Deviation: the paper rounds the bound up; here it is rounded down, to no less than the mean
    rounded up, as 5 of 16 would be a quarter more than the mean of four replicas.

    >>> [most_in_flight(n, 4) for n in (1, 4, 16, 64, 256)]
    [1, 1, 4, 17, 70]
    """
    mean = n_requests / n_replicas
    return max(ceil(mean), floor(BALANCE * mean))


def _point(name: bytes) -> int:
    return int.from_bytes(blake2b(name, digest_size=_POINT_BYTES).digest(), "big")
