"""What a stage asked, and what came of it."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Asked
from lmms_eval_captions.judges.errors import (
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

_MOST_LOST: Final = 0.05
"""Share of a stage's requests without a reply above which the build does not go on."""
_N_REASONS: Final = 3
_OF_LENGTH: Final = re.compile(r"max_\w*tokens|max_model_len|context (?:length|size|window)", re.I)
"""What servers say of a request that is longer than they take."""


def length_advice(reasons: str) -> str:
    """What to do about a context that is too short, empty where reasons speak of something else.

    >>> length_advice("content policy")
    ''
    """
    if not _OF_LENGTH.search(reasons):
        return ""
    return "Give a smaller --max-tokens, about half of the server's context, or fewer --frames"


def untold_faults(head: Mapping[str, Any]) -> dict[str, int]:
    """Faults of a stage's replies without those that its reasons for dropping say already.

    >>> head = {"dropped": {"no readable reply: no JSON": 2},
    ...         "requests": {"faults": {"reply: no JSON": 2, "reply: cut": 1, "reply: odd": 0}}}
    >>> untold_faults(head)
    {'reply: cut': 1}
    """
    told = {(reason.rpartition(": ")[2], n) for reason, n in head["dropped"].items()}
    faults: Mapping[str, int] = head["requests"]["faults"]
    return {
        fault: n for fault, n in faults.items() if n and (fault.rpartition(": ")[2], n) not in told
    }


class Tally:
    """Counts the requests of one stage; they come from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped: dict[str, str] = {}
        """Kind of end to the reason."""
        self._reasons: dict[str, None] = {}
        self.n_requests = 0
        self.failures: Counter[str] = Counter()
        """Requests that gave nothing, by kind."""
        self.by_model: Counter[str] = Counter()
        """Requests by the model that was asked."""
        self.faults: Counter[str] = Counter()
        """What is wrong with replies that cannot be read, and with parts of those that can."""

    def count(self, model: str, asked: Asked[Any]) -> None:
        """Count a request."""
        with self._lock:
            self.n_requests += 1
            self.by_model[model] += 1
            if asked.failure is None:
                return
            self.failures[asked.failure] += 1
            if asked.failure in ("stopped", "silent"):
                self._stopped[asked.failure] = str(asked.reason)
            if asked.failure != "unreadable" and len(self._reasons) < _N_REASONS:
                self._reasons[str(asked.reason)[:300]] = None

    def raise_if_stopped(self, n: int) -> None:
        """Raise where a model is asked nothing more.

        A few last requests that an endpoint answers to nobody are lost and no more: it may be
        these that it cannot answer, and the build would never get past them.

        Args:
            n: Requests, or jobs of several, that the stage puts.

        Raises:
            JudgeStoppedError: With the model's own words.
        """
        if "stopped" in self._stopped:
            raise JudgeStoppedError(self._stopped["stopped"])
        if self.failures["silent"] > max(1.0, _MOST_LOST * n):
            raise JudgeStoppedError(self._stopped["silent"])

    @property
    def has_silent(self) -> bool:
        """Whether an endpoint gave no reply to the last requests."""
        return "silent" in self._stopped

    @property
    def n_lost(self) -> int:
        """Requests without a reply: the next run asks them again."""
        return self.failures["unavailable"] + self.failures["silent"]

    def raise_if_lost(self, stage: str) -> None:
        """Raise where so many requests have no reply that what follows would be of other data.

        Raises:
            JudgeUnavailableError: With the first reasons.
            JudgeRequestError: If every request is refused, with the endpoint's own words.
        """
        if self.n_requests and self.failures["refused"] == self.n_requests:
            reasons = "; ".join(self._reasons)
            # Whole: the error is shown as one sentence, of which the middle may be left out.
            self.warn_of_refused(stage)
            raise JudgeRequestError(
                f"{stage}: all {self.n_requests:,} requests were refused: {reasons}. "
                f"{length_advice(reasons)}".rstrip()
            )
        if self.n_lost > max(1.0, _MOST_LOST * self.n_requests):
            raise JudgeUnavailableError(
                f"{stage}: {self.n_lost:,} of {self.n_requests:,} requests have no reply, and the "
                "build does not go on without so many. Replies are kept: run the same command "
                f"again. {'; '.join(self._reasons)}"
            )

    def warn_of_refused(self, stage: str) -> None:
        """Say at once that requests were refused: all that follows does without them."""
        if n := self.failures["refused"]:
            logger.warning(
                "{}: {:,} of {:,} requests were refused: {}",
                stage, n, self.n_requests, "; ".join(self._reasons),
            )  # fmt: skip

    def to_json(self) -> Mapping[str, object]:
        """For the head of the stage's file."""
        return {
            "n_requests": self.n_requests,
            "by_model": dict(sorted(self.by_model.items())),
            "failures": {
                **{kind: n for kind, n in sorted(self.failures.items()) if kind != "silent"},
                **({"unavailable": self.n_lost} if self.n_lost else {}),
            },
            "faults": dict(sorted(self.faults.items())),
            "reasons": list(self._reasons),
        }
