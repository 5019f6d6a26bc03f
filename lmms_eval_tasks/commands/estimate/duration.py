"""How long judging takes, from what is assumed of the endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.request_counter import TaskEstimate

FIRST_TOKEN_S: Final = 1.0
"""Seconds until a reply begins, by our judgement."""
OUTPUT_TOKEN_S: Final = 0.02
"""Seconds that a token of a reply takes, by our judgement: 50 tokens a second."""


@dataclass(frozen=True, slots=True)
class Duration:
    """How long the calls of all tasks take."""

    n_calls: int
    concurrency: int
    """Calls in flight, >= 1."""
    reply_s: float
    """Mean seconds of a reply."""
    rate: float | None = None
    """Most calls a second, or ``None``."""

    @classmethod
    def of_tasks(
        cls,
        tasks: Sequence[TaskEstimate],
        *,
        concurrency: int,
        reply_s: float | None,
        rate: float | None = None,
    ) -> Duration:
        """The duration of tasks that are judged in one run.

        Args:
            tasks: What they take.
            concurrency: Most calls in flight, >= 1.
            reply_s: Seconds of a reply, ``None`` where its output tokens are to tell.
            rate: Most calls a second, ``None`` for any number.
        """
        n_calls = sum(task.n_calls for task in tasks)
        n_tokens = sum(task.output_tokens for task in tasks)
        if reply_s is None:
            reply_s = FIRST_TOKEN_S + OUTPUT_TOKEN_S * n_tokens / max(1, n_calls)
        return cls(n_calls, concurrency, reply_s, rate)

    @property
    def seconds(self) -> float:
        """Of all calls, as many at once, and a second, as may be."""
        at_once_s = -(-self.n_calls // self.concurrency) * self.reply_s
        return at_once_s if self.rate is None else max(at_once_s, self.n_calls / self.rate)


def in_words(seconds: float) -> str:
    """A duration as it is said.

    >>> in_words(0.4), in_words(90), in_words(5400), in_words(200_000)
    ('1 second', '2 minutes', '1.5 hours', '56 hours')
    """
    minute, hour = 60, 3600
    if seconds < minute:
        n = max(1, round(seconds))
        return f"{n} second{'s' if n > 1 else ''}"
    if seconds < hour:
        n = -int(-seconds // minute)
        return f"{n} minute{'s' if n > 1 else ''}"
    hours = seconds / hour
    return f"{hours:.1f} hours" if hours < 10 else f"{hours:,.0f} hours"
