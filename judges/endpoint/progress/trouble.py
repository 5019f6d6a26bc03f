"""What is logged of an endpoint that fails or is silent: what, how often, and until when it may."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.progress.outlook import Failures, clock, outlook
from lmms_eval_captions.judges.endpoint.redaction import scrub

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmms_eval_captions.judges.endpoint.config import EngineConfig
    from lmms_eval_captions.judges.endpoint.progress.meter import Meter
    from lmms_eval_captions.judges.errors import (
        JudgeError,
        JudgeStoppedError,
        JudgeUnavailableError,
    )

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
        self._failures = Failures()
        """Those since it was last calm."""
        self._n_in_flight = 0
        self._firsts: set[str] = set()
        """Kinds of failure whose first one was told."""
        self._stops: set[str] = set()
        self._said_s = -inf
        """When the latest line was logged."""
        self._n_calls = 0
        self._quiet_s = inf
        """Since when requests are asked and none was answered."""
        self._is_silence_told = False

    def failed(self, error: JudgeUnavailableError, sent_s: float, now_s: float) -> None:
        """Note that a request failed, and will be asked again if there is time.

        Args:
            error: How.
            sent_s: When it was sent.
            now_s: Now.
        """
        self._failures.add(error, sent_s=sent_s, now_s=now_s, n_calls=self._meter.n_calls)
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
            more = "" if "kept" in words else "; what was answered is kept"
            logger.warning("nothing more is asked of {}: {}{}", model, words, more)
            self._failures = Failures()

    def tick(self, now_s: float, n_in_flight: int, first_due_s: Callable[[], float]) -> None:
        """Say what is due; to be called a few times a second.

        Args:
            now_s: Now.
            n_in_flight: Requests sent and not answered.
            first_due_s: Tells when the time of the first of them is up.
        """
        self._n_in_flight = n_in_flight
        silent_s = self._silent_s(now_s)
        is_silent = silent_s >= _SHOWN_S
        meter = self._meter
        meter.silence = f"no reply for {silent_s:.0f} s, {self._asked()}" if is_silent else ""
        if self._is_over(now_s):
            self._say_over(now_s)
        elif not meter.n_asking and meter.n_done >= meter.n_submitted:
            self._failures = Failures()
        elif now_s - self._said_s < _EVERY_S or not meter.n_asking:
            return
        elif self._failures.kinds and (self._failures.latest_s > self._said_s or is_silent):
            since, words = clock(self._failures.first_s - now_s), self._words(self._failures.latest)
            self._say(
                f"endpoint trouble since {since}: {self._failures.counts()}, "
                f"{self._replies(silent_s)}, {self._asked()}. The latest: {words}. "
                f"{self._outlook(now_s)}",
                now_s,
            )
        elif silent_s >= _EVERY_S and n_in_flight:
            self._is_silence_told = True
            self._say(
                f"no reply for {silent_s:.0f} s and no failure, {self._asked()}. The first of them "
                f"has until {clock(first_due_s() - now_s)}, then it is asked again",
                now_s,
            )

    def _silent_s(self, now_s: float) -> float:
        """How long nothing that is asked was answered; says so where replies come again."""
        meter = self._meter
        self._quiet_s = min(self._quiet_s, now_s)
        # A batch takes hours, and tells of itself.
        silent_s = now_s - self._quiet_s if self._config.mode == "now" else 0.0
        if meter.n_calls == self._n_calls and meter.n_asking:
            return silent_s
        if self._is_silence_told and meter.n_calls != self._n_calls:
            logger.info("replies come again after {:.0f} s without one", silent_s)
        self._is_silence_told = False
        self._n_calls, self._quiet_s = meter.n_calls, now_s
        return 0.0

    def _is_over(self, now_s: float) -> bool:
        """Whether replies came after the latest failure, and none has failed for long enough."""
        meter, failures = self._meter, self._failures
        if not failures.kinds or meter.n_calls == failures.n_calls_latest:
            return False
        # Where others were answered, or failures take long, the next one may be some way off.
        was_outage = failures.n_calls_latest == failures.n_calls_first
        calm_s = _CALM_S if was_outage and failures.slowest_s < _CALM_S else _EVERY_S
        return now_s - failures.latest_s >= calm_s or meter.n_done >= meter.n_submitted

    def _say_over(self, now_s: float) -> None:
        failures, self._failures = self._failures, Failures()
        if failures.is_told:
            logger.info(
                "endpoint trouble is over: replies come, and the latest failure was at {}; {} "
                "since {}",
                clock(failures.latest_s - now_s),
                failures.counts(),
                clock(failures.first_s - now_s),
            )

    def _say(self, text: str, now_s: float) -> None:
        self._said_s, self._failures.is_told = now_s, True
        logger.warning("{}", text)

    def _words(self, error: JudgeError | None) -> str:
        return scrub(str(error), self._config.api_key, *self._config.urls)

    def _replies(self, silent_s: float) -> str:
        n_replies = self._meter.n_calls - self._failures.n_calls_first
        silence = f"no reply for {silent_s:.0f} s"
        if not n_replies:
            return silence
        return f"{n_replies:,} replies" + (f", {silence}" if silent_s >= _SHOWN_S else "")

    def _asked(self) -> str:
        n_waiting = self._meter.n_asking - self._n_in_flight
        waiting = f", {n_waiting:,} waiting to be asked" if n_waiting > 0 else ""
        return f"{self._n_in_flight:,} in flight{waiting}"

    def _outlook(self, now_s: float) -> str:
        n_calls = self._meter.n_calls
        is_lively = n_calls > self._failures.n_calls_first and now_s - self._quiet_s < _STILL_S
        return outlook(self._config, self._failures, now_s, n_calls=n_calls, is_lively=is_lively)
