"""Pages that are one file of HTML and load nothing: logged captions, documents and video frames."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from lmms_eval_captions.analysis.results_folder import RunResults
from lmms_eval_captions.analysis.tables import plain
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.hub import has_videos
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

_QUALITY: Final = 72
_LONGEST: Final = 448
"""Longer side of a frame, in pixels."""
_NO_VIDEOS: Final = (
    "the videos are not on this machine; set LMMS_CAPTIONS_DATA to the folder that has them"
)

Judgement = Mapping[str, Any]
Documents = Mapping[str, Mapping[str, Any]]
"""Documents of a task by the id of their video."""


class LoggedCaption(NamedTuple):
    """A judged caption of a sample log."""

    text: str
    judgements: Sequence[Judgement]
    """Judgements of all judge runs; those of a run in the order of the questions."""


def logged_captions(run: RunResults, task: str) -> dict[str, list[LoggedCaption]]:
    """Return the judged captions of each video, which may have several, in the log's order.

    Raises:
        DataError: If the run has no sample log of the task, or it cannot be read to its end.
    """
    headline = benchmark_of_task(task).headline
    captions: dict[str, list[LoggedCaption]] = {}
    for sample in run.samples(task):
        item: Any = sample.get(headline)
        if not isinstance(item, dict):
            continue
        text: Any = sample.get("filtered_resps") or sample.get("resps") or ""
        while isinstance(text, list):
            text = text[0] if text else ""
        judgements = [said for said in item.get("judgements") or () if isinstance(said, dict)]
        logged = LoggedCaption(str(text), judgements)
        captions.setdefault(str(item.get("video_id")), []).append(logged)
    return captions


def render_page(folder: Path, **values: object) -> str:
    """Return a folder's ``page.html`` with values, which it escapes if they are not marked as safe.

    Its policy knows its own style and scripts by their hashes; nothing else runs.
    """
    from jinja2 import Environment, FileSystemLoader

    def source_hash(text: str) -> str:
        return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}"

    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["source_hash"] = source_hash
    return environment.get_template("page.html").render(values)


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
    """Pack a value of JSON's types; a number without a value is ``null``."""
    return packed(json.dumps(plain(data), ensure_ascii=False, separators=(",", ":")).encode())


def documents_of(task: str, settings: DataSettings, *, is_needed: bool = False) -> Documents:
    """Return the documents of a task by video; none if they are not at hand.

    If they are needed they are downloaded, or a :class:`DataError` says what is missing.
    """
    benchmark = benchmark_of_task(task)
    try:
        is_read = is_needed or not _is_absent(task, settings)
        documents = benchmark.read(settings, benchmark.tasks[task]) if is_read else ()
    except DataError:
        if is_needed:
            raise
        return {}
    return {benchmark.video_id(document): document for document in documents}


def _is_absent(task: str, settings: DataSettings) -> bool:
    source = benchmark_of_task(task).source
    return settings.data is None and not has_videos(source, settings.cache)


def video_file(
    settings: DataSettings, documents: Mapping[str, Documents], task: str, video: str
) -> Path:
    """Return the file of a video of a task; nothing is downloaded.

    Raises:
        DataError: If it is not at hand.
    """
    if _is_absent(task, settings) or video not in documents[task]:
        raise DataError(_NO_VIDEOS)
    return Path(benchmark_of_task(task).video_path(settings, documents[task][video]))


def frames_of(
    videos: Mapping[str, Callable[[], Path]],
    *,
    n_frames: int,
    most_bytes: int,
    longest: int = _LONGEST,
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return evenly spaced frames by key, as addresses of JPEG data, and why others have none.

    Args:
        videos: Key of each video to a function that returns its file or raises
            :class:`DataError`.
        n_frames: Frames of each video.
        most_bytes: Bytes of all frames together; videos beyond it have none.
        longest: Longer side of a frame, in pixels.
    """
    if not n_frames:
        return {}, dict.fromkeys(videos, "--frames is 0")
    frames: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for key, find in videos.items():
        try:
            pictures = _pictures(find(), n_frames, longest)
        except DataError as error:
            reasons[key] = str(error)
            continue
        size = sum(map(len, pictures))
        if size > most_bytes:
            reasons[key] = "the page would be too large"
        else:
            most_bytes -= size
            frames[key] = pictures
    return frames, reasons


def _pictures(path: Path, n_frames: int, longest: int) -> list[str]:
    """Return frames as addresses that hold them."""
    from PIL import Image

    from lmms_eval_captions.model_wrappers.video.frames import read_frames

    addresses = []
    for frame in read_frames(path, n_frames, max_pixels=longest**2).frames:
        picture = Image.fromarray(frame)
        picture.thumbnail((longest, longest))
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
        addresses.append(f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}")
    return addresses
