"""The questions of a build that people are asked about, out of the files of its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CHECKS, CRITERIA
from lmms_eval_captions.lmms_eval_tasks.commands.building.reading_clips import CLIPS
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import (
    FOLDER,
    read_stage,
    stage_files,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, kept

_OF_QUESTION: Final = frozenset({"id", "video", "question", "answer"})


@dataclass(frozen=True, slots=True)
class BuiltQuestions:
    """What the stage before the check left."""

    kind: str
    """The benchmark's name."""
    stage: str
    """Name of that stage."""
    rows: Sequence[Row]
    clips: Mapping[str, Path]
    """Clip's name to its file."""


def questions_to_check(folder: Path) -> BuiltQuestions:
    """The questions that people are asked about.

    Args:
        folder: The benchmark's, such as ``DATA/capquiz``.

    Raises:
        SettingsError: If it is not the folder of a benchmark that can be built.
        DataError: If a stage's file is missing or cannot be read, or no question is left.
    """
    kind = folder.expanduser().resolve().name
    if kind not in CRITERIA:
        raise SettingsError(
            f"--build: expected the folder of a benchmark that was built, such as DATA/capquiz, or "
            f"one of {', '.join(CRITERIA)}, got {str(folder)!r}"
        )
    files = stage_files(folder.expanduser())
    names = [path.stem.partition("-")[2] for path in files]
    until = next((place for place, name in enumerate(names) if name in CHECKS), len(files))
    if not until or CLIPS.name not in names:
        raise DataError(
            f"--build: expected files of stages in {folder / FOLDER}, got "
            f"{', '.join(path.name for path in files) or 'none'}; run lmms-eval-captions build "
            f"{kind} first"
        )
    rows = kept(read_stage(files[until - 1])[1])
    if not rows or not all(row.keys() >= _OF_QUESTION for row in rows):
        raise DataError(
            f"{files[until - 1]}: expected questions that people can be asked about, got "
            f"{len(rows):,} rows that are none; run lmms-eval-captions build {kind} to its end"
        )
    clips = kept(read_stage(files[names.index(CLIPS.name)])[1])
    paths = {str(row["video"]): Path(str(row["path"])) for row in clips}
    return BuiltQuestions(kind, names[until - 1], rows, paths)
