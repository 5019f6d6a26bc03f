"""Which generated videos there are, of which captioner and generator, and their originals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below, index_videos
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_DEEPEST: Final = 3
"""Parts of a path: captioner, generator, video."""

Key = tuple[str, str, str]
"""Captioner, generator (empty where there is one alone) and video."""


@dataclass(frozen=True, slots=True)
class Generated:
    """One generated video."""

    captioner: str
    generator: str
    """Empty where videos stand in the captioner's folder itself."""
    video: str
    """Name without its ending, as the original has it."""
    path: Path

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return self.captioner, self.generator, self.video


def find_generated(folder: Path) -> list[Generated]:
    """The videos of a folder laid out as ``captioner/video.mp4`` or ``captioner/generator/...``.

    Args:
        folder: With one folder per captioner.

    Returns:
        By captioner, generator and video.

    Raises:
        DataError: If there is none, one lies elsewhere, or two have the same name.
    """
    if not folder.is_dir():
        raise DataError(f"--generated {folder}: there is no such folder")
    found: dict[Key, Generated] = {}
    for each in _listed(folder):
        other = found.setdefault(each.key, each)
        if other is not each:
            raise DataError(
                f"expected one file per generated video, {other.path} and {each.path} have the "
                "same name; take one of them out"
            )
    if not found:
        raise DataError(
            f"--generated {folder}: expected a folder for each captioner with its videos, found "
            "no video"
        )
    return [found[key] for key in sorted(found)]


def _listed(folder: Path) -> Iterator[Generated]:
    for path in files_below(folder):
        if path.suffix.lower() not in _ENDINGS:
            continue
        parts = path.relative_to(folder).parts
        if not 1 < len(parts) <= _DEEPEST:
            raise DataError(
                f"{path}: expected CAPTIONER/VIDEO or CAPTIONER/GENERATOR/VIDEO below {folder}"
            )
        generator = parts[1] if len(parts) == _DEEPEST else ""
        yield Generated(parts[0], generator, without_ending(path.name, _ENDINGS), path)


def find_originals(folder: Path, videos: set[str]) -> dict[str, Path]:
    """The originals of some videos, by name.

    Args:
        folder: Looked through with all folders below it.
        videos: Names without endings; those that have no original are left out.

    Raises:
        DataError: If there is no such folder, or not one original.
    """
    if not folder.is_dir():
        raise DataError(f"--original {folder}: there is no such folder")
    index = index_videos(folder)
    originals = {video: index[video] for video in sorted(videos) if video in index}
    if not originals:
        raise DataError(
            f"--original {folder}: expected videos called as the generated ones, such as "
            f"{min(videos)!r}, found none of them"
        )
    return originals
