"""The runs that a report is about, and what of them is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval_captions.analysis.verdicts.captioners import Captioner, captioners_of
from lmms_eval_captions.analysis.verdicts.verdicts import (
    TaskVerdicts,
    Verdicts,
    read_verdicts,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.results_folder import RESULTS, RunResults, TaskResults


@dataclass(frozen=True, slots=True)
class View:
    """A task or a group that can be looked at, with what each captioner has of it."""

    name: str
    verdicts: Sequence[Verdicts | None]
    """One for each captioner; ``None`` where it has none that can be read."""
    runs: Sequence[RunResults | None]
    """The run of each captioner that it is of."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return next(verdicts for verdicts in self.verdicts if verdicts is not None).benchmark

    @property
    def tasks(self) -> list[str]:
        """The tasks that any captioner has."""
        of_all = (verdicts.tasks for verdicts in self.verdicts if verdicts is not None)
        return list(dict.fromkeys(task.task for tasks in of_all for task in tasks))

    @property
    def results(self) -> list[TaskResults | None]:
        """What the run of each captioner found out about it."""
        return [None if run is None else run.tasks.get(self.name) for run in self.runs]

    def of_task(self, task: str) -> list[TaskVerdicts | None]:
        """What each captioner has of one of the tasks."""
        return [
            next((one for one in verdicts.tasks if one.task == task), None) if verdicts else None
            for verdicts in self.verdicts
        ]

    def only(self, task: str) -> View:
        """One of the tasks by itself."""
        of_task = self.of_task(task)
        verdicts = [None if one is None else Verdicts(task, (one,), False) for one in of_task]
        return View(task, verdicts, self.runs)


@dataclass(frozen=True, slots=True)
class Sources:
    """What a report is made of."""

    captioners: Sequence[Captioner]
    views: Sequence[View]
    missing: list[str] = field(default_factory=list)
    """What is not there, a sentence each."""


def sources_of(folders: Sequence[Path]) -> Sources:
    """The captioners of results folders, with all that can be read of them.

    Args:
        folders: As lmms-eval had them as ``--output_path``; also results files. One without
            results is said to have none, as that of a run that was ended.

    Raises:
        DataError: If there is no such folder, or one is named twice.
    """
    missing: list[str] = []
    good: list[Path] = []
    for folder in folders:
        if not folder.expanduser().exists():
            raise DataError(
                f"{folder}: there is no such folder or results file; a run that was ended before "
                "its first score writes none: start it again, what was judged is kept"
            )
        if folder.is_file() and not folder.name.endswith(RESULTS):
            raise DataError(f"{folder}: expected a folder, or a run's *{RESULTS}")
        try:
            captioners_of([folder])
        except DataError as error:
            missing.append(
                f"Nothing to show of {error}. The same command again goes on where it ended: what "
                "was judged is kept"
            )
        else:
            good.append(folder)
    captioners = captioners_of(good) if good else []
    kept: dict[tuple[Path, str], TaskVerdicts] = {}
    names = dict.fromkeys(name for captioner in captioners for name in captioner.runs)
    views = []
    for name in names:
        verdicts = [_verdicts(captioner, name, kept, missing) for captioner in captioners]
        if any(verdicts):
            runs = [captioner.runs.get(name) for captioner in captioners]
            views.append(View(name, verdicts, runs))
    return Sources(captioners, _in_order(views), list(dict.fromkeys(missing)))


def _verdicts(
    captioner: Captioner,
    name: str,
    kept: dict[tuple[Path, str], TaskVerdicts],
    missing: list[str],
) -> Verdicts | None:
    if name not in captioner.runs:
        return None
    try:
        return read_verdicts(captioner.runs[name], name, kept)
    except DataError as error:
        missing.append(f"{captioner.name}, {name}: {error}")
        return None


def _in_order(views: Sequence[View]) -> list[View]:
    """Groups before their tasks, otherwise as the results have them."""
    ordered: dict[str, View] = {}
    by_name = {view.name: view for view in views}
    for view in sorted(views, key=lambda view: -len(view.tasks)):
        for name in (view.name, *view.tasks):
            if name in by_name:
                ordered.setdefault(name, by_name[name])
    return list(ordered.values())
