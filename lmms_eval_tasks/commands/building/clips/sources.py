"""The videos that clips are cut from, and what the clips of each are called."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_MOST_BYTES: Final = 180
"""Of a source's name in those of its clips: file systems take 255 for all of one."""


@dataclass(frozen=True, slots=True)
class Source:
    """One video."""

    path: Path
    name: str
    """Its path below the folder that was named."""
    stem: str
    """What the names of its clips begin with; no other source has the same."""

    def clip_name(self, start_s: float, end_s: float) -> str:
        """The file of a clip of it.

        >>> Source(Path("a.mkv"), "a.mkv", "a").clip_name(3.5, 10)
        'a-3500-10000.mp4'
        """
        return f"{self.stem}-{round(start_s * 1000)}-{round(end_s * 1000)}.mp4"


def find_sources(given: Path, output: Path) -> list[Source]:
    """The videos of a folder and of those below it, or the one file that is named, by name.

    Args:
        given: Folder or file.
        output: Where clips are written; what is in it is no source.

    Raises:
        SettingsError: If clips would be written among their sources.
        DataError: If there is no video.
    """
    if given.is_file():
        return _named([(given, given.name)])
    if not given.is_dir():
        raise DataError(f"expected a folder of videos or a video, there is no {given}")
    inside = output.resolve()
    if given.resolve() == inside:
        raise SettingsError(f"-o {output}: expected another folder than that of the long videos")
    found = [
        (path, path.relative_to(given).as_posix())
        for path in files_below(given)
        if path.suffix.lower() in _ENDINGS and inside not in path.resolve().parents
    ]
    if not found:
        raise DataError(f"expected videos in {given} or below, found none")
    return _named(sorted(found, key=lambda pair: pair[1]))


def _named(found: list[tuple[Path, str]]) -> list[Source]:
    """Sources with stems of their own: those that share one get a digest of their path."""
    stems = [_short(without_ending(path.name, _ENDINGS)) for path, _ in found]
    # Some file systems take upper and lower case for the same.
    n_of = Counter(stem.casefold() for stem in stems)
    return [
        Source(path, name, stem if n_of[stem.casefold()] == 1 else f"{stem}-{_digest(name)}")
        for (path, name), stem in zip(found, stems, strict=True)
    ]


def _digest(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(raw, digest_size=4).hexdigest()


def _short(stem: str) -> str:
    raw = stem.encode("utf-8", "surrogateescape")
    if len(raw) <= _MOST_BYTES:
        return stem
    return f"{raw[:_MOST_BYTES].decode('utf-8', 'ignore')}-{_digest(stem)}"
