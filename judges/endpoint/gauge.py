"""How much of one thing a provider says is left, and how fast it may be used up.

Providers count in one of two ways, and their headers do not say in which:

- A *bucket* fills all the time, at a rate. ``reset`` is how long it takes to be full again: it is
  in proportion to what was used, and each use puts it off.
- A *window* begins anew at one moment. ``reset`` is the time until then, whatever was used.

Which of them it is shows from one answer to the next, see :meth:`Gauge._weigh`.

What one request costs is how far ``remaining`` falls with each that is sent. So what others use up,
other processes with the same key among them, counts as the price of one's own: all slow down, and
share. Sizes of requests need not be known either.
"""

from __future__ import annotations

from math import inf
from typing import Final

from lmms_eval_captions.judges.endpoint.answers.quotas import Quota

_RESERVE: Final = 0.25
"""Share of a bucket that is kept: the rate is that at which it fills where so much is left."""
_RETURN_S: Final = 5.0
"""In about so long, what is above or below the reserve is used or regained."""
_LEAST: Final = 0.1
"""Share of its filling at which a bucket is used, however empty it is said to be."""
_FEW: Final = 10.0
"""A bucket that holds fewer requests has no room for a burst,"""
_FEW_RATE: Final = 0.97
"""and is used at so much of its filling."""
_GUESSED_RATE: Final = 0.25
"""Share of its rate at which a window is used until an answer tells that it has begun."""
_SPREAD_S: Final = 60.0
"""What is left of a window is spread over the time until its end, over so long at most."""
_WEIGH_EVERY_S: Final = 2.0
"""Seconds between two answers that are compared."""
_COST_EVERY_N: Final = 20
"""Requests between two answers of which the cost is learnt."""
_CLEARLY_S: Final = 0.5
"""Seconds by which one way of counting must fit better; moments may be of whole seconds."""
_MOST_SURE: Final = 4
"""Comparisons that count: of a provider that changes its way, as many must speak against it."""
_PERIODS_S: Final = (1.0, 60.0, 3600.0, 86400.0)
"""In one of these a bucket fills."""
_CONTRADICTIONS: Final = 2.5
"""Requests answered of what was said to be used up, after which that is not believed."""


class Gauge:
    """What is left of one resource at one address; pure arithmetic on a given clock.

    Requests are numbered in the order of sending. What an answer says is of when its request was
    sent: what was sent since is taken off.
    """

    def __init__(self) -> None:
        self.cost = 1.0
        """What remains falls by so much with each request of ours, > 0."""
        self._is_cost_known = False
        self._limit = inf
        self._remaining = inf
        """What remained when request ``_number`` was sent, at ``_at_s``."""
        self._number = 0
        self._at_s = 0.0
        self._reset_at_s = inf
        """When all of it is there again."""
        self._is_guess = False
        """Whether that is so because the last window is over, and not because an answer said so."""
        self._window_s = 0.0
        """Longest time until then that was said."""
        self._used = self._used_s = self._used_n = 0.0
        """What was used, and how long it takes to come back, of the latest answers, and of how
        many."""
        self._least_filling = 0.0
        """What came back each second at least, as remained what should have been used."""
        self._is_bucket = True
        self._n_for_bucket = 0
        """Comparisons that speak for a bucket, less those for a window."""
        self._compared: tuple[float, float, float] | None = None
        """When an answer came, what was used, seconds until the reset: the next is compared."""
        self._costed: tuple[int, float, float] | None = None
        """Number, what remained and when, of the answer from which the cost is counted."""
        self._beyond = 0.0
        """Requests that were answered though nothing was left."""

    @property
    def is_believed(self) -> bool:
        """Whether what is said agrees with what is answered."""
        return self._beyond <= _CONTRADICTIONS

    def hear(self, quota: Quota, number: int, sent_s: float, *, is_refusal: bool) -> None:
        """Take in what an answer says.

        Args:
            quota: What it says.
            number: Of the request that it answers.
            sent_s: When that was sent.
            is_refusal: Whether the answer is a refusal (429).
        """
        if quota.reset_s is None or number < self._number:
            return
        self._doubt(quota, sent_s, is_refusal=is_refusal)
        limit = inf if quota.limit is None else quota.limit
        if limit < inf:
            used = limit - quota.remaining
            self._weigh(sent_s, used, quota.reset_s, limit)
            # Little by little forgotten; what little was used tells little, as both are rounded.
            self._used = 0.9 * self._used + used
            self._used_s = 0.9 * self._used_s + quota.reset_s
            self._used_n = 0.9 * self._used_n + 1.0
        else:
            self._is_bucket = False
        self._hear_reset(sent_s + quota.reset_s)
        if is_refusal:
            self._least_filling, self._costed = 0.0, None
        self._limit, self._remaining = limit, quota.remaining
        self._number, self._at_s = number, sent_s
        self._window_s = max(self._window_s, quota.reset_s)
        self._learn_cost()

    def left(self, now_s: float, n_sent: int) -> float:
        """What is left now, as far as is known; negative where too much was sent.

        Args:
            now_s: Now.
            n_sent: Number of the request that was sent last.
        """
        if not self._is_bucket and now_s >= self._reset_at_s:
            self._begin_window(now_s, n_sent)
        left = min(self._limit, self._remaining + self._came_back(now_s))
        return left - self.cost * (n_sent - self._number)

    def rate(self, now_s: float, n_sent: int) -> float:
        """Requests a second that may go out, >= 0; infinite where nothing is known.

        Args:
            now_s: Now.
            n_sent: Number of the request that was sent last.
        """
        left = self.left(now_s, n_sent)
        if left == inf or not self.is_believed:
            return inf
        if self._is_bucket:
            filling = self._filling()
            above = left - _RESERVE * self._limit
            if above > 0.0 and self._limit < _FEW * self.cost:
                # It has no room for what comes too early.
                return _FEW_RATE * filling / self.cost
            return max(_LEAST * filling, filling + above / _RETURN_S) / self.cost
        if left < self.cost:
            return 0.0
        until_s = min(_SPREAD_S, self._reset_at_s - now_s)
        rate = left / (self.cost * max(1e-3, until_s))
        return _GUESSED_RATE * rate if self._is_guess else rate

    def _came_back(self, now_s: float) -> float:
        """What came back since the latest answer."""
        return self._filling() * (now_s - self._at_s) if self._is_bucket else 0.0

    def _filling(self) -> float:
        """What comes back to a bucket each second."""
        if self._limit == inf:
            return inf
        if self._used > 0.0:
            # What is back in less than a second may be back in 0, as it is written.
            used_s = self._used_s if self._used_s > 0.0 else self._used_n
            return max(self._least_filling, self._used / used_s)
        return max(self._least_filling, self._limit / _SPREAD_S)

    def _hear_reset(self, reset_at_s: float) -> None:
        is_later = reset_at_s > self._reset_at_s + _CLEARLY_S
        if is_later and not self._is_bucket:
            self._costed = None
        if self._is_bucket or self._is_guess or is_later or self._reset_at_s == inf:
            self._reset_at_s = reset_at_s
        else:
            # An answer that was long in coming names the end of its window too early, but one that
            # named it far too late must not count for long.
            self._reset_at_s = max(reset_at_s, (self._reset_at_s + reset_at_s) / 2)
        self._is_guess = False

    def _begin_window(self, now_s: float, n_sent: int) -> None:
        """A new window: until an answer tells of it, it is taken to be as the last one."""
        self._remaining = self._limit
        self._number, self._at_s = n_sent, now_s
        self._reset_at_s = now_s + max(1.0, self._window_s)
        self._is_guess = True
        self._costed = None

    def _weigh(self, sent_s: float, used: float, reset_s: float, limit: float) -> None:
        """Compare an answer with an earlier one: is it a bucket, or a window?"""
        if self._compared is None:
            self._compared = sent_s, used, reset_s
        then_s, used_then, reset_then_s = self._compared
        if sent_s - then_s < _WEIGH_EVERY_S and abs(used - used_then) < limit / 10:
            if self._n_for_bucket == 0:
                share, near_s = used / limit, 1.0 + 0.1 * reset_s
                self._is_bucket = any(abs(reset_s - share * s) <= near_s for s in _PERIODS_S)
            return
        self._compared = sent_s, used, reset_s
        (low, low_s), (high, high_s) = sorted([(used, reset_s), (used_then, reset_then_s)])
        off_bucket = abs(low_s - low * high_s / high) if high > 0.0 else 0.0
        off_window = abs(sent_s + reset_s - then_s - reset_then_s)
        clearly = _CLEARLY_S + 0.02 * max(low_s, high_s)
        if abs(off_bucket - off_window) > clearly:
            n = self._n_for_bucket + (1 if off_bucket < off_window else -1)
            self._n_for_bucket = max(-_MOST_SURE, min(_MOST_SURE, n))
            self._is_bucket = self._n_for_bucket > 0

    def _learn_cost(self) -> None:
        """By how much what remains has fallen with each request, refilling left aside."""
        if self._costed is None:
            self._costed = self._number, self._remaining, self._at_s
        number, remaining, at_s = self._costed
        n = self._number - number
        if n < _COST_EVERY_N:
            return
        elapsed_s = max(1e-3, self._at_s - at_s)
        self._costed = self._number, self._remaining, self._at_s
        # A request costs 1 at least; times that are rounded may tell of a slower bucket.
        least = (n - (remaining - self._remaining)) / elapsed_s
        self._least_filling = max(0.9 * self._least_filling, least if self._is_bucket else 0.0)
        filled = self._filling() * elapsed_s if self._is_bucket else 0.0
        # What a full bucket flowed over is not known.
        sample = (remaining + filled - self._remaining) / n
        if sample > 0.0 and (not self._is_bucket or remaining + filled <= self._limit):
            weight = 0.3 if self._is_cost_known else 1.0
            self.cost = max(1.0, self.cost + weight * (sample - self.cost))
            self._is_cost_known = True

    def expect_cost(self, cost: float) -> None:
        """What a request is likely to cost, until that is learnt."""
        if not self._is_cost_known and cost > 0.0:
            self.cost = max(1.0, cost)

    def _doubt(self, quota: Quota, sent_s: float, *, is_refusal: bool) -> None:
        """Count what is answered though it was said that nothing is left."""
        if quota.remaining > 0.0:
            self._beyond = 0.0
        elif not is_refusal and self._remaining <= 0.0 and sent_s < self._reset_at_s:
            came_back = self._came_back(sent_s) / self.cost
            self._beyond = max(0.0, self._beyond + 1.0 - 1.5 * came_back)
