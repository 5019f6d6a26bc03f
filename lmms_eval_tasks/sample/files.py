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


def share_videos(root: Path, folder: str) -> None:
    """Put VDC's clips into another benchmark's folder too, without a second copy where possible.

    Args:
        root: Root of the sample, which holds ``vdc/videos``.
        folder: Folder below the root, such as ``capquiz/videos``; made here.
    """
    target = root / folder
    target.mkdir(parents=True, exist_ok=True)
    for clip in sorted((root / "vdc" / "videos").iterdir()):
        try:
            os.link(clip, target / clip.name)
        except OSError:  # A file system without hard links.
            shutil.copyfile(clip, target / clip.name)
