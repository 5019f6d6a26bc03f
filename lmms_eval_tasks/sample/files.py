"""Files of the sample that several benchmarks write alike."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write JSON lines in UTF-8; the same rows give the same bytes on every system."""
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    path.write_text(text, encoding="utf-8", newline="\n")


def share_clips(clips: Path, folder: Path) -> None:
    """Put the sample's clips into a benchmark's folder, without a second copy where possible.

    Args:
        clips: Folder of the clips.
        folder: The benchmark's folder of videos; made here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for clip in sorted(clips.iterdir()):
        try:
            os.link(clip, folder / clip.name)
        except OSError:  # A file system without hard links.
            shutil.copyfile(clip, folder / clip.name)
