"""The most requests a second that a user wants to be sent, whatever the endpoint would take.

Each request has its time, evenly after that of the one before it. One that goes out late moves the
next ones by no more than what is later than a twentieth of a second: timers that run out a little
late, or a busy process, do not make the rate smaller.
"""

from __future__ import annotations

from math import inf
from typing import Final

_LATE_S: Final = 0.05
"""So late a request may be, and the next ones are no later for it."""


class RateCap:
    """When the next request may go out; pure arithmetic on a given clock.

    In any T seconds at most ``1 + rate * (T + 1/20)`` are counted that went out when they might.

    Args:
        rate: Requests a second, > 0; ``None`` for no cap.

    >>> cap = RateCap(2.0)
    >>> cap.count(10.0)
    >>> round(cap.wait_s(10.0), 2), cap.wait_s(10.5)
    (0.45, 0.0)
    """

    def __init__(self, rate: float | None = None) -> None:
        self._spacing_s = 0.0 if rate is None else 1.0 / rate
        self._due_s = -inf

    def wait_s(self, now_s: float) -> float:
        """Seconds until one more request may go out, >= 0."""
        return max(0.0, self._due_s - now_s)

    def count(self, now_s: float) -> None:
        """Count one more request: it goes out now, or as soon as it may."""
        self._due_s = max(self._due_s, now_s - _LATE_S) + self._spacing_s
