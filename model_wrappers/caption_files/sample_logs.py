"""Where lmms-eval keeps its sample logs: one file for each task of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.columns import listed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LOG_NAME: Final = re.compile(r"(?P<date>.+?)_samples_(?P<task>.+)\.jsonl(\.gz)?", re.IGNORECASE)


def has_logs(folder: Path) -> bool:
    """Whether sample logs lie right in a folder."""
    return bool(_logs(folder.iterdir()))


def newest_logs(folder: Path) -> dict[str, Path]:
    """The newest sample log of each task of one model.

    Args:
        folder: A model's own results folder, or one above it.

    Raises:
        CaptionError: If there are no logs, or logs of more than one model.
    """
    # Logs right here are the ones meant; those further down may belong to other models.
    logs = _logs(folder.iterdir()) or _logs(folder.rglob("*"))
    parents = sorted({str(path.parent) for path in logs})
    if not logs:
        raise CaptionError(
            f"{folder}: expected lmms-eval sample logs (<date>_samples_<task>.jsonl, written with "
            "--log_samples) or caption files, found none; or give one caption file as path="
        )
    if len(parents) > 1:
        raise CaptionError(
            f"{folder}: sample logs of {len(parents)} models, in {listed(parents)}; give one of "
            "these"
        )
    return {task: path for path, (_, task) in sorted(logs.items(), key=lambda log: log[0].name)}


def logs_of_run(folder: Path, date: str) -> dict[str, Path]:
    """The sample log of each task of one run.

    Args:
        folder: The model's own results folder.
        date: When the run was, as lmms-eval puts it in front of the names of the run's files.
    """
    logs = _logs(folder.iterdir())
    return {task: path for path, (date_of_log, task) in logs.items() if date_of_log == date}


def _logs(paths: Iterable[Path]) -> dict[Path, tuple[str, str]]:
    """Those paths that are sample logs, with the date and the task in their names."""
    matches = ((path, _LOG_NAME.fullmatch(path.name)) for path in paths)
    return {path: (match["date"], match["task"]) for path, match in matches if match}
