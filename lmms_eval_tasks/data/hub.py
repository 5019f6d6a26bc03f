"""Benchmark files and videos from the Hugging Face hub, downloaded once and unpacked once."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.data.archives import (
    BrokenArchiveError,
    is_unpacked,
    read_marker,
    unpack,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

_COMPLETE = ".complete.json"
_FILES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Hub:
    """Which hub is asked, and where it keeps what it sent."""

    endpoint: str | None = None
    """URL of the hub, by default the library's own (``HF_ENDPOINT``)."""
    downloads: Path | None = None
    """Folder of downloads, by default the library's own (``HF_HOME``), shared with other tools."""


def fetch_file(source: Source, name: str, hub: Hub) -> Path:
    """A file of the benchmark's repository, downloaded unless it is there already.

    Where the repository has no file of that path, one of the same base name, or that with ``.gz``,
    is taken: the layout of some repositories is not known here.

    Args:
        source: The benchmark.
        name: Path below the benchmark's folder, such as ``VDCScore_qa/camera.jsonl``.
        hub: Which hub.

    Raises:
        DataError: If the hub cannot be reached or has no such file; with the hub's own words.
    """
    try:
        return _download(source, name, hub)
    except DataError as error:
        if not _is_absent(error.__cause__):
            raise
        wanted = PurePosixPath(name).name
        files = _list_files(source, hub)
        namesakes = [file for file in files if PurePosixPath(file).name in (wanted, f"{wanted}.gz")]
        if len(namesakes) != 1:
            raise DataError(
                f"{source.benchmark}: {source.hub_repo} ({source.revision}) has no file {name!r}, "
                f"and {len(namesakes)} of that name elsewhere; it has {_listed(files)}. "
                f"{source.advice()}"
            ) from error
        return _download(source, namesakes[0], hub)


def fetch_videos(source: Source, cache: Path, hub: Hub) -> Path:
    """The folder of the benchmark's videos: every archive downloaded and unpacked.

    Safe for several processes: one works, the others wait. What an earlier process finished is
    kept, and a folder that is complete needs no network.

    Args:
        source: The benchmark.
        cache: The package's cache folder.
        hub: Which hub.

    Raises:
        DataError: If an archive cannot be had or unpacked, or the repository has none.
    """
    from filelock import FileLock, Timeout

    folder = _video_folder(source, cache)
    if _is_complete(source, folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name("videos.lock"))
        try:
            lock.acquire(timeout=1)
        except Timeout:
            logger.info(f"Waiting for the process that fetches the videos of {source.benchmark}")
            lock.acquire()
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error}; set LMMS_CAPTIONS_CACHE to a folder that can"
        ) from error
    try:
        if not _is_complete(source, folder):
            _fetch_archives(source, folder, hub)
    finally:
        lock.release()
    return folder


def has_videos(source: Source, cache: Path) -> bool:
    """Whether all videos of the benchmark were fetched before.

    Args:
        source: The benchmark.
        cache: The package's cache folder.
    """
    return _is_complete(source, _video_folder(source, cache))


def _video_folder(source: Source, cache: Path) -> Path:
    return cache / "data" / source.benchmark / "videos"


def _fetch_archives(source: Source, folder: Path, hub: Hub) -> None:
    files = _list_files(source, hub)
    archives = [
        file for file in files if any(fnmatchcase(file, pattern) for pattern in source.archives)
    ]
    if not archives:
        raise DataError(
            f"{source.benchmark}: {source.hub_repo} ({source.revision}) has no archive of videos "
            f"like {', '.join(source.archives)}; it has {_listed(files)}. {source.advice()}"
        )
    logger.info(
        f"{source.benchmark}: {len(archives)} archives of videos from {source.page} to {folder}"
    )
    for archive in archives:
        if not is_unpacked(folder / _folder_name(archive), _origin(source, archive)):
            _fetch_archive(source, archive, folder / _folder_name(archive), hub)
    _write_complete(source, folder, archives)


def _fetch_archive(source: Source, archive: str, folder: Path, hub: Hub) -> None:
    origin = _origin(source, archive)
    path = _download(source, archive, hub)
    try:
        unpack(path, folder, origin)
    except BrokenArchiveError as error:
        # What an earlier run, or another tool, left in the folder of downloads may be damaged.
        logger.warning(f"{error}. Downloading it anew, once")
        unpack(_download(source, archive, hub, anew=True), folder, origin)


def _is_complete(source: Source, folder: Path) -> bool:
    marker = read_marker(folder / _COMPLETE)
    archives = marker.get("archives") if isinstance(marker, dict) else None
    return isinstance(archives, list) and all(
        is_unpacked(folder / _folder_name(str(archive)), _origin(source, str(archive)))
        for archive in archives
    )


def _write_complete(source: Source, folder: Path, archives: Sequence[str]) -> None:
    content = {"repo": source.hub_repo, "revision": source.revision, "archives": list(archives)}
    write_atomically(folder / _COMPLETE, json.dumps(content).encode("ascii"))


def _origin(source: Source, archive: str) -> dict[str, str]:
    return {"repo": source.hub_repo or "", "revision": source.revision, "archive": archive}


def _folder_name(archive: str) -> str:
    """A folder name of its own for each archive: ``videos/videos_1.tar.gz`` has a slash."""
    return re.sub(r"[^\w.-]+", "_", archive).strip(".")


def _download(source: Source, name: str, hub: Hub, *, anew: bool = False) -> Path:
    # Resumes a download that was cut off, shows a bar, and asks nothing where the file is at hand.
    from huggingface_hub import hf_hub_download

    with _reported(source, name):
        path = hf_hub_download(
            repo_id=source.require_repo(),
            filename=name,
            repo_type="dataset",
            revision=source.revision,
            endpoint=hub.endpoint,
            cache_dir=hub.downloads,
            force_download=anew,
        )
    return Path(path)


def _list_files(source: Source, hub: Hub) -> list[str]:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub.endpoint)
    with _reported(source, "the list of files"):
        return sorted(
            api.list_repo_files(
                source.require_repo(), repo_type="dataset", revision=source.revision
            )
        )


def _is_absent(error: BaseException | None) -> bool:
    """Whether the hub answered that the repository has no such file."""
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    return isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError)


@contextmanager
def _reported(source: Source, what: str) -> Iterator[None]:
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    # The library's error stands on the base error of its HTTP client, and which client that is has
    # changed between versions; RuntimeError is what its fast transfer raises.
    client = cast("tuple[type[Exception], ...]", HfHubHTTPError.__bases__)
    kinds: tuple[type[Exception], ...] = (OSError, EntryNotFoundError, RuntimeError, *client)
    try:
        yield
    except kinds as error:
        raise _failure(source, what, error) from error


def _failure(source: Source, what: str, error: BaseException) -> DataError:
    # The outer error says that a file could not be had, the one below it why.
    causes = (error, error.__cause__)
    words = " / ".join(" ".join(str(cause).split()) or repr(cause) for cause in causes if cause)
    return DataError(
        f"{source.benchmark}: could not get {what} from {source.hub_repo} ({source.revision}) on "
        f"the Hugging Face hub: {words}. {source.advice()}"
    )


def _listed(files: Sequence[str]) -> str:
    return ", ".join(files[:_FILES_SHOWN]) + (" and more" if len(files) > _FILES_SHOWN else "")
