"""The runs that a report is about, and what is missing of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.captioners import Captioner, captioners_of
from lmms_eval_captions.analysis.results_folder import RunResults
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
    runs: Sequence[RunResults | None]
    verdicts: Sequence[Verdicts | None]
    """``None`` if the captioner has none that can be read."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return next(filter(None, self.verdicts)).benchmark

    @property
    def tasks(self) -> list[str]:
        """The tasks that any captioner has."""
        tables = [table for verdicts in filter(None, self.verdicts) for table in verdicts.tables]
        return list(dict.fromkeys(table.task for table in tables))

    def tables(self, task: str) -> list[TaskTable | None]:
        """Return what each captioner has of one of the tasks."""
        sides = [{t.task: t for t in of.tables} if of else {} for of in self.verdicts]
        return [tables.get(task) for tables in sides]


def captioners_and_views(
    folders: Sequence[Path], missing: list[str]
) -> tuple[list[Captioner], list[View]]:
    """Return the captioners of results folders, with all that can be read of them.

    ``missing`` collects missing parts, such as the results of a run that was ended.

    Raises:
        DataError: If a folder does not exist, or is named twice.
    """
    good: list[Path] = []
    for folder in folders:
        path = folder.expanduser()
        if not path.is_dir() and not (path.is_file() and path.name.endswith(RESULTS)):
            raise DataError(
                f"{folder}: expected a folder of results or a run's *{RESULTS}; a run that ended "
                "before its first score writes none: start it again, what was judged is kept"
            )
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

    def verdicts(captioner: Captioner, name: str) -> Verdicts | None:
        try:
            return captioner.verdicts(name, sampled=False) if name in captioner.runs else None
        except DataError as error:
            missing.append(f"{captioner.name}, {name}: {without_folders(str(error))}")
            return None

    views = {}
    for name in dict.fromkeys(name for captioner in captioners for name in captioner.runs):
        view = View(
            name, [c.runs.get(name) for c in captioners], [verdicts(c, name) for c in captioners]
        )
        if any(view.verdicts):
            views[name] = view
    # Groups before their tasks, otherwise in the order of the results.
    by_size = sorted(views.values(), key=lambda view: -len(view.tasks))
    names = dict.fromkeys(name for view in by_size for name in (view.name, *view.tasks))
    return captioners, [views[name] for name in names if name in views]


def without_folders(text: str) -> str:
    """Return a text with the names of files, without the folders that they are in.

    >>> without_folders("/home/me/runs/a_results.json: no such file; see https://x.org/a/b")
    'a_results.json: no such file; see https://x.org/a/b'
    """
    return _FOLDERS.sub("", text)
