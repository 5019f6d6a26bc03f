"""State of this process's run: finished tasks, warnings and errors until its end writes them."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from loguru import logger

from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item, PendingRecord, arrived

RUN_RECORD: Final = "LMMS_EVAL_CAPTIONS_RUN_RECORD"
"""Variable with a file for finished runs and errors; ``lmms-eval-captions run`` sets it."""
_OTHER_TOTALS: Final[dict[str, Totals]] = {}
"""Other process to its latest totals since it began."""


class FinishedTask(NamedTuple):
    """An aggregated task, or a group whose questions are pooled."""

    benchmark: Benchmark[Any, Any]
    records: Sequence[CaptionRecord]
    """Records of all captions of all ranks."""
    args: argparse.Namespace | None
    """lmms-eval's command line, if any."""
    note: str = ""
    """Remark on the numbers."""


class FinishedRun(NamedTuple):
    """A run of lmms-eval whose results are saved."""

    document: Mapping[str, Any]
    """Judging document."""
    folder: Path | None
    """Folder of its files, ``None`` without ``--output_path``."""
    stamp: str
    """Prefix of their names."""


class ThisRun:
    """State of the run that lmms-eval has begun; aggregations fill it, the run's end empties it."""

    def __init__(self) -> None:
        self.finished: list[FinishedRun] = []
        """Finished runs of this process; printed when it ends."""
        self.errors: list[str] = []
        """Reasons why runs of this process ended early; printed when it ends."""
        self.is_ours = False
        """True if it has a task of ours."""
        self.output_path: str | None = None
        """Folder of the results, as the user names it."""
        self.lacks_samples = False
        """True if it is compared with a baseline, but lmms-eval keeps no samples to compare."""
        self.clear()

    def clear(self) -> None:
        """Begin a run: lmms-eval may run several configurations in one process."""
        self.started_s = time.time()
        self.will_judge = False
        """True if it ends with the judge that is set now: not if it only predicts, and not if
        lmms-eval starts the judge after captioning."""
        self.tasks: dict[str, FinishedTask] = {}
        """In the order of aggregation."""
        self.scored: dict[str, dict[object, Mapping[str, object]]] = {}
        """Task to the headline's item of each scored caption by lmms-eval's document number;
        filled if samples are logged."""
        self.breakdowns: dict[str, dict[str, object]] = {}
        """Task or group to the content of its breakdown file."""
        self.warnings: list[str] = []
        """Warnings about the scores, a sentence or two each."""
        self._before = totals_by_process()
        self._logged: set[str] = set()

    def warn(self, warning: str) -> None:
        """Add a warning to the summary, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    def note_error(self, message: str) -> None:
        """Note why a run ended, for the last line of this process and of who started it."""
        if message not in self.errors:
            self.errors.append(message)
            record({"error": message})

    def is_new(self, text: str) -> bool:
        """Return True the first time that it gets a text in this run."""
        is_new = text not in self._logged
        self._logged.add(text)
        return is_new

    def totals(self) -> Totals:
        """Return the counts of judging in this run over all ranks."""
        totals = Totals()
        for process, since_start in totals_by_process().items():
            totals += since_start.since(self._before.get(process, Totals()))
        return totals


class AccountedRecord(PendingRecord):
    """An item that takes this process's totals along to another rank: nothing else is sent."""

    def __reduce__(self) -> tuple[Callable[..., Item], tuple[object, ...]]:
        return _receive, (self.record, dict(self), SESSION.process, SESSION.totals())


def _receive(record: CaptionRecord, item: Item, process: str, totals: Totals) -> Item:
    if process != SESSION.process:
        _OTHER_TOTALS[process] = totals
    return arrived(record, item)


def totals_by_process() -> dict[str, Totals]:
    """Return the totals of each process since it began."""
    return {SESSION.process: SESSION.totals(), **_OTHER_TOTALS}


THIS_RUN: Final = ThisRun()


def record(line: Mapping[str, object]) -> None:
    """Append a line of JSON to the file of who started this run, if any."""
    path = os.environ.get(RUN_RECORD)
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line, default=str)}\n")
    except OSError as error:
        logger.error("the run cannot be added to {}: {}", path, error)
