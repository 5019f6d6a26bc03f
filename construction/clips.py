"""Clips of a few seconds that move, from a folder of long videos: look, choose, cut."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np

from lmms_eval_captions.construction.media import find_videos
from lmms_eval_captions.construction.pipeline import write_rows
from lmms_eval_captions.construction.scenes import Span, cut_parts, find_scenes, parts_of
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import parse_json, read_whole, write_atomically
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

P = ParamSpec("P")
R = TypeVar("R")

STILL_BELOW: Final = 0.15
"""Motion below which a part is a still image. Encoded photographs have up to 0.01, with strong
grain up to 0.09; a pan of 1% of the picture's width per second has 0.3."""
CLIPS: Final = "clips.jsonl"
N_BINS: Final = 4
_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_MAX_NAME_BYTES: Final = 180
"""Bytes of a source's name in those of its clips; file systems allow 255 in all."""
_VERSION: Final = 2
"""Version of how scenes are found and motion is measured."""


@dataclass(frozen=True, slots=True)
class ClipOptions:
    """Options of ``build clips``."""

    min_s: float = 3.0
    max_s: float = 15.0
    still_below: float = STILL_BELOW
    """Pixels per quarter of a second at a longer side of 160."""
    n: int | None = None
    """Number of clips; ``None`` for all."""
    seed: int = 0
    """Seed of the choice of clips."""
    limit: int | None = None
    """Number of videos, the first ones by name; ``None`` for all."""

    def __post_init__(self) -> None:
        if not 0.1 <= self.min_s <= self.max_s <= 86_400:
            raise SettingsError(
                "expected --min-s of at least 0.1 and --max-s of at least --min-s, got "
                f"{self.min_s:g} and {self.max_s:g}"
            )
        if not 0 <= self.still_below < float("inf"):
            raise SettingsError(
                f"--still-below: expected pixels of at least 0, got {self.still_below}"
            )

    @property
    def edges_s(self) -> list[float]:
        """Ends of the four bins of length, in seconds."""
        return [float(edge) for edge in np.linspace(self.min_s, self.max_s, N_BINS + 1)]


Part = dict[str, Any]
"""Line of ``clips.jsonl``: a part of a video, or a video that cannot be read.

``source`` is the video's path below the given folder, ``start_s`` and ``end_s`` are seconds from
its first frame, ``motion`` is in pixels, ``fate`` is ``kept``, ``too short``, ``still``,
``left out`` or ``unreadable``, ``reason`` says why it is not kept, and ``file`` names the clip.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of ``build clips``."""

    parts: Sequence[Part]
    n_sources: int
    n_scenes: int


class _Source(NamedTuple):
    path: Path
    name: str
    """Path below the given folder."""
    stem: str
    """Unique start of the names of its clips."""


def build_clips(
    given: Path, output: Path, options: ClipOptions, *, log: Callable[[str], None]
) -> Outcome:
    """Cut a folder's videos into clips, and write ``clips.jsonl`` (VidCapBench, section 3.3.1).

    A stopped run is resumed, and a video that cannot be read costs only itself.
    """
    sources = _find_sources(given, output)[: options.limit]
    scenes: dict[str, list[Any]] = {}
    parts: list[Part] = []
    for number, source in enumerate(sources, start=1):
        log(f"{number}/{len(sources)} {source.name}")
        try:
            scenes[source.name] = found = _scenes(source, output / ".parts")
        except (DataError, OSError) as error:
            part = dict.fromkeys(("file", "source", "start_s", "end_s", "motion", "kept"))
            parts.append(_dropped(part | {"source": source.name}, "unreadable", str(error)))
        else:
            parts += _parts(source, found, options)
    parts = _chosen(parts, options)
    for name in _earlier_files(output) - {part["file"] for part in parts}:
        (output / str(name)).unlink(missing_ok=True)
    made = [
        part
        for source in sources
        for part in _cut(source, [p for p in parts if p["source"] == source.name], output)
    ]
    write_rows(output / CLIPS, made)
    return Outcome(made, len(sources), sum(map(len, scenes.values())))


def in_own_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of a function, called in a process that a bad video may crash."""
    from pebble import ProcessExpired, ProcessPool

    # Not forked: threads of this process may hold locks.
    with ProcessPool(max_workers=1, max_tasks=1, context=get_context("spawn")) as pool:
        try:
            result: R = pool.schedule(function, args=args, kwargs=kwargs).result()
        except ProcessExpired as error:
            raise DataError("the process that read the video crashed") from error
        except BaseException:
            pool.stop()  # type: ignore[no-untyped-call]
            raise
    return result


def _find_sources(given: Path, output: Path) -> list[_Source]:
    if given.is_file():
        return [_Source(given, given.name, _short(without_ending(given.name, _ENDINGS)))]
    if given.is_dir() and given.resolve() == output.resolve():
        raise SettingsError(f"-o {output}: expected another folder than that of the long videos")
    videos = find_videos(given, endings=_ENDINGS, what="SOURCE")
    inside = output.resolve()
    return [
        _Source(video.path, video.path.relative_to(given).as_posix(), _short(video.video_id))
        for video in videos
        if inside not in video.path.resolve().parents
    ]


def _short(name: str) -> str:
    """Return a name with room for a suffix; a long one is cut and gets a digest."""
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) <= _MAX_NAME_BYTES:
        return name
    digest = hashlib.blake2b(raw, digest_size=4).hexdigest()
    return f"{raw[:_MAX_NAME_BYTES].decode('utf-8', 'ignore')}-{digest}"


def _scenes(source: _Source, folder: Path) -> list[Any]:
    """Return a source's scenes with their motion, from the file of an earlier run if valid."""
    status, path = source.path.stat(), folder / f"{source.stem}.json"
    key = [_VERSION, str(source.path.resolve()), status.st_size, status.st_mtime_ns]
    try:
        document: Any = parse_json(read_whole(path))
        if document["key"] == key:
            return list(document["scenes"])
    except (OSError, ValueError, TypeError, KeyError):
        pass  # it is made again
    scenes = in_own_process(find_scenes, source.path)
    write_atomically(path, json.dumps({"key": key, "scenes": scenes}).encode("ascii"))
    return scenes


def _parts(source: _Source, scenes: Sequence[Any], options: ClipOptions) -> Iterator[Part]:
    for (start_s, end_s), flows in scenes:
        spans = parts_of((start_s, end_s), min_s=options.min_s, max_s=options.max_s)
        for span in spans or [(start_s, end_s)]:
            # A picture is compared with the one before, which may be before the part.
            pixels = [flow for at_s, flow in flows if span[0] + 0.249 <= at_s < span[1]]
            # The median: a flash or a compression artefact does not change it.
            motion = round(float(np.median(pixels)), 4) if pixels else None
            file = f"{source.stem}-{round(span[0] * 1000)}-{round(span[1] * 1000)}.mp4"
            part: Part = {
                "file": file, "source": source.name, "start_s": span[0], "end_s": span[1],
                "motion": motion, "kept": True, "fate": "kept", "reason": "",
            }  # fmt: skip
            if not spans:
                part = _dropped(part, "too short", f"the scene is shorter than {options.min_s:g} s")
            elif motion is None:
                part = _dropped(part, "still", "no two pictures a quarter of a second apart")
            elif motion < options.still_below:
                why = f"motion of {motion:.3f} is below {options.still_below:g} pixels"
                part = _dropped(part, "still", why)
            yield part


def _dropped(part: Part, fate: str, reason: str) -> Part:
    return {**part, "file": None, "kept": False, "fate": fate, "reason": reason}


def _chosen(parts: list[Part], options: ClipOptions) -> list[Part]:
    """Leave out clips beyond ``n``, so that short and long ones are equally many, else by chance.

    Source: VidCapBench, section 3.3.1, balanced sampling, of which the length is one label.
    """
    kept = [part for part in parts if part["kept"]]
    if options.n is None or len(kept) <= options.n:
        return parts
    random.Random(options.seed).shuffle(kept)  # noqa: S311 - no secret # nosec B311
    bins: list[list[str]] = [[] for _ in range(N_BINS)]
    for part in kept:
        bins[bin_of(part, options)].append(part["file"])
    chosen: set[str] = set()
    while len(chosen) < options.n:
        for members in bins:
            if members and len(chosen) < options.n:
                chosen.add(members.pop())
    why = "enough clips of about its length were chosen"
    return [
        _dropped(part, "left out", why) if part["kept"] and part["file"] not in chosen else part
        for part in parts
    ]


def bin_of(part: Part, options: ClipOptions) -> int:
    """Return the bin of a part's length, from 0."""
    edges_s = options.edges_s[1:-1]
    return int(np.searchsorted(edges_s, part["end_s"] - part["start_s"], side="right"))


def _earlier_files(folder: Path) -> set[str]:
    """Return the clips of an earlier run; plain names only, as they may be deleted."""
    if not (folder / CLIPS).is_file():
        return set()
    names = {row.get("file") for row in read_jsonl(folder / CLIPS)}
    return {name for name in names if isinstance(name, str) and PurePath(name).name == name}


def _cut(source: _Source, parts: Sequence[Part], output: Path) -> Iterator[Part]:
    missing: list[tuple[Span, Path]] = [
        ((part["start_s"], part["end_s"]), output / part["file"])
        for part in parts
        if part["kept"] and not _is_file(output / part["file"])
    ]
    error = ""
    if missing:
        try:
            in_own_process(cut_parts, source.path, missing)
        except DataError as problem:
            error = str(problem)
    for part in parts:
        is_lost = part["kept"] and not _is_file(output / part["file"])
        yield _dropped(part, "unreadable", error) if is_lost else part


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()  # a link may lead out of the folder
