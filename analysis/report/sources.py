"""The runs that a report is about, and what is missing of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.captioners import Captioner, captioners_of
from lmms_eval_captions.analysis.results_folder import RunResults, TaskResults
from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.signature import RESULTS

_FOLDERS: Final = re.compile(r"(?<![\w/:])(?:~|[A-Za-z]:)?[\\/](?:[^\s'\":;,\\/]+[\\/])+")
"""The folders of an absolute path: a report is handed on, and they are nobody else's business."""


@dataclass(frozen=True, slots=True)
class View:
    """A task or a group, with what each captioner has of it."""

    name: str
    verdicts: Sequence[Verdicts | None]
    """One per captioner; ``None`` if it has none that can be read."""
    runs: Sequence[RunResults | None]

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return next(verdicts for verdicts in self.verdicts if verdicts is not None).benchmark

    @property
    def tasks(self) -> list[str]:
        """The tasks that any captioner has."""
        tables = [t for verdicts in self.verdicts if verdicts is not None for t in verdicts.tables]
        return list(dict.fromkeys(table.task for table in tables))

    @property
    def results(self) -> list[TaskResults | None]:
        """The numbers that each captioner's run gave."""
        return [None if run is None else run.tasks.get(self.name) for run in self.runs]

    def tables(self, task: str) -> list[TaskTable | None]:
        """Return what each captioner has of one of the tasks."""
        return [
            next((t for t in verdicts.tables if t.task == task), None) if verdicts else None
            for verdicts in self.verdicts
        ]


@dataclass(frozen=True, slots=True)
class Sources:
    """Material of a report."""

    captioners: Sequence[Captioner]
    views: Sequence[View]
    missing: Sequence[str]
    """Missing parts, a sentence each."""


def sources_of(folders: Sequence[Path]) -> Sources:
    """Return the captioners of results folders, with all that can be read of them.

    Args:
        folders: As given to lmms-eval as ``--output_path``; also results files. One without
            results, such as that of a run that was ended, is named as missing.

    Raises:
        DataError: If a folder does not exist, or is named twice.
    """
    missing: list[str] = []
    good: list[Path] = []
    for folder in folders:
        if not folder.expanduser().exists():
            raise DataError(
                f"{folder}: no such folder or results file; a run that ended before its first "
                "score writes none: start it again, what was judged is kept"
            )
        if folder.is_file() and not folder.name.endswith(RESULTS):
            raise DataError(f"{folder}: expected a folder, or a run's *{RESULTS}")
        try:
            captioners_of([folder])
        except DataError as error:
            missing.append(
                f"Nothing to show of {folder.name}: {without_folders(str(error))}. Run the same "
                "command again: what was judged is kept"
            )
        else:
            good.append(folder)
    captioners = captioners_of(good) if good else []
    views = []
    for name in dict.fromkeys(name for captioner in captioners for name in captioner.runs):
        verdicts = [_verdicts(captioner, name, missing) for captioner in captioners]
        if any(verdicts):
            views.append(View(name, verdicts, [c.runs.get(name) for c in captioners]))
    return Sources(captioners, _in_order(views), list(dict.fromkeys(missing)))


def _verdicts(captioner: Captioner, name: str, missing: list[str]) -> Verdicts | None:
    if name not in captioner.runs:
        return None
    try:
        return captioner.verdicts(name, sampled=False)
    except DataError as error:
        missing.append(f"{captioner.name}, {name}: {without_folders(str(error))}")
        return None


def _in_order(views: Sequence[View]) -> list[View]:
    """Return groups before their tasks, otherwise in the order of the results."""
    by_name = {view.name: view for view in views}
    names = (
        name for view in sorted(views, key=lambda view: -len(view.tasks))
        for name in (view.name, *view.tasks)
    )  # fmt: skip
    return [by_name[name] for name in dict.fromkeys(names) if name in by_name]


def without_folders(text: str) -> str:
    """Return a text with the names of files, without the folders that they are in.

    >>> without_folders("/home/me/runs/a_results.json: no such file; see https://x.org/a/b")
    'a_results.json: no such file; see https://x.org/a/b'
    """
    return _FOLDERS.sub("", text)
