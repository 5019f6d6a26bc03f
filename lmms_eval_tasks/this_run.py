"""What this process's run has finished so far: its end writes it beside the results and says it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.rank_totals import totals_by_process
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """A task, or a group whose questions are pooled, that was aggregated in this process."""

    benchmark: Benchmark[Any, Any]
    records: Sequence[CaptionRecord]
    """Those of all captions, of all ranks, with groups and the values of every metric."""
    args: argparse.Namespace | None
    """lmms-eval's command line, ``None`` where it has none."""
    note: str = ""
    """What a reader must know about the numbers."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run of lmms-eval whose results are saved."""

    document: Mapping[str, Any]
    """What it measured, see :mod:`judging_document`."""
    folder: Path | None
    """Where its files are, ``None`` without ``--output_path``."""
    stamp: str
    """How their names begin."""

    @property
    def results(self) -> Path | None:
        """File of its results, if lmms-eval could write it."""
        return None if self.folder is None else self.folder / f"{self.stamp}_results.json"


@dataclass(slots=True)
class ThisRun:
    """Filled by the aggregations of ``breakdown``, emptied by the run's end."""

    started_s: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    tasks: dict[str, FinishedTask] = field(default_factory=dict)
    """In the order in which they were aggregated."""
    documents: dict[str, dict[object, Mapping[str, object]]] = field(default_factory=dict)
    """Task to the head of each judged caption's record, by the number that lmms-eval gives its
    document; filled where samples are logged."""
    breakdowns: dict[str, dict[str, object]] = field(default_factory=dict)
    """Task or group to what its breakdown file holds."""
    warnings: list[str] = field(default_factory=list)
    """What a reader of the scores must know of the run, a sentence or two each."""
    finished: list[FinishedRun] = field(default_factory=list)
    """Runs of this process that are over; not emptied: they are shown when it ends."""
    errors: list[str] = field(default_factory=list)
    """Why runs of this process ended early, a sentence each; not emptied: they are said last."""
    _before: dict[str, Totals] = field(default_factory=dict)
    """Process to what it had asked when the run began."""
    _told: set[str] = field(default_factory=set)

    def warn(self, warning: str) -> None:
        """Have the run's end say a warning, once however often it comes; nothing is logged."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def is_new(self, words: str) -> bool:
        """Whether this was not asked of these words before in this run: say it once."""
        is_new = words not in self._told
        self._told.add(words)
        return is_new

    def totals(self) -> Totals:
        """What was asked of the judge in this run so far, over all ranks."""
        totals = Totals()
        for process, since_it_began in totals_by_process().items():
            totals += since_it_began.since(self._before.get(process, Totals()))
        return totals

    def clear(self) -> None:
        """Start afresh: lmms-eval may run several configurations in one process."""
        self.started_s = time.time()
        self.tasks.clear()
        self.documents.clear()
        self.breakdowns.clear()
        self.warnings.clear()
        self._before = totals_by_process()
        self._told.clear()


THIS_RUN: Final = ThisRun()
