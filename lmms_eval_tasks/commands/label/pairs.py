"""The judged pairs of a question and a caption, of which people label some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import TaskVerdicts, read_verdicts

CAPTIONER: Final = "captioner"
TASK: Final = "task"
VERDICT: Final = "verdict"
Captioners = Mapping[str, RunResults]
"""Captioner's name to its run."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One question of one caption that the judge gave a verdict on, in one run at least."""

    captioner: str
    benchmark: Benchmark[Any, Any]
    record: CaptionRecord
    place: int
    """The question's, from 0."""

    def runs(self, metric: str) -> list[tuple[object, ...]]:
        """What a metric reads of the pair in each judge run that gave a verdict."""
        n_values = self.benchmark.metrics[metric].n_values
        first = self.place * n_values
        of_runs = (tuple(run[first : first + n_values]) for run in self.record.values[metric])
        return [values for values in of_runs if None not in values]

    def group(self, section: str) -> str | None:
        """The pair's group in a section of the breakdown."""
        of_runs = self.record.groups.get(section)
        return of_runs[0][self.place] if of_runs else None

    def stratum(self, by: Sequence[str]) -> str:
        """The pair's stratum: its values of what the sample is stratified by."""
        return " / ".join(str(self._feature(name)) for name in by)

    def _feature(self, name: str) -> object:
        if name == CAPTIONER:
            return self.captioner
        if name == TASK:
            return self.record.task
        if name == VERDICT:
            return self.runs(self.benchmark.headline)[0][0]
        return self.group(name)

    @property
    def question(self) -> str:
        """The question's text, empty where the benchmark asks about captions as a whole."""
        return self.record.asked[self.place] if self.place < len(self.record.asked) else ""


def tasks_to_label(captioners: Captioners, chosen: Sequence[str] | None) -> list[str]:
    """The tasks that all captioners were judged on and people can be asked about.

    Args:
        captioners: At least one.
        chosen: Those that are wanted, ``None`` for all.

    Raises:
        SettingsError: If one that is wanted, or any at all, is not there.
    """
    benchmarks = our_benchmarks()
    runs = list(captioners.values())
    known = [
        name
        for name in runs[0].tasks
        if name in benchmarks
        and benchmarks[name].grading is not None
        and all(name in run.tasks and not run.tasks[name].is_prediction for run in runs)
    ]
    missing = [name for name in chosen or () if name not in known]
    if missing or not known:
        raise SettingsError(
            f"{', '.join(missing) or 'no task'}: expected tasks that a judge has graded and a "
            f"person can grade, of {', '.join(captioners)}; there are {', '.join(known) or 'none'}"
        )
    return [name for name in known if not chosen or name in chosen]


def judged_pairs(captioner: str, run: RunResults, task: str) -> list[Pair]:
    """All pairs of a task that have a verdict.

    Raises:
        DataError: If the verdicts cannot be read.
    """
    (verdicts,) = read_verdicts(run, task).tasks
    return list(_pairs(captioner, verdicts))


def _pairs(captioner: str, verdicts: TaskVerdicts) -> Iterator[Pair]:
    benchmark = verdicts.benchmark
    n_values = benchmark.metrics[benchmark.headline].n_values
    for record in verdicts.captions:
        of_runs = record.values[benchmark.headline]
        for place in range(max(map(len, of_runs), default=0) // n_values):
            pair = Pair(captioner, benchmark, record, place)
            if pair.runs(benchmark.headline):
                yield pair
