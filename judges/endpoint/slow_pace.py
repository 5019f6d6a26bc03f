"""The pace of few requests a second, where each refusal counts.

What is believed of the limit and of noise (:mod:`.limit_belief`) says how fast requests may go out.
To stay at the rate that seems best would teach nothing of others: it might be that the limit is
just below it and there is no noise, or that it is far above it and all refusals are noise. So
every few requests the rate is drawn from what the limit may be, by its probabilities (Thompson
sampling): what is uncertain is tried out, and what is known is made use of. Now and then it is a
little above what is known, to see a limit that is lifted.

Where far more, or far fewer, are refused than was expected, the endpoint has changed: then only
what was seen lately counts.

Where all are refused, one after the other, it is a window that is used up, or an outage, and tells
nothing of requests a second: a few go out until one is answered, and then as many as before.
A request counts as answered when its refusal would have come by now.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.limit_belief import LimitBelief

LEAST_RATE: Final = 0.1
_BLOCK_N: Final = 5
_BLOCK_S: Final = 1.0
"""So many requests, and for so long, one rate is tried out."""
_SPREAD: Final = 1.5
"""How far from the best rate another one is tried, and from the last one, as a factor."""
_LOOK: Final = 0.025
_LOOK_RATE: Final = 1.1
"""How often, and how far, requests go out faster than seems best, to see a limit that is lifted."""
_FAST_RATE: Final = 30.0
_AS_SEEN: Final = 1.2
"""So many times the rate that is seen, requests may go out without being held back."""
_SURELY: Final = 0.9
"""Where the limit is above this rate, with this probability, it is not one of few requests."""
_LATEST_N: Final = 200
"""Requests that are remembered one by one."""
_SINCE_CHANGE_N: Final = 20
"""Those that still count where an endpoint has changed."""
_DELAYS: Final = 2.0
"""So many times as long as refusals take, a request may still be refused."""
_IN_A_ROW: Final = (6, 12)
_WINDOW_RATE: Final = 2.0
_OPEN_N: Final = 8
"""So many refusals in a row, the more below that rate, after so many answers, are of a window that
is used up, or of an outage."""
_CLOSED: Final = 10.0
"""The rate is that much lower at most until something is taken again, and then as it was."""
_SLACK: Final = 0.1
_LEAST_MARGIN: Final = 4.0
_MARGIN: Final = 70.0
"""An endpoint has changed where the refusals that were not expected, less ``_SLACK`` for each
request, come to so many times the variance of one request (a CUSUM, which chance alone takes so far
once in some hundred thousand requests)."""
_LIMIT_SLACK: Final = 0.4
"""It has, too, where ``_LEAST_MARGIN`` refusals of the limit did not come, less so large a share of
those that were expected."""
_FAR_BELOW: Final = 0.02
"""Where the limit is expected to refuse so few, a rate tells nothing of it."""


@dataclass(slots=True)
class _Sent:
    """One request."""

    sent_s: float
    rate: float
    """Requests a second at which it went out."""
    expected: float
    """Probability that it would be refused."""
    is_refused: bool = False


class SlowPace:
    """The rate of requests, and what it follows from.

    Args:
        rate: Requests a second that go out at first.
        rng: Draws what is tried out.
    """

    def __init__(self, rate: float, rng: random.Random) -> None:
        self._rng = rng
        self._belief = _fresh_belief()
        self._latest: deque[_Sent] = deque(maxlen=_LATEST_N)
        self.noise = 0.0
        """Share of requests that are refused whatever the rate."""
        self.is_over = False
        """Whether the limit, if there is one, leaves more than a few requests a second."""
        self.rate = rate
        """Requests a second that go out: ``LEAST_RATE`` at least."""
        self._expected = (0.0, 0.0)
        """The latest rate, and the probability that a request was to be refused at it."""
        self._n_left = 0
        """Requests until another rate is drawn."""
        self._place = 0.0
        """Probability with which the limit is below what is taken for it; 1 to look beyond it."""
        self._untold: deque[_Sent] = deque()
        """Requests whose refusal may be under way."""
        self._delay_s = 0.0
        """Mean time from a request to its refusal."""
        self._n_in_a_row = 0
        """Refusals since a request was answered."""
        self._rate_before = rate
        """Requests a second when the first of them came."""
        self._n_open = _OPEN_N
        """Requests that were answered since nothing was taken at all."""
        self._closed_rate = 0.0
        """Requests a second before nothing was taken any more; 0 while some are."""
        self._too_many = self._too_few = 0.0
        """Refusals beyond those that are expected, and refusals that did not come."""

    def send(self, now_s: float, rate: float) -> None:
        """One request goes out, at so many a second."""
        self._tell_until(now_s - _DELAYS * self._delay_s)
        if len(self._latest) >= _BLOCK_N and now_s > self._latest[-_BLOCK_N].sent_s:
            # Where there is little to send, the rate that is allowed is not the one that is seen.
            seen = _BLOCK_N / (now_s - self._latest[-_BLOCK_N].sent_s)
            rate = min(rate, _AS_SEEN * seen)
        if rate != self._expected[0]:
            self._expected = (rate, self._belief.refused_at(rate))
        sent = _Sent(now_s, rate, self._expected[1])
        self._latest.append(sent)
        self._untold.append(sent)
        self._n_left -= 1
        if self._n_left <= 0 and not self._closed_rate:
            self._draw()
            self._reconsider()

    def refuse(self, sent_s: float, now_s: float) -> None:
        """The request that went out then was refused, now."""
        index = bisect_right(self._latest, sent_s, key=lambda sent: sent.sent_s) - 1
        if index < 0:
            return
        sent = self._latest[index]
        sent.is_refused = True
        delay_s = now_s - sent.sent_s
        self._delay_s += (delay_s - self._delay_s) / (10.0 if self._delay_s else 1.0)
        self._tell_until(sent.sent_s)
        if self._closed_rate:
            self.rate = max(LEAST_RATE, self._closed_rate / _CLOSED, self.rate / _SPREAD)
            return
        self._belief.refuse(sent.rate)
        self._too_many += 1.0
        if by_limit := self._by_limit(sent.expected):
            self._too_few = max(0.0, self._too_few - by_limit / sent.expected)
        if self._place == 1.0:
            # The limit is where it was.
            self._draw()
        self._n_in_a_row += 1
        if self._n_in_a_row == 1:
            self._rate_before = self.rate
        is_slow = self._rate_before < _WINDOW_RATE
        if self._n_in_a_row >= _IN_A_ROW[is_slow] and self._n_open >= _OPEN_N:
            self._close()
        else:
            self._reconsider()

    def _tell_until(self, until_s: float) -> None:
        """Take in the requests that went out until then: they were refused by now, or answered."""
        while self._untold and self._untold[0].sent_s <= until_s:
            sent = self._untold.popleft()
            if not sent.is_refused:
                self._n_in_a_row = 0
                self._n_open += 1
                if self._closed_rate:
                    self.rate, self._closed_rate, self._n_open = self._closed_rate, 0.0, 0
            if not self._closed_rate:
                self._belief.send(sent.rate)
                self._too_many = max(0.0, self._too_many - sent.expected - _SLACK)
                self._too_few += (1.0 - _LIMIT_SLACK) * self._by_limit(sent.expected)

    def _close(self) -> None:
        """Nothing is taken for a while, at any rate: that is no limit of requests a second."""
        self._closed_rate = self._rate_before
        self._believe(list(self._latest)[: -self._n_in_a_row - len(self._untold)])
        self._n_in_a_row = 0

    def _reconsider(self) -> None:
        """Take in what came of the latest requests."""
        self.noise = self._belief.noise()
        self._notice_change()
        best = self._belief.best_rate()
        drawn = self._belief.limit_at(self._place) if self._place < 1.0 else _LOOK_RATE * best
        tried = min(_SPREAD * best, max(best / _SPREAD, drawn))
        # Step by step: far from what was seen, little is known.
        if tried > _SPREAD * self.rate:
            tried, self._n_left = _SPREAD * self.rate, 1
        self.rate = max(LEAST_RATE, self.rate / _SPREAD, tried)
        self._expected = (0.0, 0.0)
        self.is_over = self._belief.limit_at(1.0 - _SURELY) > _FAST_RATE

    def _draw(self) -> None:
        """Choose what is tried out next."""
        self._n_left = max(_BLOCK_N, round(_BLOCK_S * self.rate))
        self._place = 1.0 if self._rng.random() < _LOOK else self._rng.random()

    def _by_limit(self, expected: float) -> float:
        """What is expected to be refused because of the limit, of what is expected in all."""
        return max(0.0, expected - self.noise - _FAR_BELOW)

    def _notice_change(self) -> None:
        margin = max(_LEAST_MARGIN, _MARGIN * self.noise * (1.0 - self.noise))
        if self._too_many < margin and self._too_few < _LEAST_MARGIN:
            return
        told = list(self._latest)[: len(self._latest) - len(self._untold)]
        self._believe(told[-_SINCE_CHANGE_N:])

    def _believe(self, sent: Sequence[_Sent]) -> None:
        """Believe what follows from these alone."""
        self._belief = _fresh_belief()
        self._too_many = self._too_few = 0.0
        for each in sent:
            self._belief.send(each.rate)
            if each.is_refused:
                self._belief.refuse(each.rate)


def _fresh_belief() -> LimitBelief:
    """Where nothing is known; numpy is imported only where something is refused."""
    from lmms_eval_captions.judges.endpoint.limit_belief import LimitBelief

    return LimitBelief()
