"""The judged pairs of a question and a caption, of which people label some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.analysis.verdicts.captioners import Captioner, common_names
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

CAPTIONER: Final = "captioner"
TASK: Final = "task"
VERDICT: Final = "verdict"


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


def tasks_to_label(
    captioners: Sequence[Captioner], chosen: Sequence[str] | None, *, graded: bool = True
) -> list[str]:
    """The tasks that all captioners have and people can be asked about.

    Args:
        captioners: At least one.
        chosen: Those that are wanted, ``None`` for all.
        graded: Whether people grade what the judge graded.

    Raises:
        SettingsError: If one that is wanted, or any at all, is not there.
    """
    benchmarks = our_benchmarks()
    known = [
        name
        for name in common_names(captioners)
        if name in benchmarks and (not graded or benchmarks[name].grading is not None)
    ]
    missing = [name for name in chosen or () if name not in known]
    if missing or not known:
        raise SettingsError(
            f"{', '.join(missing) or 'no task'}: expected tasks that people can be asked about "
            f"and {', '.join(each.name for each in captioners)} all have; there are "
            f"{', '.join(known) or 'none'}"
        )
    return [name for name in known if not chosen or name in chosen]


def verdicts_of(captioner: Captioner, task: str) -> TaskVerdicts:
    """What was judged of a captioner in one task.

    Raises:
        DataError: If the verdicts cannot be read.
    """
    (verdicts,) = captioner.verdicts(task).tasks
    return verdicts


def judged_pairs(captioner: str, verdicts: TaskVerdicts) -> list[Pair]:
    """All pairs of a captioner and a task that have a verdict."""
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
