"""What one address says of its limits, and the rate that this leaves.

Several addresses are several limits, which add up; where they stand for one account, each says what
is left of it. Nothing is taken to be ours alone: what is left is what the provider says.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from lmms_eval_captions.judges.endpoint.answers.quotas import quotas_in
from lmms_eval_captions.judges.endpoint.gauge import Gauge

_FORGOTTEN_S: Final = 60.0
"""After so long without a word on limits, answers without one mean that there are none."""
_LIMIT_N: Final = 8
_LIMIT_SHARE: Final = 0.5
"""So many refusals and no answer since the first of them, and so much of what was sent meanwhile,
are those of a limit: chance alone refuses less."""
_SPENT_REQUESTS: Final = 2.0
_SPENT_SHARE: Final = 0.01
"""Where so little is left, in requests or as a share of the limit, a refusal is because of it."""
_HELPS_SHARE: Final = 0.05
_HELPS_N: Final = 8.0
"""Where refusals come on and on though what is said is kept to, more of a hundred, by so many, what
is said is not enough to go by."""
_LOOK_S: Final = 300.0
"""Where nothing is left for longer, but no answer asks to wait, so often one goes out to see."""
_HEED_EVERY_S: Final = 0.02
_PLENTY: Final = 0.1
"""Where such a share of everything is left, answers are read so often: hundreds a second cost time,
and tell what one tells."""


class AddressLimits:
    """The limits of one address; pure arithmetic on a given clock.

    Args:
        patience_s: Nothing that is said holds requests back for longer.
    """

    def __init__(self, patience_s: float = 900.0) -> None:
        self._patience_s = patience_s
        self._gauges: dict[str, Gauge] = {}
        """What is counted to what is left of it."""
        self._heard_s = -inf
        self._n_sent = 0
        self._sent_s = -inf
        """When a request was last sent."""
        self._heed_s = -inf
        """Answers to what was sent before tell nothing new."""
        self._held_until_s = -inf
        """Nothing goes out before, as a refusal asked for."""
        self._first_refused = 0
        """Number of the first request that was refused since one was answered; 0 for none."""
        self._n_refused = 0
        """Refusals since then."""
        self._excess = 0.0
        """Refusals beyond those that are expected where what is said is kept to."""
        self._n_known = 0
        """Number of the request that was sent last when the latest of these came."""

    @property
    def is_limited(self) -> bool:
        """Whether anything is known that may hold requests back."""
        return bool(self._gauges) or self._held_until_s > -inf

    def rate(self, now_s: float) -> float:
        """Requests a second that may go out now, >= 0; infinite where no limit is known."""
        if not self.is_limited:
            return inf
        if now_s - self._sent_s >= self._patience_s:
            return inf
        if now_s < self._held_until_s:
            return 0.0
        rate = min((g.rate(now_s, self._n_sent) for g in self._gauges.values()), default=inf)
        return inf if rate == 0.0 and now_s - self._sent_s >= _LOOK_S else rate

    def due(self, now_s: float) -> float:
        """How far the time has come for the next request here, of several addresses, in [0, 1]."""
        if not self.is_limited:
            return 1.0
        rate = self.rate(now_s)
        return 1.0 if rate == inf else min(1.0, (now_s - self._sent_s) * rate)

    def send(self, now_s: float) -> int:
        """The number of a request that goes out now, >= 1."""
        self._n_sent += 1
        self._excess = max(0.0, self._excess - _HELPS_SHARE)
        self._sent_s = now_s
        return self._n_sent

    def hear_answer(
        self, headers: Mapping[str, str], number: int, sent_s: float, *, n_tokens: int = 0
    ) -> None:
        """Take in the headers of an answer.

        Args:
            headers: Those of the answer.
            number: That of the request.
            sent_s: When it was sent.
            n_tokens: What it took in and gave out; 0 where that is not known.
        """
        if number > self._first_refused:
            self._first_refused = self._n_refused = 0
        if sent_s < self._heed_s:
            return
        quotas = quotas_in(headers)
        if all(q.limit is not None and q.remaining > _PLENTY * q.limit for q in quotas):
            self._heed_s = sent_s + _HEED_EVERY_S
        if not quotas:
            if self._gauges and sent_s - self._heard_s > _FORGOTTEN_S:
                self._gauges.clear()
            return
        self._heard_s = sent_s
        for quota in quotas:
            gauge = self._gauge(quota.resource)
            if quota.resource != "requests":
                gauge.expect_cost(n_tokens)
            gauge.hear(quota, number, sent_s, is_refusal=False)

    def hear_refusal(
        self,
        headers: Mapping[str, str],
        number: int,
        sent_s: float,
        *,
        now_s: float,
        retry_after_s: float | None,
    ) -> bool:
        """Take in the headers of a refusal (429).

        What they ask to wait holds everything back where they say that nothing is left, or where
        nearly all is refused. Else it is that one request's: it may have been refused by chance.

        Args:
            headers: Those of the refusal.
            number: That of the request.
            sent_s: When it was sent.
            now_s: When the refusal came.
            retry_after_s: Seconds that it asks to wait, ``None`` where it does not.

        Returns:
            Whether they say that a limit that they tell of is the cause, and keeping to what they
            say of it helps.
        """
        self._first_refused = self._first_refused or number
        self._n_refused += 1
        is_spent = False
        for quota in quotas_in(headers):
            self._heard_s = sent_s
            gauge = self._gauge(quota.resource)
            gauge.hear(quota, number, sent_s, is_refusal=True)
            spent = max(_SPENT_REQUESTS * gauge.cost, _SPENT_SHARE * (quota.limit or 0.0))
            is_spent |= quota.remaining < spent and gauge.is_believed
        n_since = self._n_sent - self._first_refused + 1
        is_limit = self._n_refused >= max(_LIMIT_N, _LIMIT_SHARE * n_since)
        if retry_after_s is not None and (is_spent or is_limit):
            until_s = now_s + min(retry_after_s, self._patience_s)
            self._held_until_s = max(self._held_until_s, until_s)
        # What was under way when nothing was left is refused all together, and counts once.
        if is_spent and number > self._n_known:
            self._excess, self._n_known = self._excess + 1.0, self._n_sent
        return is_spent and self._excess <= _HELPS_N

    def _gauge(self, resource: str) -> Gauge:
        gauge = self._gauges.get(resource)
        if gauge is None:
            gauge = self._gauges[resource] = Gauge()
        return gauge
