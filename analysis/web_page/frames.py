"""Frames of the videos that a page asks about, as pictures within it."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.data.hub import has_videos

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_captions.judges.settings import DataSettings

_LONGEST: Final = 448
"""Longer side of a frame, in pixels."""
_QUALITY: Final = 72

NO_VIDEOS: Final = (
    "the videos are not on this machine; set LMMS_CAPTIONS_DATA to the folder that has them"
)


def frames_of(
    settings: DataSettings,
    videos: Iterable[tuple[str, Benchmark[Any, Any], Mapping[str, Any]]],
    *,
    n_frames: int,
    most_bytes: int,
    longest: int = _LONGEST,
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Frames of videos that are at hand; nothing is downloaded.

    Args:
        settings: Says where videos are.
        videos: Key of each video, its benchmark and its document, in the order in which they are
            asked about.
        n_frames: Of each video, evenly spaced.
        most_bytes: Of all frames together; videos beyond it have none.
        longest: Longer side of a frame, in pixels.

    Returns:
        Key to the frames as addresses of JPEG data, and key to why there are none.
    """
    files = ((key, partial(_path, settings, benchmark, doc)) for key, benchmark, doc in videos)
    return frames_of_files(files, n_frames=n_frames, most_bytes=most_bytes, longest=longest)


def frames_of_files(
    videos: Iterable[tuple[str, Callable[[], Path]]],
    *,
    n_frames: int,
    most_bytes: int,
    longest: int = _LONGEST,
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Frames of video files.

    Args:
        videos: Key of each video, and what says where its file is or raises :class:`DataError`, in
            the order in which they are asked about.
        n_frames: As for :func:`frames_of`.
        most_bytes: As for :func:`frames_of`.
        longest: As for :func:`frames_of`.

    Returns:
        As :func:`frames_of`.
    """
    frames: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    left = most_bytes
    for key, find in videos:
        if key in frames or key in reasons:
            continue
        try:
            pictures = _pictures(find, n_frames, longest)
        except DataError as error:
            reasons[key] = f"No frames: {error}"
            continue
        size = sum(map(len, pictures))
        if size > left:
            reasons[key] = "No frames: the page would be larger than --max-mb."
            continue
        left -= size
        frames[key] = pictures
    return frames, reasons


def _path(settings: DataSettings, benchmark: Benchmark[Any, Any], doc: Mapping[str, Any]) -> Path:
    if settings.data is None and not has_videos(benchmark.source, settings.cache):
        raise DataError(NO_VIDEOS)
    return Path(benchmark.video_path(settings, doc))


def _pictures(find: Callable[[], Path], n_frames: int, longest: int) -> list[str]:
    from lmms_eval_captions.model_wrappers.video.frames import read_frames

    if not n_frames:
        raise DataError("--frames is 0")
    clip = read_frames(find(), n_frames, max_pixels=longest**2)
    return [_address(frame, longest) for frame in clip.frames]


def _address(frame: NDArray[np.uint8], longest: int) -> str:
    """A frame, shape (height, width, 3), as an address that holds it."""
    from PIL import Image

    picture = Image.fromarray(frame)
    picture.thumbnail((longest, longest))
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
