"""Files of the output folder: which of them the command has written, and which are the user's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.clip_lists import is_list
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import FOLDER, is_scores
from lmms_eval_captions.lmms_eval_tasks.commands.score.summary import KEPT_FILE, WORST_FILE

SUMMARY_FILE: Final = "summary.json"
_LISTS: Final = (WORST_FILE, KEPT_FILE)
_SUMMARY_FIELDS: Final = frozenset(
    {"protocol", "headline", "n_rows", "n_scored", "n_unscored", "totals", "judged_by"}
)
"""Of every version."""


def require_ours(folder: Path, scores: Iterable[Path] = ()) -> None:
    """Raise where a file that would be written over is not the command's own.

    Args:
        folder: The output folder, whose lists and summary would be replaced.
        scores: Files of scores that would be, too.

    Raises:
        SettingsError: If one is there that this command has not written; the text says which.
    """
    _require((folder / name for name in _LISTS), is_list)
    _require([folder / SUMMARY_FILE], _is_summary)
    _require(scores, is_scores)


def without_ours(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The files that this command has not written itself, in an earlier run.

    Args:
        paths: Resolved.
        folder: The output folder.
    """
    scores, lists = (folder / FOLDER).resolve(), {(folder / name).resolve() for name in _LISTS}
    return [
        path
        for path in paths
        if not (path in lists and is_list(path))
        and not (scores in path.parents and is_scores(path))
    ]


def _require(paths: Iterable[Path], is_ours: Callable[[Path], bool]) -> None:
    for path in paths:
        # A link that leads nowhere is the user's, too; what is empty, as a power cut may leave our
        # own, holds nothing of anybody's.
        if os.path.lexists(path) and not is_ours(path) and not _is_empty(path):
            raise SettingsError(
                f"--out: {path} was not written by this command, which would write over it; name "
                "another folder with --out, or move the file"
            )


def _is_empty(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == 0


def _is_summary(path: Path) -> bool:
    """Whether a file is a summary, of this version or an earlier one."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.keys() >= _SUMMARY_FIELDS
