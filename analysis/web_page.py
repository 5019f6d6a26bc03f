"""Pages that are one file of HTML and load nothing: their data, documents and video frames."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.data.hub import has_videos
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_QUALITY: Final = 72
_LONGEST: Final = 448
"""Longer side of a frame, in pixels."""
NO_VIDEOS: Final = (
    "the videos are not on this machine; set LMMS_CAPTIONS_DATA to the folder that has them"
)

Documents = Mapping[str, Mapping[str, Any]]
"""Documents of a task by the id of their video."""
Frames = tuple[dict[str, list[str]], dict[str, str]]
"""A video's key to its frames as addresses of JPEG data, and key to why there are none."""


def json_in_html(data: object) -> str:
    r"""Return JSON that cannot end the element it stands in, nor begin a comment.

    >>> json_in_html({"caption": "</script><!--&"})
    '{"caption": "\\u003c/script\\u003e\\u003c!--\\u0026"}'
    """
    text = json.dumps(data)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(data: bytes) -> str:
    """Compress bytes with gzip, in letters and digits, which the browser unpacks."""
    return base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii")


def packed_json(data: object) -> str:
    """Pack a value of JSON's types without ``NaN``."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return packed(text.encode("utf-8", "replace"))


def source_hash(text: str) -> str:
    """Return what a page's policy knows its own style and script by; nothing else runs."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}"


def documents_of(task: str, settings: DataSettings, *, is_needed: bool = False) -> Documents:
    """Return the documents of a task by video; none if they are not at hand.

    Args:
        task: One of ours.
        settings: Location of the data.
        is_needed: Whether nothing can be shown without them; otherwise nothing is downloaded.

    Raises:
        DataError: If they are needed and missing.
    """
    benchmark = benchmark_of_task(task)
    if not is_needed and settings.data is None and not has_videos(benchmark.source, settings.cache):
        return {}
    try:
        read = benchmark.read(settings, benchmark.tasks[task])
    except DataError:
        if is_needed:
            raise
        return {}
    return {benchmark.video_id(doc): doc for doc in read}


def frames_of(
    settings: DataSettings,
    videos: Iterable[tuple[str, Benchmark[Any, Any], Mapping[str, Any]]],
    *,
    n_frames: int,
    most_bytes: int,
    longest: int = _LONGEST,
) -> Frames:
    """Return frames of videos that are at hand; nothing is downloaded.

    Args:
        settings: Location of the videos.
        videos: Key of each video, its benchmark and its document, in the order in which they are
            asked about.
        n_frames: See :func:`frames_of_files`.
        most_bytes: See :func:`frames_of_files`.
        longest: See :func:`frames_of_files`.
    """

    def path(benchmark: Benchmark[Any, Any], doc: Mapping[str, Any]) -> Path:
        if settings.data is None and not has_videos(benchmark.source, settings.cache):
            raise DataError(NO_VIDEOS)
        return Path(benchmark.video_path(settings, doc))

    files = ((key, partial(path, benchmark, doc)) for key, benchmark, doc in videos)
    return frames_of_files(files, n_frames=n_frames, most_bytes=most_bytes, longest=longest)


def frames_of_files(
    videos: Iterable[tuple[str, Callable[[], Path]]],
    *,
    n_frames: int,
    most_bytes: int,
    longest: int = _LONGEST,
) -> Frames:
    """Return frames of video files.

    Args:
        videos: Key of each video, and a function that returns its file or raises
            :class:`DataError`, in the order in which they are asked about.
        n_frames: Frames of each video, evenly spaced.
        most_bytes: Bytes of all frames together; videos beyond it have none.
        longest: Longer side of a frame, in pixels.
    """
    frames: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for key, find in videos:
        if key in frames or key in reasons:
            continue
        try:
            pictures = _pictures(find, n_frames, longest)
        except DataError as error:
            reasons[key] = f"No frames: {error}"
            continue
        size = sum(map(len, pictures))
        if size > most_bytes:
            reasons[key] = "No frames: the page would be larger than --max-mb."
            continue
        most_bytes -= size
        frames[key] = pictures
    return frames, reasons


def _pictures(find: Callable[[], Path], n_frames: int, longest: int) -> list[str]:
    """Return frames as addresses that hold them."""
    from PIL import Image

    from lmms_eval_captions.model_wrappers.video.frames import read_frames

    if not n_frames:
        raise DataError("--frames is 0")
    addresses = []
    for frame in read_frames(find(), n_frames, max_pixels=longest**2).frames:
        picture = Image.fromarray(frame)
        picture.thumbnail((longest, longest))
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
        addresses.append(f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}")
    return addresses
