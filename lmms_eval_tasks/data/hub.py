"""Benchmark files and videos from the Hugging Face hub, downloaded once and unpacked once."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, cast

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.data.archives import BrokenArchiveError, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

_COMPLETE: Final = ".complete.json"
"""Marker in a folder of videos: the names of the folders of all its archives."""
_FILES_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Hub:
    """Address of a hub, and the folder of its downloads."""

    endpoint: str | None = None
    """URL, by default the library's own (``HF_ENDPOINT``)."""
    downloads: Path | None = None
    """Folder, by default the library's own (``HF_HOME``), shared with other tools."""


def fetch_file(source: Source, name: str, hub: Hub) -> Path:
    """Return a file of the benchmark's repository, downloaded unless it is already there.

    If the repository has no file of that path, one of the same base name, plain or with ``.gz``, is
    taken: repositories get reorganised.

    Args:
        source: The benchmark.
        name: Path below the benchmark's folder, such as ``VDCScore_qa/camera.jsonl``.
        hub: The hub.

    Raises:
        DataError: If the hub cannot be reached or has no such file; with the hub's message.
    """
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return _download(source, name, hub)
    except DataError as error:
        cause, base_name = error.__cause__, PurePosixPath(name).name
        if not isinstance(cause, EntryNotFoundError) or isinstance(cause, LocalEntryNotFoundError):
            raise
        files = _list_files(source, hub)
        namesakes = [f for f in files if PurePosixPath(f).name in (base_name, f"{base_name}.gz")]
        if len(namesakes) != 1:
            raise DataError(
                f"{source.benchmark}: {source.hub_repo} ({source.revision}) has no file {name!r}, "
                f"and {len(namesakes)} of that name elsewhere; it has {_listed(files)}. "
                f"{source.advice()}"
            ) from error
        return _download(source, namesakes[0], hub)


def fetch_videos(source: Source, cache: Path, hub: Hub) -> Path:
    """Return the folder of the benchmark's videos, with every archive downloaded and unpacked.

    Safe for several processes: one works, the others wait. Archives that an earlier process
    unpacked are kept, and a complete folder needs no network.

    Args:
        source: The benchmark.
        cache: The package's cache folder.
        hub: The hub.

    Raises:
        DataError: If an archive cannot be downloaded or unpacked, or the repository has none.
    """
    folder = _video_folder(source, cache)
    if not has_videos(source, cache):
        with locked(folder.with_name(f"{folder.name}.lock"), f"the videos of {source.benchmark}"):
            if not has_videos(source, cache):
                _fetch_archives(source, folder, hub)
    return folder


def has_videos(source: Source, cache: Path) -> bool:
    """Return if all videos of the benchmark were fetched before.

    Args:
        source: The benchmark.
        cache: The package's cache folder.
    """
    folder = _video_folder(source, cache)
    try:
        names = json.loads((folder / _COMPLETE).read_text(encoding="utf-8"))
        return all((folder / name).is_dir() for name in names)
    except (OSError, ValueError, TypeError):
        return False


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, whose folder is made; report a wait for another process.

    Args:
        path: The lock file.
        what: What the process that holds it makes, for the message.

    Raises:
        DataError: If the file cannot be written.
    """
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=1)
        except Timeout:
            logger.info(f"Waiting for the process that makes {what}")
            lock.acquire()
    except OSError as error:
        raise DataError(
            f"{path.parent} cannot be written: {error}; set LMMS_CAPTIONS_CACHE to a folder that "
            "can be"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _video_folder(source: Source, cache: Path) -> Path:
    return cache / "data" / source.benchmark / "videos" / _folder_name(source.revision)


def _fetch_archives(source: Source, folder: Path, hub: Hub) -> None:
    files = _list_files(source, hub)
    archives = [f for f in files if any(fnmatchcase(f, pattern) for pattern in source.archives)]
    if not archives:
        raise DataError(
            f"{source.benchmark}: {source.hub_repo} ({source.revision}) has no archive of videos "
            f"like {', '.join(source.archives)}; it has {_listed(files)}. {source.advice()}"
        )
    logger.info(
        f"{source.benchmark}: {len(archives)} archives of videos from {source.page} to {folder}"
    )
    for archive in archives:
        unpacked = folder / _folder_name(archive)
        if unpacked.is_dir():
            continue  # by an earlier process: an unfinished folder has another name
        try:
            unpack(_download(source, archive, hub), unpacked)
        except BrokenArchiveError as error:
            # An earlier run, or another program, may have left a damaged download.
            logger.warning(f"{error}. Downloading it again, once")
            unpack(_download(source, archive, hub, again=True), unpacked)
    names = json.dumps([_folder_name(archive) for archive in archives])
    write_atomically(folder / _COMPLETE, names.encode())


def _folder_name(archive: str) -> str:
    """Return a name without slashes: ``videos/videos_1.tar.gz`` has one."""
    return re.sub(r"[^\w.-]+", "_", archive).strip(".")


def _download(source: Source, name: str, hub: Hub, *, again: bool = False) -> Path:
    # Resumes a download that was cut off, shows a bar, and asks nothing if the file is at hand.
    from huggingface_hub import hf_hub_download

    with _reported(source, name):
        path = hf_hub_download(
            repo_id=source.require_repo(),
            filename=name,
            repo_type="dataset",
            revision=source.revision,
            endpoint=hub.endpoint,
            cache_dir=hub.downloads,
            force_download=again,
        )
    return Path(path)


def _list_files(source: Source, hub: Hub) -> list[str]:
    from huggingface_hub import HfApi

    repo, api = source.require_repo(), HfApi(endpoint=hub.endpoint)
    with _reported(source, "the list of files"):
        files = api.list_repo_files(repo, repo_type="dataset", revision=source.revision)
        return sorted(files)


@contextmanager
def _reported(source: Source, what: str) -> Iterator[None]:
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    # The library's error derives from its HTTP client's, and which client that is has changed
    # between versions; its fast transfer raises RuntimeError.
    client = cast("tuple[type[Exception], ...]", HfHubHTTPError.__bases__)
    kinds: tuple[type[Exception], ...] = (OSError, EntryNotFoundError, RuntimeError, *client)
    try:
        yield
    except kinds as error:
        # The outer error says that a file could not be had, its cause why.
        causes = [cause for cause in (error, error.__cause__) if cause]
        message = " / ".join(" ".join(str(cause).split()) or repr(cause) for cause in causes)
        raise DataError(
            f"{source.benchmark}: could not get {what} from {source.hub_repo} ({source.revision}) "
            f"on the Hugging Face hub: {message}. {source.advice()}"
        ) from error


def _listed(files: Sequence[str]) -> str:
    return ", ".join(files[:_FILES_SHOWN]) + (" and more" if len(files) > _FILES_SHOWN else "")
