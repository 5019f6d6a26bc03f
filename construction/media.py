"""Clips of a folder, the frames that models are shown, and links in the benchmark's folder."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Message
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.data.files import files_below
from lmms_eval_captions.model_wrappers.video.endings import RARE_VIDEO_ENDINGS, VIDEO_ENDINGS

_MAX_BYTES: Final = 256 * 2**20
"""Approximate bytes of frames kept for the next request and the next stage."""
_AHEAD: Final = 6
"""Number of clips read in advance."""


@dataclass(frozen=True, slots=True)
class Video:
    """A clip with a unique name."""

    video_id: str
    """File name without its ending, with its folders if two would be equal. Half characters are
    U+FFFD, as in the benchmarks' readers."""
    path: Path

    @property
    def file(self) -> str:
        """File name in the benchmark's folder of videos."""
        return f"{self.video_id}{self.path.suffix}"


def find_videos(
    folder: Path,
    limit: int | None = None,
    *,
    endings: Collection[str] = VIDEO_ENDINGS,
    what: str = "--videos",
) -> list[Video]:
    """Return the clips in a folder and below it, in the order of their paths, at least one."""
    if not folder.is_dir():
        raise DataError(f"{what}: expected a folder of videos, got {str(folder)!r}")
    paths = sorted(path for path in files_below(folder) if path.suffix.lower() in endings)
    if not paths:
        raise DataError(
            f"{what}: expected videos in {str(folder)!r}, got no file with one of the endings "
            f"{', '.join(sorted(endings))}"
        )
    return [Video(*pair) for pair in zip(_names(folder, paths), paths, strict=True)][:limit]


def _names(folder: Path, paths: Sequence[Path]) -> list[str]:
    """Return a name per clip: the shortest of several spellings that no other clip has."""
    spellings = [list(_spellings(path.relative_to(folder))) for path in paths]
    # Some disks ignore the case of letters.
    counts = Counter(name.casefold() for names in spellings for name in dict.fromkeys(names))
    names: list[str] = []
    for index, each in enumerate(spellings):
        free = (name for name in each if counts[name.casefold()] == 1)
        names.append(next(free, f"{each[-1]}_{index}"))
    return names


def _spellings(path: Path) -> Iterator[str]:
    *folders, name = (whole(part) for part in path.with_suffix("").parts)
    if PurePath(name).suffix.lower() in VIDEO_ENDINGS | RARE_VIDEO_ENDINGS:
        # "a.mp4" of "a.mp4.mov" would be taken for the clip "a.mp4".
        name = "_".join(name.rsplit(".", 1))
    stem = "_".join([*folders, name])
    yield from (name, stem, f"{stem}_{path.suffix.lstrip('.')}")


def check_is_no_link(path: Path) -> None:
    """Raise :class:`DataError` if a file or folder to write is a link, which may lead elsewhere."""
    if path.is_symlink():
        raise DataError(f"{path}: expected no link, as it may lead elsewhere; remove the link")


def link_videos(videos: Sequence[Video], folder: Path) -> None:
    """Link clips into a benchmark's folder of videos, or copy them if links are not supported.

    Links of clips that are no longer in the benchmark are removed. :class:`DataError` if the folder
    is a link elsewhere, or another file has a clip's name.
    """
    check_is_no_link(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {video.file: video.path.resolve() for video in videos}
    for link in folder.iterdir():
        if link.is_symlink() and link.name not in wanted:
            link.unlink()
    for name, path in wanted.items():
        _link(folder / name, path)


def _link(link: Path, path: Path) -> None:
    if link.is_symlink():
        if link.resolve() == path:
            return
        link.unlink()
    if not link.exists():
        try:
            link.symlink_to(path)
        except OSError as error:
            logger.info("{} is copied, as it cannot be linked: {}", path, error)
            shutil.copyfile(path, link)
    elif link.stat().st_size != path.stat().st_size:
        raise DataError(
            f"{link}: expected the clip {path}, got another file; move it away, or build into "
            "another folder with -o"
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """Frames of a clip as parts of a message."""

    parts: tuple[dict[str, Any], ...]
    """One picture per frame, in order of time."""
    times_s: tuple[float, ...]
    """Times of the frames in seconds from the clip's first frame."""
    duration_s: float
    size: tuple[int, int]
    """Width and height of a frame in pixels."""


class Frames:
    """Reader of frames that reads some clips in advance; for one thread."""

    def __init__(self, *, n_frames: int, frame_pixels: int) -> None:
        self._n_frames = n_frames
        self._frame_pixels = frame_pixels
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="frames")
        self._read: dict[str, Future[Shown]] = {}
        """Clips in memory, the least recently used first."""
        self._order: dict[str, int] = {}
        self._videos: Sequence[Video] = ()

    def expect(self, videos: Sequence[Video]) -> None:
        """Set the order in which clips are needed next."""
        self._videos = videos
        self._order = {video.video_id: index for index, video in enumerate(videos)}

    def of(self, video: Video) -> Shown:
        """Return the frames of a clip; raises :class:`DataError` if it cannot be read."""
        index = self._order.get(video.video_id, len(self._videos))
        for each in (video, *self._videos[index : index + _AHEAD]):
            future = self._read.pop(each.video_id, None)
            self._read[each.video_id] = future or self._readers.submit(self._show, each)
        shown = self._read[video.video_id].result()
        n_bytes = sum(len(part["image_url"]["url"]) for part in shown.parts)
        n_kept = max(_AHEAD + 1, _MAX_BYTES // max(1, n_bytes))
        while len(self._read) > n_kept:
            del self._read[next(iter(self._read))]
        return shown

    def close(self) -> None:
        """Stop the threads."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _show(self, video: Video) -> Shown:
        from lmms_eval_captions.model_wrappers.chat_api import data_url
        from lmms_eval_captions.model_wrappers.video.frames import read_frames

        clip = read_frames(video.path, self._n_frames, max_pixels=self._frame_pixels)
        parts = tuple(
            {"type": "image_url", "image_url": {"url": data_url(frame)}} for frame in clip.frames
        )
        times_s = tuple(round(float(time_s), 3) for time_s in clip.timestamps_s)
        height, width = clip.frames.shape[1:3]
        return Shown(parts, times_s, round(clip.duration_s, 3), (width, height))


def text_before_frames(messages: Sequence[Message], shown: Shown) -> list[Message]:
    """Return messages with a clip's frames after the last text, which is equal for all clips."""
    *before, last = messages
    return [*before, {**last, "content": [{"type": "text", "text": last["content"]}, *shown.parts]}]


def text_after_frames(messages: Sequence[Message], shown: Shown) -> list[Message]:
    """Return messages with the frames before the last text: questions about a clip share them."""
    *before, last = messages
    return [*before, {**last, "content": [*shown.parts, {"type": "text", "text": last["content"]}]}]
