"""How fast requests may go out: as fast as the endpoint takes them.

Where more than a few of a hundred are refused (429), there is a limit or there is noise:

- A *limit* refuses what goes beyond it. Requests are spaced out; their rate creeps up, and is cut a
  little whenever refusals come.
- *Noise* refuses a share of the requests whatever their rate. To slow down would gain nothing.

Which of them it is shows in a *trial*: for a moment, requests go out clearly more slowly than the
endpoint was seen to take them. What is still refused then is noise, and its share is the *base*:
from then on only refusals beyond it count. If the trial changed nothing, the rate goes back to what
it was; if it did, the limit is where the endpoint refused before. A trial is held when refusals
come first, and when they come at a rate that was found to be safe; so noise that begins, ends or
changes is noticed. More than ``_MOST_NOISE`` refused is always a limit.

Where few requests go out, a trial tells little: a few chance refusals more or less, and the base is
wrong. There the rate is drawn from what is believed of limit and noise, given all that was refused
at which rate (:mod:`.slow_pace`).

Refusals beyond the base are added up, and what is expected is taken off with every request (a
CUSUM): by chance alone the sum stays near 0, beyond a limit it grows without end. Refusals are
compared with what was sent, not with what was answered: they come soon, a reply whenever it likes.

What a provider's headers say of its limits comes first (:mod:`.address_limits`): that rate holds,
and refusals because of it are not counted here, so that no trial is held for them. Where headers
say that plenty is left, a refusal is noise, or of a limit that they do not tell of: it is tried out
which.

What a user allows at most (:mod:`.rate_cap`) is asked before all this. What it holds back says
nothing of the endpoint: to everything here it is as if there were less to send.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final

from lmms_eval_captions.judges.endpoint.address_limits import AddressLimits
from lmms_eval_captions.judges.endpoint.rate_cap import RateCap
from lmms_eval_captions.judges.endpoint.slow_pace import LEAST_RATE, SlowPace

_ASK_AGAIN_S: Final = 1.0
_WINDOW_S: Final = 5.0
_WINDOW_N: Final = 60
"""Of what was sent and refused, at least the latest so long and so many requests are counted."""
_FIRST_RATE: Final = 20.0
"""Least rate after the first refusals: little was sent yet, so what was taken tells little."""
_TOLERATED: Final = 0.03
"""Share of requests that may be refused beyond the base."""
_MOST_NOISE: Final = 0.4
"""Largest base."""
_SETTLE_S: Final = 0.5
"""For so long after a change of the rate, refusals may be of what went out before it."""
_CUT: Final = 0.95
"""What a cut leaves of the rate; less with noise, as the limit is noticed later."""
_SAFE: Final = 0.9
"""Below this share of what was taken, a limit does not refuse."""
_FEW_RATE: Final = 20.0
"""Requests a second up to which one trial tells too little: each refusal is remembered."""
_ONE: Final = 0.9
"""Excess of a single refusal, nearly."""
_TRIAL_RATE: Final = 0.7
"""Rate of a trial, as a share of what was taken before."""
_TRIAL_S: Final = 1.0
_TRIAL_N: Final = (40, 100)
"""Length of a trial, in seconds at least and in requests; the more where they are fast."""
_FAST_TRIAL_S: Final = 0.25
_FAST_TRIAL_N: Final = 250
"""The same where so many go out in so short a time: then these tell as much."""
_TRIAL_CLEAR: Final = 4.0
"""Refusals that noise would have brought: where none came, the trial is over."""
_SLOW_GROWTH: Final = 0.01
"""Growth of the rate a second, where the limit is known."""
_FAST_GROWTH: Final = 0.5
"""Growth a second while looking for the limit."""
_DOUBLE_EVERY_S: Final = 3.0
"""Growth doubles when no cut was needed for so long: the limit may be lifted."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """What was so before a trial."""

    rate: float
    """Requests a second, before refusals cut it."""
    taken: float
    """Requests a second that were not refused."""
    share: float
    """Share of requests that were refused."""


class Pacing:
    """The limit of requests a second; pure arithmetic on a given clock.

    Args:
        addresses: What each of the endpoint's addresses says of its limits.
        cap: The user's own limit, by default none.
    """

    def __init__(self, addresses: Sequence[AddressLimits] = (), cap: RateCap | None = None) -> None:
        self._addresses = addresses
        self._cap = cap or RateCap()
        self._capped_s = 0.0
        """How long this held the next request back when :meth:`take` last asked, in seconds."""
        self._told_rate = inf
        """Requests a second that these leave, all together, >= 0."""
        self._told_tokens = 1.0
        self._told_s = 0.0
        self.rate = inf
        """Requests a second that may go out; infinite until some were refused."""
        self.base = 0.0
        """Share of requests that are refused at any rate, in [0, ``_MOST_NOISE``]."""
        self._slow: SlowPace | None = None
        """What sets the rate where few requests go out."""
        self._trial: _Trial | None = None
        self._safe_rate = inf
        """At most at this rate, refusals are not those of a limit that is known."""
        self._top_rate = 0.0
        """Rate before the cuts since the last trial."""
        self._growth = _FAST_GROWTH
        """Growth a second right after a cut."""
        self._tokens = 0.0
        self._set_s = self._tick_s = -inf
        # Counted since the rate was last set, without most of what is long ago.
        self._since_s = -inf
        self._n_sent = self._n_refused = 0.0
        self._excess = 0.0
        """Refusals beyond those that are expected."""
        self._uneasy_s = -inf
        """When there were last so many that it may be a limit."""
        self._delay_s = 0.0
        """Mean time from a request to its refusal."""
        self._held_s = -inf
        """When the rate last held a request back."""
        self._n_free = 0
        """Requests since then."""

    def on_rate_limit(self, now_s: float, sent_s: float | None = None) -> None:
        """One request was refused as too fast: a limit, or noise?

        Args:
            now_s: When the refusal came.
            sent_s: When the request went out, by default just now.
        """
        sent_s = now_s if sent_s is None else sent_s
        self._delay_s += (now_s - sent_s - self._delay_s) / 20
        if self._slow is not None:
            self._slow.refuse(sent_s, now_s)
            self._steer(self._slow, now_s)
            return
        if sent_s < self._since_s:
            return
        self._n_refused += 1
        self._n_sent = max(self._n_sent, self._n_refused)
        self._excess += 1
        if self._excess > 0.5 * self._margin():
            self._uneasy_s = now_s
        # More than noise can be, by more than chance explains.
        if self._n_refused > _MOST_NOISE * self._n_sent + (1 + 2 * self.base) * sqrt(self._n_sent):
            self._search(now_s)
        elif self._trial is None and self._excess > self._margin():
            self._cut_or_try(now_s)

    def take(self, now_s: float) -> bool:
        """Whether one more request may go out now; counts it if so."""
        self._capped_s = self._cap.wait_s(now_s)
        if self._capped_s > 0.0 or not self._is_told_free(now_s):
            return False
        if self.rate < inf:
            self._refill(now_s)
            if self._tokens < 1.0:
                self._held_s, self._n_free = now_s, 0
                return False
            self._tokens -= 1.0
            self._n_free += 1
        self._told_tokens -= 1.0
        self._cap.count(now_s)
        self._count(now_s)
        return True

    def send_again(self, now_s: float) -> float:
        """Count a request that is sent once more at once, in another form.

        Args:
            now_s: Now.

        Returns:
            Seconds until it may go out, >= 0, by the user's own limit alone.
        """
        wait_s = self._cap.wait_s(now_s)
        self._cap.count(now_s)
        return wait_s

    def wait_s(self) -> float:
        """Seconds until :meth:`take` is worth asking again, > 0."""
        if self._capped_s > 0.0:
            return max(0.001, self._capped_s)
        wait_s = (1.0 - self._tokens) / self.rate
        if self._told_rate < inf:
            # What is told changes with every answer: it is asked for again soon.
            told_s = (1.0 - self._told_tokens) / max(self._told_rate, 1e-9)
            wait_s = max(wait_s, min(_ASK_AGAIN_S, told_s))
        return max(0.001, wait_s)

    @property
    def is_noise(self) -> bool:
        """Whether the refusals are those that come whatever the rate is, as far as is known."""
        return self.base > _TOLERATED or self.rate == inf

    def _is_told_free(self, now_s: float) -> bool:
        """Whether what is told of limits lets one more request out now."""
        elapsed_s, self._told_s = now_s - self._told_s, now_s
        rates = [limits.rate(now_s) for limits in self._addresses]
        self._told_rate = sum(rates) if rates else inf
        if self._told_rate == inf:
            self._told_tokens = 1.0
            return True
        most = max(1.0, self._told_rate / 20)
        self._told_tokens = min(most, self._told_tokens + elapsed_s * self._told_rate)
        return self._told_tokens >= 1.0

    def _count(self, now_s: float) -> None:
        if self._slow is not None:
            self._slow.send(now_s, self.rate)
            self._steer(self._slow, now_s)
            return
        if now_s < self._since_s:
            return
        if self._since_s == -inf:
            self._since_s = now_s
        self._n_sent += 1
        expected = self.base + _TOLERATED + 0.3 * _variance(self.base)
        self._excess = max(0.0, self._excess - expected)
        elapsed_s = now_s - self._since_s
        if self._n_sent >= 2 * _WINDOW_N and elapsed_s >= 2 * _WINDOW_S:
            # Noise may have become less: the base is at most what chance allows it to be.
            most_refused = self._n_refused + 2 * sqrt(self._n_refused + 1)
            self.base = min(self.base, most_refused / self._n_sent)
            self._n_sent /= 2
            self._n_refused /= 2
            self._since_s += elapsed_s / 2

    def _steer(self, slow: SlowPace, now_s: float) -> None:
        """Take the rate that follows from all that was refused."""
        self.base = min(_MOST_NOISE, slow.noise)
        self.rate = slow.rate
        if slow.is_over:
            # Few requests tell little of noise: a trial will, where there is some.
            self.base = 0.0
            self._leave_limit(self.rate)
            self._set_rate(self.rate, now_s)

    def _leave_limit(self, rate: float) -> None:
        """There is no limit any more, or far above this rate."""
        self.rate = rate
        self._slow = None
        self._safe_rate = inf
        self._growth = _FAST_GROWTH

    def _margin(self) -> float:
        """Excess that chance explains; a high rate has time to be sure."""
        return 30 * _variance(self.base) + max(_ONE, min(10.0, self.rate / 40))

    def _search(self, now_s: float) -> None:
        """Far too much is refused: find the limit, and then the base, anew."""
        # Few requests tell little: their refusals count less.
        kept = max(0.5, 1.0 - self._n_refused / (self._n_sent + 4))
        least = _FIRST_RATE if self.rate == inf else 0.0
        self._trial = None
        self._safe_rate, self._top_rate = inf, 0.0
        self._growth = _FAST_GROWTH
        self.base = 0.0
        self._set_rate(max(least, kept * self._rate_seen(now_s)), now_s)

    def _cut_or_try(self, now_s: float) -> None:
        n_sent, n_refused = self._n_sent, self._n_refused
        if self.rate > self._safe_rate:
            self._growth = max(_SLOW_GROWTH, self._growth / 4)
            self._cut(now_s)
        elif self.rate == inf and now_s - self._since_s < _SETTLE_S:
            return
        # A trial needs to know what was taken before.
        elif (n_sent >= 20 and n_refused >= 2) or 4 <= n_refused < 0.6 * n_sent:
            self._start_trial(now_s)

    def _cut(self, now_s: float) -> None:
        """The limit was passed: go below it, and know better where it is."""
        self._top_rate = max(self._top_rate, self.rate)
        kept = _CUT - self.base / 2
        self._set_rate(kept * self._rate_seen(now_s), now_s)

    def _start_trial(self, now_s: float) -> None:
        share = self._n_refused / self._n_sent
        taken = self._rate_seen(now_s) * (1.0 - share)
        self._trial = _Trial(max(self.rate, self._top_rate), taken, share)
        self._top_rate = 0.0
        self._set_rate(_TRIAL_RATE * taken, now_s)

    def _is_tried(self, trial: _Trial, now_s: float) -> bool:
        least_s = _FAST_TRIAL_S if self._n_sent >= _FAST_TRIAL_N else _TRIAL_S
        if now_s - self._since_s < max(least_s, 4 * self._delay_s):
            return False
        if self._n_refused == 0 and self._n_sent * trial.share >= _TRIAL_CLEAR:
            return True
        least, most = _TRIAL_N
        return self._n_sent >= max(least, min(most, _WINDOW_S * self.rate))

    def _end_trial(self, trial: _Trial, now_s: float) -> None:
        share = self._n_refused / self._n_sent
        self._trial = None
        self.base = min(share, _MOST_NOISE)
        self._growth = _FAST_GROWTH / 4
        if share > 0.7 * trial.share:
            self._safe_rate = inf
            self._set_rate(trial.rate, now_s)
        else:
            self._safe_rate = _SAFE * trial.taken
            self._set_rate(_CUT * trial.taken / (1.0 - self.base), now_s)

    def _set_rate(self, rate: float, now_s: float) -> None:
        self.rate = max(LEAST_RATE, rate)
        self._slow = None
        if rate < _FEW_RATE and (self._trial is None or self._trial.taken <= _FEW_RATE):
            self._trial = None
            # Not for secrets.
            self._slow = SlowPace(self.rate, random.Random(0))  # noqa: S311
        self._tokens = 0.0
        self._set_s = self._tick_s = now_s
        is_fast = rate >= _FAST_TRIAL_N
        self._since_s = now_s + (min(_SETTLE_S, 0.1 + 4 * self._delay_s) if is_fast else _SETTLE_S)
        self._n_sent = self._n_refused = self._excess = 0.0
        self._n_free = 0

    def _refill(self, now_s: float) -> None:
        elapsed_s = now_s - self._tick_s
        self._tick_s = now_s
        if self._trial is not None:
            if self._is_tried(self._trial, now_s):
                self._end_trial(self._trial, now_s)
        elif self._excess <= self._margin():
            if self._slow is None:
                self.rate *= 1.0 + min(1.0, self._growth_now(now_s) * elapsed_s)
            if self._is_lifted(now_s):
                self._leave_limit(inf)
                self._since_s = now_s
                self._n_sent = self._n_refused = self._excess = 0.0
        # At most a twentieth of a second's worth goes out at once.
        self._tokens = min(max(1.0, self.rate / 20), self._tokens + elapsed_s * self.rate)

    def _growth_now(self, now_s: float) -> float:
        """Growth a second of the rate."""
        calm_s = now_s - max(self._set_s, self._uneasy_s)
        doublings = min(10.0, calm_s // _DOUBLE_EVERY_S)
        return min(_FAST_GROWTH, self._growth * 2**doublings)

    def _is_lifted(self, now_s: float) -> bool:
        """Whether the rate is no limit any more: it held nothing back for long."""
        free_s = now_s - max(self._held_s, self._set_s)
        return self._n_free >= _WINDOW_N and free_s >= 2 * _DOUBLE_EVERY_S

    def _rate_seen(self, now_s: float) -> float:
        """Requests a second that went out, at most the rate."""
        elapsed_s = now_s - self._since_s
        if self.rate == inf:
            # At first all go out at once.
            return (1 + self._n_sent) / max(_SETTLE_S, elapsed_s)
        # Where the rate holds requests back, they go out at it; its mean since then may be less.
        if self._n_free <= 1 + self.rate / 10 or elapsed_s <= 0.0:
            return self.rate
        return min(self.rate, self._n_sent / elapsed_s)


def _variance(share: float) -> float:
    """Variance of one request's being refused or not."""
    return share * (1.0 - share)
