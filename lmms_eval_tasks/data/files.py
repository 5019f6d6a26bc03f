"""Benchmark files and videos, wherever the settings say they are: local, sample or hub."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError, NoVideosError
from lmms_eval_captions.judges.files import BadLineError, json_lines, whole
from lmms_eval_captions.judges.settings import SAMPLE, DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.hub import Hub, fetch_file, fetch_videos
from lmms_eval_captions.lmms_eval_tasks.data.split_folder import MANIFEST, is_split, origin_of
from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

_ENDINGS: Final = VIDEO_ENDINGS | RARE_VIDEO_ENDINGS
_ARCHIVE_EXTENSIONS = (".tar", ".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz")


def find_file(settings: DataSettings, source: Source, name: str, hub: Hub | None = None) -> Path:
    """A file of a benchmark: below the local root or the sample's, or downloaded from the hub.

    Args:
        settings: Says where to look.
        source: The benchmark.
        name: Path below the benchmark's folder, such as ``VDCScore_qa/camera.jsonl``; locally the
            same with ``.gz`` will do.
        hub: Another hub than the public one.

    Raises:
        DataError: If the file is not there or cannot be downloaded; the text says where it was
            looked for and what provides it.
    """
    root = local_root(settings)
    if root is None:
        source.require_repo()
        return fetch_file(source, name, hub or Hub())
    path = root / source.benchmark / name
    for candidate in (path, path.with_name(f"{path.name}.gz")):
        if candidate.is_file():
            return candidate
    if is_split(root):
        raise DataError(
            f"{source.benchmark}: no file {path}: this split has no question of this file: leave "
            f"its task out ({root / MANIFEST} says how many questions there are)"
        )
    raise DataError(
        f"{source.benchmark}: no file {path} (or {path.name}.gz); LMMS_CAPTIONS_DATA is "
        f"{settings.data}. {source.advice()}"
    )


def find_video(
    settings: DataSettings, source: Source, video_id: str, hub: Hub | None = None
) -> Path:
    """The file of a video, by any ending a video may have. Folders are read once per process.

    The first call without local data downloads and unpacks all of the benchmark's archives. A
    split that has no videos of its own has those of the data that it was made from.

    Args:
        settings: Says where to look.
        source: The benchmark.
        video_id: The benchmark's name of the video, with or without folders or an ending.
        hub: Another hub than the public one.

    Raises:
        DataError: If the video is not there; the text says where it was looked for and what
            provides it.
        NoVideosError: If there is no video at all: no folder of them, none in it, or a hub that
            does not give them.
    """
    folder = _video_folder(settings, source, hub)
    videos = index_videos(folder)
    for name in _spellings(video_id):
        if name in videos:
            return videos[name]
    kind = DataError if _has_videos(folder) else NoVideosError
    raise kind(
        f"{source.benchmark}: no video {video_id!r} in {folder} ({_content(folder)}), whatever its "
        f"ending. {source.advice()}"
    )


def list_videos(settings: DataSettings, source: Source) -> list[str]:
    """The names of all videos at hand, sorted, as :func:`find_video` takes them.

    Args:
        settings: Says where to look; nothing is downloaded.
        source: The benchmark.

    Returns:
        Paths below the folder of videos with ``/``, whatever depth; what begins with a dot is left
        out, and so is a file of a rare ending (``.bin``, ``.ogg``) beside a clip of its name, which
        it may be the sound of. Half characters of a name are U+FFFD.

    Raises:
        DataError: If there is no root of local data.
        NoVideosError: If there is no video.
    """
    root = local_root(settings)
    if root is None:
        source.require_repo()
        raise DataError(f"{source.benchmark}: no local data. {source.advice()}")
    folder = _video_folder(settings, source, None)
    files = files_below(folder)
    clips = [file for file in files if file.suffix.lower() in VIDEO_ENDINGS]
    of_clips = {file.with_suffix("") for file in clips}
    rare = [file for file in files if file.suffix.lower() in RARE_VIDEO_ENDINGS]
    chosen = [*clips, *(file for file in rare if file.with_suffix("") not in of_clips)]
    if not chosen:
        raise NoVideosError(
            f"{source.benchmark}: no video in {folder} ({_content(folder)}). {source.advice()}"
        )
    return sorted({whole(file.relative_to(folder).as_posix()) for file in chosen})


def _video_folder(settings: DataSettings, source: Source, hub: Hub | None) -> Path:
    root = local_root(settings)
    if root is not None:
        folder = root / source.video_folder
        if folder.is_dir() or not is_split(root):
            return folder
        return _video_folder(replace(settings, data=origin_of(root)), source, hub)
    try:
        source.require_repo()
        return fetch_videos(source, settings.cache, hub or Hub())
    except DataError as error:
        raise NoVideosError(str(error)) from error


def local_root(settings: DataSettings) -> Path | None:
    """The root of local data, the sample's where that is asked for, or ``None`` for the hub.

    Raises:
        DataError: If the root is not a folder.
    """
    if settings.data is None:
        return None
    if settings.data == SAMPLE:
        from lmms_eval_captions.lmms_eval_tasks.sample import sample_root

        return sample_root(settings.cache)
    root = Path(settings.data).expanduser()
    if not root.is_dir():
        raise DataError(
            f"LMMS_CAPTIONS_DATA: no folder {settings.data!r}; expected the root of local "
            f"benchmark data, {SAMPLE!r}, or no value, which downloads from the Hugging Face hub"
        )
    return root


def read_jsonl(path: Path) -> list[dict[str, object]]:
    """The objects of a JSON-lines file in UTF-8, in order; empty lines are left out.

    Args:
        path: The file, plain or gzipped.

    Raises:
        DataError: If the file is missing, cut off, beyond the bounds of ``bounded_files``,
            or has a line that is not an object; the text names the line.
    """
    return [row for _, row in read_numbered_jsonl(path)]


def read_numbered_jsonl(path: Path) -> list[tuple[int, dict[str, object]]]:
    """As :func:`read_jsonl`, each object with its line's number, which starts at 1."""
    rows: list[tuple[int, dict[str, object]]] = []
    try:
        for number, value in json_lines(path):
            if not isinstance(value, dict):
                raise DataError(f"{path}, line {number}: expected a JSON object, got {value!r:.80}")
            rows.append((number, value))
    except BadLineError as error:
        raise DataError(
            f"{path}, line {error.number}: expected one JSON object per line ({error}); was it cut "
            "off? Download it again"
        ) from error
    except (OSError, ValueError) as error:
        last = rows[-1][0] if rows else 0
        raise DataError(
            f"{path} cannot be read beyond line {last} ({error}); download it again"
        ) from error
    return rows


@cache
def index_videos(folder: Path) -> dict[str, Path]:
    """Every spelling of the name of every video in a folder and those below it, and its file.

    A spelling is the path below the folder, the file's name, or the name without a video ending;
    where two files share one, the first in alphabetical order has it, before any whose ending may
    stand for something else beside a clip: its sound, say, or what a model made of it.
    """
    files = sorted(files_below(folder), key=lambda file: file.suffix.lower() in RARE_VIDEO_ENDINGS)
    index: dict[str, Path] = {}
    for names in (
        ((file.relative_to(folder).as_posix(), file) for file in files),
        ((file.name, file) for file in files),
        ((without_ending(file.name, _ENDINGS), file) for file in files),
    ):
        for name, file in names:
            index.setdefault(whole(name), file)
    return index


def files_below(folder: Path) -> list[Path]:
    """Every file in a folder and those below it, hidden ones left out, links followed."""
    files: list[Path] = []
    seen: set[str] = set()
    # Links are followed, as shards are often linked in from another disk; ``seen`` ends loops.
    for parent, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        folders[:] = [] if real in seen else sorted(f for f in folders if not f.startswith("."))
        if real not in seen:
            files += [Path(parent, name) for name in sorted(names) if not name.startswith(".")]
        seen.add(real)
    return files


def _spellings(video_id: str) -> tuple[str, ...]:
    video_id = whole(video_id)
    name = PurePosixPath(video_id).name
    return (video_id, name, without_ending(name, _ENDINGS))


@cache
def _content(folder: Path) -> str:
    if not folder.is_dir():
        return "there is no such folder"
    packed = _packed(folder)
    n_others = len(set(index_videos(folder).values())) - len(packed)
    text = f"{n_others:,} files"
    return f"{text}; archives not yet unpacked: {', '.join(packed[:5])}" if packed else text


@cache
def _has_videos(folder: Path) -> bool:
    return len(set(index_videos(folder).values())) > len(_packed(folder))


def _packed(folder: Path) -> list[str]:
    """Names of the archives in a folder."""
    files = set(index_videos(folder).values())
    return sorted(path.name for path in files if path.name.lower().endswith(_ARCHIVE_EXTENSIONS))
