"""Whether the first question of a caption goes out before the others: where that pays, measured.

A server that caches prefixes computes a caption once, unless all questions about it come at once:
then each is computed. So the first question may have a head start: the others follow when its reply
is in. That pays only where a server has such a cache, and whether it does, and tells, is found out:
every other caption of the first ones has a head start, and of both kinds it is counted which share
of their prompts the endpoint says it had in its cache, and how long their replies took (as many
being in flight, twice as long is half as many a second). Where nothing is said of a cache, where no
more is found in it or where replies take longer, there is no head start from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt
from statistics import fmean, variance
from typing import Final, Literal

_FEW_SLOTS: Final = 2
"""Requests in flight with which questions follow one another as it is."""
_LEAST_CAPTIONS: Final = 6
"""Captions of each kind that are compared at least."""
_MOST_CAPTIONS: Final = 40
"""Those after which what is not clear by then does not matter."""
_LEAST_REPLIES: Final = 4
"""Replies of a caption that count: with fewer there was little to share."""
_LEAST_GAIN: Final = 0.01
"""Share of the prompts that must be found in the cache more than without."""
_MOST_LOSS: Final = log(1.05)
"""Logarithm of how many times as long replies may take."""
_SURELY: Final = 3.0
"""Standard errors that a difference is beyond: it is looked at more than once."""
_FIRST_HOLD_S: Final = 5.0
_LEAST_HOLD_S: Final = 0.25
_MOST_HOLD_S: Final = 30.0
_HOLD_LATENCIES: Final = 3.0
"""How long a caption's other questions are held at most: so many latencies, within bounds."""
_FADING: Final = 0.02
"""Weight of the latest latency in their mean."""


@dataclass(slots=True, eq=False)
class Observed:
    """What the replies to one caption's questions tell of a head start."""

    has_head_start: bool
    n_left: int
    """Questions that have not ended."""
    n_replies: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    """How long all of them took on the wire."""

    @property
    def share(self) -> float:
        """Share of the prompts' tokens that the endpoint had in its cache."""
        return self.cached_tokens / self.input_tokens

    @property
    def log_s(self) -> float:
        """Logarithm of the mean latency in seconds."""
        return log(max(1e-6, self.seconds / self.n_replies))


class HeadStart:
    """Decides who gets one; pure arithmetic, on what it is told.

    Args:
        n_slots: Most requests in flight.
        is_possible: Whether replies come one by one, and not in batches.
    """

    def __init__(self, n_slots: int, *, is_possible: bool = True) -> None:
        is_tried = is_possible and n_slots > _FEW_SLOTS
        self.state: Literal["tried", "on", "off"] = "tried" if is_tried else "off"
        self.why: str = "" if is_tried else "questions follow one another as it is"
        """Why it is on or off, empty while it is tried."""
        self._n_begun = 0
        self._with: list[Observed] = []
        self._without: list[Observed] = []
        self._latency_s = 0.0

    def begin(self, n_questions: int) -> bool | Observed:
        """Whether a caption that is about to begin gets one; what it tells then, while it is tried.

        Args:
            n_questions: Questions about it, >= 1; of one alone nothing can follow.
        """
        if self.state != "tried" or n_questions < _LEAST_REPLIES:
            return self.state == "on" and n_questions > 1
        self._n_begun += 1
        return Observed(has_head_start=self._n_begun % 2 == 0, n_left=n_questions)

    def on_reply(
        self, observed: Observed | None, *, input_tokens: int, cached_tokens: int, seconds: float
    ) -> None:
        """One request was answered by the endpoint.

        Args:
            observed: Of its caption, where that tells something.
            input_tokens: Of the request.
            cached_tokens: Those that the endpoint had in its cache.
            seconds: How long it took on the wire.
        """
        weight = _FADING if self._latency_s else 1.0
        self._latency_s += weight * (seconds - self._latency_s)
        if observed is not None:
            observed.n_replies += 1
            observed.input_tokens += input_tokens
            observed.cached_tokens += cached_tokens
            observed.seconds += seconds

    def on_end(self, observed: Observed) -> None:
        """One question about a caption ended, however it did."""
        observed.n_left -= 1
        is_telling = observed.n_replies >= _LEAST_REPLIES and observed.input_tokens > 0
        if observed.n_left or not is_telling or self.state != "tried":
            return
        (self._with if observed.has_head_start else self._without).append(observed)
        self._decide()

    @property
    def hold_s(self) -> float:
        """Seconds after which a caption's other questions follow, whatever became of the first."""
        if not self._latency_s:
            return _FIRST_HOLD_S
        return min(_MOST_HOLD_S, max(_LEAST_HOLD_S, _HOLD_LATENCIES * self._latency_s))

    def _decide(self) -> None:
        n_captions = min(len(self._with), len(self._without))
        if n_captions < _LEAST_CAPTIONS:
            return
        if not any(each.cached_tokens for each in (*self._with, *self._without)):
            self._settle("off", "the endpoint says nothing of a cache of prefixes")
            return
        gain, error = _difference([o.share for o in self._with], [o.share for o in self._without])
        slower, slower_error = _difference(
            [o.log_s for o in self._with], [o.log_s for o in self._without]
        )
        margin = _SURELY * error
        if slower - _SURELY * slower_error > _MOST_LOSS:
            self._settle("off", "replies take longer with it")
        elif gain - margin >= _LEAST_GAIN:
            self._settle("on", f"{gain:.1%} more of the prompts are found in the endpoint's cache")
        elif gain + margin < _LEAST_GAIN or n_captions >= _MOST_CAPTIONS:
            self._settle("off", "no more is found in the endpoint's cache with it")

    def _settle(self, state: Literal["on", "off"], why: str) -> None:
        self.state, self.why = state, why
        self._with.clear()
        self._without.clear()


def _difference(these: list[float], those: list[float]) -> tuple[float, float]:
    """Difference of two means, and its standard error, of samples of two or more (Welch)."""
    if min(len(these), len(those)) < 2:
        return 0.0, inf
    error = sqrt(variance(these) / len(these) + variance(those) / len(those))
    return fmean(these) - fmean(those), error
