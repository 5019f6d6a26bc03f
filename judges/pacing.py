"""How many requests may be in flight: as many as allowed, fewer while the endpoint says 429."""

from __future__ import annotations

_CUT = 0.8
_CUT_EVERY_S = 0.5


class Pacing:
    """Additive increase, multiplicative decrease of the number of requests in flight.

    Args:
        most: Upper bound, >= 1; also where it starts.
    """

    def __init__(self, most: int) -> None:
        self._most = float(most)
        self._limit = float(most)
        self._last_cut_s = float("-inf")

    @property
    def limit(self) -> int:
        """Requests that may be in flight now, in [1, ``most``]."""
        return max(1, int(self._limit))

    def on_success(self) -> None:
        """One request was answered: about one more a round trip."""
        if self._limit < self._most:
            self._limit = min(self._most, self._limit + 1.0 / self._limit)

    def on_rate_limit(self, now_s: float) -> None:
        """A request was refused as too fast: cut, but once for all that were in flight together."""
        if now_s - self._last_cut_s >= _CUT_EVERY_S:
            self._last_cut_s = now_s
            self._limit = max(1.0, self._limit * _CUT)
