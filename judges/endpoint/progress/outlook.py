"""The failures of an endpoint in a row, and until when it is waited for after them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.config import EngineConfig
    from lmms_eval_captions.judges.errors import JudgeUnavailableError

_FAR_S: Final = 12 * 3600.0
"""Times so far ahead are told with their date."""
_FARTHEST_S: Final = 1e9


@dataclass(slots=True)
class Failures:
    """Failures between which replies may have come; moments are those of ``time.monotonic``."""

    kinds: Counter[str] = field(default_factory=Counter)
    """How many there were of each kind; empty where there was none."""
    first_s: float = -inf
    """When the first one came."""
    gone_s: float = -inf
    """When the first one came after the latest reply."""
    latest_s: float = -inf
    slowest_s: float = 0.0
    """Seconds that the slowest one took."""
    first_took_s: float = 0.0
    """Seconds that the first one took: later ones may have been given more."""
    n_calls_first: int = -1
    """Replies there had been when the first one came."""
    n_calls_latest: int = -1
    """Replies there had been when the latest one came."""
    latest: JudgeUnavailableError | None = None
    is_told: bool = False
    """Whether a line was logged of them."""

    def add(
        self, error: JudgeUnavailableError, *, sent_s: float, now_s: float, n_calls: int
    ) -> None:
        """Note one more.

        Args:
            error: How the request failed.
            sent_s: When it was sent.
            now_s: Now.
            n_calls: Replies there have been so far.
        """
        if not self.kinds:
            self.first_s, self.n_calls_first = now_s, n_calls
            self.first_took_s = now_s - sent_s
        if n_calls != self.n_calls_latest:
            self.gone_s = now_s
        self.kinds[error.kind] += 1
        self.latest, self.latest_s, self.n_calls_latest = error, now_s, n_calls
        self.slowest_s = max(self.slowest_s, now_s - sent_s)

    def counts(self) -> str:
        """How many of each kind, the most frequent first."""
        return ", ".join(f"{n:,} x {kind}" for kind, n in self.kinds.most_common())


def outlook(
    config: EngineConfig, failures: Failures, now_s: float, *, n_calls: int, is_lively: bool
) -> str:
    """Until when what failed is asked again, and what then.

    Args:
        config: How long what is waited for.
        failures: What came so far.
        now_s: Now.
        n_calls: Replies there have been so far.
        is_lively: Whether other requests are answered meanwhile.
    """
    if config.mode == "batch":
        return (
            f"The request goes into another batch, {config.n_attempts} in all; if none of them "
            "answers it, its question is unscored"
        )
    if is_lively:
        return (
            "Others are answered. What fails is asked again, this request until "
            f"{clock(_longest_s(config, failures))} at the latest; then its question is unscored, "
            "and the same command run again asks it anew"
        )
    return (
        f"The endpoint is waited for until {_until(config, failures, now_s, n_calls)}. If nothing "
        "is answered by then, nothing more is asked: what was answered is kept, and the same "
        "command run again goes on"
    )


def _until(config: EngineConfig, failures: Failures, now_s: float, n_calls: int) -> str:
    """When an endpoint that answers nothing is given up."""
    latest_s = failures.gone_s - failures.first_took_s + _longest_s(config, failures)
    latest = f"{clock(latest_s - now_s)} at the latest"
    if all(kind == "HTTP 429" for kind in failures.kinds):
        return latest
    if n_calls:
        until_s = failures.gone_s + config.outage_patience_s
        return f"{clock(until_s - now_s)} at least, {latest}" if until_s > now_s else latest
    waits = (config.backoff_s * 2**n for n in range(config.n_attempts - 1))
    waits_s = sum(min(config.max_backoff_s, wait_s) for wait_s in waits)
    until_s = failures.first_s + waits_s + (config.n_attempts - 1) * failures.first_took_s
    until = f"about {clock(until_s - now_s)}" if until_s > now_s else latest
    return f"{until}, and no longer, as it has never answered"


def _longest_s(config: EngineConfig, failures: Failures) -> float:
    """Seconds that one request is tried for."""
    return max(config.patience_s, config.n_attempts * failures.first_took_s)


def clock(in_s: float) -> str:
    """The local time of day so many seconds from now."""
    in_s = min(in_s, _FARTHEST_S)
    shape = "%Y-%m-%d %H:%M" if abs(in_s) > _FAR_S else "%H:%M:%S"
    return time.strftime(shape, time.localtime(time.time() + in_s))
