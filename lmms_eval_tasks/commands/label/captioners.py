"""Captioners by the folders that a user gives: the newest run of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults, read_results


def captioners_of(folders: Sequence[Path]) -> dict[str, RunResults]:
    """The newest results of every captioner below the folders, by distinct short names.

    Raises:
        DataError: If there are no results below a folder, or two folders are one.
    """
    named: dict[tuple[str, ...], RunResults] = {}
    for folder in folders:
        runs = read_results(folder)
        for run in runs:
            path = run.path.parent.resolve() if len(runs) > 1 else folder.resolve()
            if path.parts in named:
                raise DataError(f"{folder}: the same captioner is given twice; name each once")
            named[path.parts] = run
    n_parts = 1
    while len({parts[-n_parts:] for parts in named}) < len(named):
        n_parts += 1
    return {"/".join(parts[-n_parts:]): run for parts, run in named.items()}
