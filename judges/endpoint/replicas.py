"""Which replica of an endpoint is asked about a caption: always the same one, if it is not busy.

A server that caches prefixes computes a caption once if all questions about it come to that server.
Each caption orders the replicas by rendezvous hashing, the same in every process (Thaler and
Ravishankar, A name-based mapping scheme for rendezvous, 1996).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import ceil, floor
from typing import Final

_BALANCE: Final = 1.1
"""Requests in flight that a replica may have, as a multiple of the mean."""
_MOST_KNOWN: Final = 4096
"""Captions whose order is kept."""


class Replicas:
    """Load and order of an endpoint's replicas.

    Args:
        names: Names of the replicas, at least one; the same in every process.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.in_flight = [0] * len(names)
        """Requests that each has."""
        self._keys = [blake2b(name.encode(), digest_size=16).digest() for name in names]
        self._down_until_s = [0.0] * len(names)
        self._order = lru_cache(maxsize=_MOST_KNOWN)(self._find_order)

    def __len__(self) -> int:
        return len(self.in_flight)

    def order(self, about: bytes) -> tuple[int, ...]:
        """Indices of all replicas in a caption's own order.

        Args:
            about: Digest of the caption.
        """
        return self._order(about)

    def _find_order(self, about: bytes) -> tuple[int, ...]:
        keys = [blake2b(about, key=key, digest_size=16).digest() for key in self._keys]
        return tuple(sorted(range(len(self)), key=keys.__getitem__))

    def choose(self, about: bytes | None, now_s: float) -> int:
        """Index of the replica for one more request, one that is up if there is one.

        Args:
            about: Digest of its caption; ``None`` for the replica that is least busy.
            now_s: The time.
        """
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
