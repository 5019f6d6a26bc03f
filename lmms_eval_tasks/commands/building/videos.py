"""The clips of a folder, each with a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePath
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below
from lmms_eval_captions.model_wrappers.video.endings import RARE_VIDEO_ENDINGS, VIDEO_ENDINGS

_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS


@dataclass(frozen=True, slots=True)
class Video:
    """A clip of one's own."""

    video_id: str
    """Its file's name without the ending; with the folders before it where two would be the
    same. Half characters of a name are U+FFFD, as the benchmarks' readers have them."""
    path: Path

    @property
    def file(self) -> str:
        """Its name in the benchmark's folder of videos."""
        return f"{self.video_id}{self.path.suffix}"


def find_videos(folder: Path, limit: int | None = None) -> list[Video]:
    """The clips of a folder and of those below it, in the order of their paths.

    Args:
        folder: Where they are.
        limit: Most of them, the first ones; ``None`` for all.

    Raises:
        DataError: If there is none.
    """
    if not folder.is_dir():
        raise DataError(f"--videos: expected a folder of clips, got {str(folder)!r}")
    paths = sorted(path for path in files_below(folder) if path.suffix.lower() in VIDEO_ENDINGS)
    if not paths:
        raise DataError(
            f"--videos: expected clips in {str(folder)!r}, got no file with one of the endings "
            f"{', '.join(sorted(VIDEO_ENDINGS))}"
        )
    return [Video(name, path) for name, path in zip(_names(folder, paths), paths, strict=True)][
        :limit
    ]


def link_videos(videos: Sequence[Video], folder: Path) -> None:
    """Put links to clips into a benchmark's folder of videos, copies where links cannot be made.

    Links of clips that are no longer in the benchmark are taken away.

    Raises:
        DataError: If a file of another content has the name of a clip.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {video.file: video.path.resolve() for video in videos}
    for place in folder.iterdir():
        if place.is_symlink() and place.name not in wanted:
            place.unlink()
    for name, path in wanted.items():
        _link(folder / name, path)


def _link(place: Path, path: Path) -> None:
    if place.is_symlink():
        if place.resolve() == path:
            return
        place.unlink()
    if not place.exists():
        try:
            place.symlink_to(path)
        except OSError as error:
            import shutil

            logger.info("{} is copied, as no link can be made: {}", path, error)
            shutil.copyfile(path, place)
    elif place.stat().st_size != path.stat().st_size:
        raise DataError(
            f"{place}: expected the clip {path}, got another file; move it away, or build into "
            "another folder with -o"
        )


def _names(folder: Path, paths: Sequence[Path]) -> list[str]:
    """A name for each clip: the shortest of three spellings that no other clip has."""
    spellings = [_spellings(path.relative_to(folder)) for path in paths]
    # Names of files that differ in the case of letters alone are one on some disks.
    counts = [Counter(names[k].casefold() for names in spellings) for k in range(3)]
    names = [
        next((name for k, name in enumerate(each) if counts[k][name.casefold()] == 1), each[-1])
        for each in spellings
    ]
    taken = {name.casefold() for name in names}
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name.casefold() in seen:
            numbered = (f"{name}_{number}" for number in count(2))
            names[place] = next(each for each in numbered if each.casefold() not in taken)
            taken.add(names[place].casefold())
        seen.add(names[place].casefold())
    return names


def _spellings(path: Path) -> tuple[str, str, str]:
    *folders, name = (whole(part) for part in path.with_suffix("").parts)
    if PurePath(name).suffix.lower() in _ENDINGS:
        # "a.mp4" of "a.mp4.mov" would be taken for the clip "a.mp4".
        name = "_".join(name.rsplit(".", 1))
    stem = "_".join([*folders, name])
    return name, stem, f"{stem}_{path.suffix.lstrip('.')}"
