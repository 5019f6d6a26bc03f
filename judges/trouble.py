"""What is said of an endpoint that fails or is silent: what, how often, and until when it may."""

from __future__ import annotations

import re
import time
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.redaction import scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmms_eval_captions.judges.engine import EngineConfig
    from lmms_eval_captions.judges.errors import (
        JudgeError,
        JudgeStoppedError,
        JudgeUnavailableError,
    )
    from lmms_eval_captions.judges.meter import Meter

_EVERY_S: Final = 60.0
"""A line at most in so long, but for the first failure of each kind."""
_MOST_FIRSTS: Final = 8
"""Kinds whose first failure has a line of its own."""
_SHOWN_S: Final = 5.0
"""Silence from which the bar shows it."""
_CALM_S: Final = 5.0
"""Trouble is over when there was none for so long, and replies came."""
_STILL_S: Final = 30.0
"""Without a reply for so long, others are not said to be answered."""
_FAR_S: Final = 12 * 3600.0
"""Times so far ahead are told with their date."""
_FARTHEST_S: Final = 1e9
_GOES_ON: Final = "what was answered is kept, and the same command run again goes on"


class Trouble:
    """Notes failures and silence of one endpoint, and logs them; inside the event loop alone.

    It keeps no clock of its own: moments are those of ``time.monotonic``. The words are those of
    judges and of captioners alike.

    Args:
        config: How long what is waited for.
        meter: Tells how many requests are asked and answered; is told of silence.
    """

    def __init__(self, config: EngineConfig, meter: Meter) -> None:
        self._config = config
        self._meter = meter
        self._n_in_flight = 0
        self._firsts: set[str] = set()
        """Kinds of failure that there were so far."""
        self._stops: set[str] = set()
        self._said_s = -inf
        """When the latest line was logged."""
        self._n_calls = 0
        self._quiet_s = inf
        """Since when requests are asked and none was answered."""
        self._is_silence_told = False
        self._forget()

    def _forget(self) -> None:
        """Start afresh, as where there was no failure."""
        self._kinds = Counter[str]()
        """Failures of this trouble by their kind."""
        self._since_s = self._failing_s = self._failed_s = -inf
        """Its first failure, the first one after the latest reply, and its latest."""
        self._n_calls_before = self._n_calls_at_failure = -1
        """Replies there had been at its first failure, and at its latest."""
        self._took_s = 0.0
        """Seconds that the slowest failure took."""
        self._latest: JudgeUnavailableError | None = None
        self._is_told = False

    def failed(self, error: JudgeUnavailableError, sent_s: float, now_s: float) -> None:
        """Note that a request failed, and will be asked again if there is time.

        Args:
            error: How.
            sent_s: When it was sent.
            now_s: Now.
        """
        if not self._kinds:
            self._since_s, self._n_calls_before = now_s, self._meter.n_calls
        if self._meter.n_calls != self._n_calls_at_failure:
            self._failing_s = now_s
        self._kinds[error.kind] += 1
        self._failed_s, self._n_calls_at_failure = now_s, self._meter.n_calls
        self._took_s = max(self._took_s, now_s - sent_s)
        self._latest = error
        if error.kind not in self._firsts and len(self._firsts) < _MOST_FIRSTS:
            self._firsts.add(error.kind)
            self._say(
                f"endpoint trouble, {error.kind} for the first time: {self._words(error)}. "
                f"{self._outlook(now_s)}",
                now_s,
            )

    def stopped(self, model: str, error: JudgeStoppedError) -> None:
        """Say, once, that nothing more is asked of a model."""
        words = self._words(error)
        name = re.sub(r"\d+", "", f"{model} {words}")
        if name not in self._stops:
            self._stops.add(name)
            logger.warning("nothing more is asked of {}: {}; {}", model, words, _GOES_ON)
            self._forget()

    def tick(self, now_s: float, n_in_flight: int, first_due_s: Callable[[], float]) -> None:
        """Say what is due; to be called a few times a second.

        Args:
            now_s: Now.
            n_in_flight: Requests sent and not answered.
            first_due_s: Tells when the time of the first of them is up.
        """
        meter = self._meter
        self._n_in_flight = n_in_flight
        self._quiet_s = min(self._quiet_s, now_s)
        # A batch takes hours, and tells of itself.
        silent_s = now_s - self._quiet_s if self._config.mode == "now" else 0.0
        if meter.n_calls != self._n_calls or not meter.n_asking:
            if self._is_silence_told and meter.n_calls != self._n_calls:
                logger.info("replies come again after {:.0f} s without one", silent_s)
            self._is_silence_told = False
            self._n_calls, self._quiet_s, silent_s = meter.n_calls, now_s, 0.0
        is_silent = silent_s >= _SHOWN_S
        meter.silence = f"no reply for {silent_s:.0f} s, {self._asked()}" if is_silent else ""
        if self._is_over(now_s):
            self._say_over(now_s)
        elif not meter.n_asking and meter.n_done >= meter.n_submitted:
            self._forget()
        elif now_s - self._said_s < _EVERY_S or not meter.n_asking:
            return
        elif self._kinds and (self._failed_s > self._said_s or is_silent):
            since, words = _clock(self._since_s - now_s), self._words(self._latest)
            self._say(
                f"endpoint trouble since {since}: {self._counts()}, {self._replies(silent_s)}, "
                f"{self._asked()}. The latest: {words}. {self._outlook(now_s)}",
                now_s,
            )
        elif silent_s >= _EVERY_S and n_in_flight:
            self._is_silence_told = True
            self._say(
                f"no reply for {silent_s:.0f} s and no failure, {self._asked()}. The first of them "
                f"has until {_clock(first_due_s() - now_s)}, then it is asked again",
                now_s,
            )

    def _is_over(self, now_s: float) -> bool:
        """Whether replies came after the latest failure, and none has failed for long enough."""
        meter = self._meter
        if not self._kinds or meter.n_calls == self._n_calls_at_failure:
            return False
        # Where others were answered, or failures take long, the next one may be some way off.
        was_outage = self._n_calls_at_failure == self._n_calls_before
        calm_s = _CALM_S if was_outage and self._took_s < _CALM_S else _EVERY_S
        return now_s - self._failed_s >= calm_s or meter.n_done >= meter.n_submitted

    def _say_over(self, now_s: float) -> None:
        if self._is_told:
            logger.info(
                "endpoint trouble is over: replies come, and the latest failure was at {}; {} "
                "since {}",
                _clock(self._failed_s - now_s),
                self._counts(),
                _clock(self._since_s - now_s),
            )
        self._forget()

    def _say(self, text: str, now_s: float) -> None:
        self._said_s, self._is_told = now_s, True
        logger.warning("{}", text)

    def _words(self, error: JudgeError | None) -> str:
        return scrub(str(error), self._config.api_key, *self._config.urls)

    def _counts(self) -> str:
        return ", ".join(f"{n:,} x {kind}" for kind, n in self._kinds.most_common())

    def _replies(self, silent_s: float) -> str:
        n_replies = self._meter.n_calls - self._n_calls_before
        silence = f"no reply for {silent_s:.0f} s"
        if not n_replies:
            return silence
        return f"{n_replies:,} replies" + (f", {silence}" if silent_s >= _SHOWN_S else "")

    def _asked(self) -> str:
        n_waiting = self._meter.n_asking - self._n_in_flight
        waiting = f", {n_waiting:,} waiting to be asked" if n_waiting > 0 else ""
        return f"{self._n_in_flight:,} in flight{waiting}"

    def _outlook(self, now_s: float) -> str:
        """Until when what failed is asked again, and what then."""
        config, meter = self._config, self._meter
        n_attempts, patience_s = config.n_attempts, config.patience_s
        if config.mode == "batch":
            return (
                f"It goes into another batch, {n_attempts} in all; without a reply from those its "
                "question is unscored"
            )
        if meter.n_calls > self._n_calls_before and now_s - self._quiet_s < _STILL_S:
            return (
                "Others are answered. What fails is asked again, this request until "
                f"{_clock(patience_s)} at the latest; then its question is unscored, and the same "
                "command run again asks it anew"
            )
        return (
            f"It is waited for until {self._until(now_s)}. If nothing is answered by then, nothing "
            f"more is asked: {_GOES_ON}"
        )

    def _until(self, now_s: float) -> str:
        """When an endpoint that answers nothing is given up."""
        config = self._config
        latest = _clock(self._failing_s - self._took_s + config.patience_s - now_s)
        if all(kind == "HTTP 429" for kind in self._kinds):
            return f"{latest} at the latest"
        if self._meter.n_calls:
            until_s = self._failing_s + config.outage_patience_s
            least = f"{_clock(until_s - now_s)} at least, " if until_s > now_s else ""
            return f"{least}{latest} at the latest"
        waits = (config.backoff_s * 2**n for n in range(config.n_attempts - 1))
        waits_s = sum(min(config.max_backoff_s, wait_s) for wait_s in waits)
        until_s = self._since_s + waits_s + (config.n_attempts - 1) * self._took_s
        until = f"about {_clock(until_s - now_s)}" if until_s > now_s else f"{latest} at the latest"
        return f"{until}, {config.n_attempts} times, as it has never answered"


def _clock(in_s: float) -> str:
    """The local time of day so many seconds from now."""
    in_s = min(in_s, _FARTHEST_S)
    shape = "%Y-%m-%d %H:%M" if abs(in_s) > _FAR_S else "%H:%M:%S"
    return time.strftime(shape, time.localtime(time.time() + in_s))
