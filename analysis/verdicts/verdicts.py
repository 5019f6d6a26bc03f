"""The verdicts behind the numbers of a task or a group of a run that is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.analysis.task_table import read_table
from lmms_eval_captions.analysis.verdicts.records import records_of
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging_document import leaves_of
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results_folder import RESULTS, RunResults
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verdict_file import verdict_path


@dataclass(frozen=True, slots=True)
class TaskVerdicts:
    """One task of a run with every caption that was judged."""

    task: str
    benchmark: Benchmark[Any, Any]
    signature: Signature | None
    """What moved its scores, ``None`` where the results do not say it."""
    captions: list[CaptionRecord]
    """With the values of every metric, groups and ``asked``, in the order of the log."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A task or a group of a run."""

    name: str
    tasks: tuple[TaskVerdicts, ...]
    """The task itself, or the tasks of the group, at least one."""
    is_pooled: bool
    """Whether a group's numbers are those of all its tasks' questions together; otherwise they are
    the plain means of its tasks' numbers."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return self.tasks[0].benchmark


def names_with_verdicts(run: RunResults) -> list[str]:
    """The tasks and groups of a run whose verdicts can be looked at, as the results have them.

    A group is left out where its tasks are of several benchmarks: it has no numbers of its own.
    """
    return [name for name in run.tasks if _members(run, name)]


def read_verdicts(
    run: RunResults,
    name: str,
    kept: dict[tuple[Path, str], TaskVerdicts] | None = None,
    *,
    in_part: bool = False,
) -> Verdicts:
    """The verdicts of a task or a group.

    Args:
        run: A run's results.
        name: One of :func:`names_with_verdicts`.
        kept: Results file and task to what was read before; what is read is added.
        in_part: Whether verdicts on a sample of the questions will do.

    Raises:
        DataError: If it is none of them, or if neither the verdicts nor the sample log of one of
            its tasks is there, or one cannot be read, or is of a sample where that will not do.
    """
    members = _members(run, name)
    if not members:
        raise DataError(
            f"{run.path}: expected verdicts of any of {', '.join(names_with_verdicts(run))}, "
            f"got {name!r:.80}"
        )
    known = {} if kept is None else kept
    for task in members:
        if (run.path, task) not in known:
            known[run.path, task] = _read_task(run, task)
    tasks = tuple(known[run.path, task] for task in members)
    if not in_part:
        _require_all(run, tasks)
    return Verdicts(name, tasks, tasks[0].benchmark.pooled_group == name)


def _require_all(run: RunResults, tasks: Sequence[TaskVerdicts]) -> None:
    """Raise where a sample of the questions was judged."""
    for task in tasks:
        if any(caption.sample for caption in task.captions):
            raise DataError(
                f"{run.path.name}: a sample of {task.task}'s questions was judged, and this needs "
                "all: score the captions again without LMMS_CAPTIONS_PRECISION, which asks the rest"
            )


def _members(run: RunResults, name: str) -> list[str]:
    """The tasks behind a name, none where they are not of one benchmark of ours."""
    ours = our_benchmarks()
    tasks = leaves_of(run.document, name)
    # Variants share a name: they differ in their metrics, and are several.
    is_one = len({id(ours.get(task)) for task in tasks}) == 1 and tasks[0] in ours
    return tasks if is_one and not run.tasks[name].is_prediction else []


def _read_task(run: RunResults, task: str) -> TaskVerdicts:
    path = verdict_path(run.path.parent, run.path.name.removesuffix(RESULTS), task)
    table = read_table(path, task)
    return TaskVerdicts(task, table.benchmark, table.signature, records_of(table))
