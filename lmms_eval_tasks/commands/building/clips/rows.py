"""``clips.jsonl``: what became of every part of every video."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl

CLIPS: Final = "clips.jsonl"


@dataclass(frozen=True, slots=True)
class Row:
    """One part of a video, or a video that cannot be read."""

    source: str
    """Path of the video below the folder that was named."""
    start_s: float | None
    """Seconds from the video's first frame; ``None`` of a video that cannot be read."""
    end_s: float | None
    frames: tuple[int, int] | None
    """Position in the video of its first frame, and of the one behind its last."""
    motion: float | None
    """Pixels, as :func:`.stillness.motion_within` measures them; ``None`` where it could not."""
    fate: str
    """``kept``, ``too short``, ``still``, ``left out`` or ``unreadable``."""
    reason: str
    """Why it is not kept; empty where it is."""
    file: str | None = None
    """Name of the clip, ``None`` where there is none."""

    @property
    def is_kept(self) -> bool:
        """Whether it is a clip."""
        return self.fate == "kept"

    @property
    def length_s(self) -> float:
        """Seconds; 0 of a video that cannot be read."""
        return (self.end_s or 0.0) - (self.start_s or 0.0)

    def dropped(self, fate: str, reason: str) -> Row:
        """The same part, not kept."""
        return replace(self, fate=fate, reason=reason, file=None)

    def to_json(self) -> dict[str, object]:
        """The row as it is written."""
        return {
            "file": self.file,
            "source": self.source,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "frames": self.frames,
            "motion": self.motion,
            "kept": self.is_kept,
            "fate": self.fate,
            "reason": self.reason,
        }


def write_rows(folder: Path, rows: Sequence[Row]) -> None:
    """Write the rows beside the clips, whole or not at all.

    Raises:
        DataError: If they cannot be written.
    """
    lines = "".join(f"{json.dumps(row.to_json())}\n" for row in rows)
    try:
        write_atomically(folder / CLIPS, lines.encode("ascii"))
    except OSError as error:
        raise DataError(f"{folder / CLIPS} cannot be written: {error}") from error


def kept_files(folder: Path) -> set[str]:
    """Names of the clips that an earlier run wrote into a folder, by its rows.

    Raises:
        DataError: If there are rows that cannot be read.
    """
    path = folder / CLIPS
    if not path.is_file():
        return set()
    names = {row.get("file") for row in read_jsonl(path)}
    # Plain names alone: they are deleted where they are not wanted any more.
    return {name for name in names if isinstance(name, str) and PurePath(name).name == name}
