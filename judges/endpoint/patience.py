"""For how long failed requests are sent again: is it the request, an outage, or the end?"""

from __future__ import annotations

import random
from math import inf, log
from typing import Final

from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.failed_attempts import FailedAttempts
from lmms_eval_captions.judges.endpoint.progress.outlook import clock
from lmms_eval_captions.judges.endpoint.roles import WORDS
from lmms_eval_captions.judges.errors import (
    EndpointSilentError,
    GaveUpError,
    JudgeUnavailableError,
)

_LIVELY_DOUBLINGS: Final = 2
"""Doublings of the back-off at most, where others get through: the endpoint is not down."""
_NOISE_DOUBLINGS: Final = -2
"""The same where requests are refused by chance, whatever their rate is."""
_FAILURES_N: Final = 100
"""The share of requests that fail is that of about so many."""
_LOST: Final = 1e-6
"""Chance that a request is given up on because of failures that hit one and all alike."""
_MORE_ATTEMPTS: Final = 3
"""Attempts at most where many requests fail, as a multiple of ``n_attempts``."""


class Patience:
    """What is known of an endpoint's failures; moments are those of ``time.monotonic``.

    Args:
        config: How long what is waited for.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._role = WORDS[config.role]
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        self.last_success_s = -inf
        """When any request was last answered."""
        self._failing = 0.0
        """Share of the latest requests that failed, 429 excepted."""

    def on_reply(self, now_s: float) -> None:
        """One request was answered."""
        self.last_success_s = now_s
        self._failing -= self._failing / _FAILURES_N

    def on_failure(self) -> None:
        """One request failed otherwise than by 429."""
        self._failing += (1.0 - self._failing) / _FAILURES_N

    def check(self, failed: FailedAttempts, error: JudgeUnavailableError, now_s: float) -> None:
        """Return where a request that failed is to be sent again.

        Args:
            failed: Its failed attempts.
            error: The latest of them.
            now_s: Now.

        Raises:
            GaveUpError: If it is this request that fails.
            EndpointSilentError: If the endpoint answers nothing any more.
        """
        last_success_s = self.last_success_s
        n_attempts = self._config.n_attempts
        is_too_long = now_s - failed.started_s - failed.timed_out_s > self._config.patience_s
        # A batch that ended without a reply is no outage: those are waited for before it ends.
        is_batch_over = self._config.mode == "batch" and failed.n_failed >= n_attempts
        if (
            is_batch_over
            or failed.n_alone >= self._attempts()
            or (is_too_long and last_success_s >= failed.since_s)
        ):
            # The time that a gateway gives (504) is not ours to set.
            is_ours = error.timed_out and error.status is None
            advice = f"; {self._role.timeout} gives more time" if is_ours else ""
            raise GaveUpError(f"gave up on this request: {error}{advice}") from error
        silent_s = now_s - max(failed.since_s, last_success_s)
        # One that never answered is given no time: it may be a wrong URL.
        patience_s = self._config.outage_patience_s if last_success_s > -inf else 0.0
        if is_too_long or (failed.n_failed >= n_attempts and silent_s > patience_s):
            raise EndpointSilentError(self._silence(now_s, failed, error)) from error

    def back_off_s(
        self, failed: FailedAttempts, error: JudgeUnavailableError, *, is_noise: bool = False
    ) -> float:
        """Seconds until a request that failed is sent again.

        Args:
            failed: Its failed attempts.
            error: The latest of them.
            is_noise: Whether such failures are known to come by chance, however little is sent.
        """
        doublings = failed.n_failures - 1
        if failed.is_alone:
            # Where it is chance, others go out meanwhile, and it is the same which of them do.
            doublings = _NOISE_DOUBLINGS if is_noise else min(doublings, _LIVELY_DOUBLINGS)
        ceiling_s = min(self._config.max_backoff_s, self._config.backoff_s * 2.0**doublings)
        wait_s = ceiling_s * self._random.uniform(0.5, 1.0)
        # A wild header must not hang the run: patience is the bound.
        asked_s = min(error.retry_after_s or 0.0, self._config.patience_s)
        return max(wait_s, asked_s)

    def _attempts(self) -> int:
        """Failures after which it must be the request: more where many requests fail."""
        n_attempts = self._config.n_attempts
        # The chance of so many failures in a row is the share to their power.
        n_by_chance = log(_LOST) / log(min(0.99, max(1e-9, self._failing)))
        return int(min(_MORE_ATTEMPTS * n_attempts, max(n_attempts, n_by_chance)))

    def _silence(self, now_s: float, failed: FailedAttempts, error: JudgeUnavailableError) -> str:
        """What is said of an endpoint that answers nothing any more, and since when it does so."""
        last_s = self.last_success_s
        since = "it has given none yet"
        if last_s > -inf:
            since = f"the last one came at {clock(last_s - now_s)}"
        return (
            f"the {self._role.who} gave no reply to any request for "
            f"{now_s - max(failed.started_s, last_s):.0f} s ({since}), {self._role.work} stopped: "
            f"{error}"
        )
