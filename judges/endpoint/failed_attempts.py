"""The failed attempts at one request."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lmms_eval_captions.judges.endpoint.limits import Flight
from lmms_eval_captions.judges.errors import JudgeUnavailableError


@dataclass(slots=True)
class FailedAttempts:
    """How often, how and since when one request has failed; seconds of ``time.monotonic``."""

    started_s: float
    """When it was first sent."""
    since_s: float
    """When it first failed."""
    n_failures: int = 0
    n_failed: int = 0
    """Failures, 429 excepted; one that took several times the time-out counts as so many."""
    n_timeouts: int = 0
    timed_out_s: float = 0.0
    """Seconds that went by until it timed out."""
    n_alone: int = 0
    """Those of ``n_failed`` before which others got through: it is the request that fails."""
    is_alone: bool = False
    """Whether others got through before the latest failure, of whatever kind."""
    latest_s: float = -inf

    def add(
        self, error: JudgeUnavailableError, flight: Flight, now_s: float, last_success_s: float
    ) -> None:
        """Count one more, given when any request was last answered."""
        self.n_failures += 1
        n_times = 1
        if error.timed_out:
            self.n_timeouts += 1
            self.timed_out_s += now_s - flight.sent_s
            n_times = max(1, round((now_s - flight.sent_s) / flight.timeout_s))
        self.is_alone = last_success_s >= max(self.started_s, self.latest_s)
        if not error.rate_limited:
            self.n_failed += n_times
            self.n_alone += n_times * self.is_alone
        self.latest_s = now_s
