"""What this process's run has finished so far: its end writes it beside the results and says it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """A task, or a group whose questions are pooled, that was aggregated in this process."""

    benchmark: Benchmark[Any, Any]
    records: Sequence[CaptionRecord]
    """Those of all captions, of all ranks, with groups and the values of every metric."""
    args: argparse.Namespace | None
    """lmms-eval's command line, ``None`` where it has none."""


@dataclass(slots=True)
class ThisRun:
    """Filled by the aggregations of ``breakdown``, emptied by the run's end."""

    started_s: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    tasks: dict[str, FinishedTask] = field(default_factory=dict)
    """In the order in which they were aggregated."""
    breakdowns: dict[str, dict[str, object]] = field(default_factory=dict)
    """Task or group to what its breakdown file holds."""

    def clear(self) -> None:
        """Start afresh: lmms-eval may run several configurations in one process."""
        self.started_s = time.time()
        self.tasks.clear()
        self.breakdowns.clear()


THIS_RUN: Final = ThisRun()
