"""Benchmark files and videos from the Hugging Face hub, downloaded once and unpacked once.

An archive is unpacked completely or not at all, and nothing lands outside its folder. The library's
own variables, such as ``HF_ENDPOINT`` and ``HF_HOME``, choose the hub and the folder of downloads,
which other programs share.
"""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar, cast

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.locks import locked

T = TypeVar("T")

_COMPLETE: Final = ".complete"
"""Marker in a folder of videos whose archives are all unpacked."""
_FILES_SHOWN: Final = 8
MOST_FILES: Final = 100_000
"""Limit on the members of one archive; the largest benchmark has 5,677 videos."""
MOST_RATIO: Final = 100
"""Limit on unpacked bytes per packed byte, beyond ``ALWAYS_BYTES``; videos have 1, zeros 1,000."""
ALWAYS_BYTES: Final = 2**30
_BROKEN: Final = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
    struct.error, EOFError, RuntimeError, ValueError, LookupError, OverflowError,
)  # fmt: skip
"""Errors of the standard library, except ``OSError``, on archives that are cut off, damaged,
encrypted or of an unknown kind."""
_BY_HAND: Final = "unpack it by hand and set LMMS_CAPTIONS_DATA"


def fetch_file(source: Source, name: str) -> Path:
    """Return a file of the benchmark's repository, downloaded unless it is already there.

    If the repository has no file of that path, one of the same base name, plain or with ``.gz``, is
    taken: repositories get reorganised.

    Raises:
        DataError: If the hub cannot be reached or has no such file; with the hub's message.
    """
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return _download(source, name)
    except DataError as error:
        cause, base_name = error.__cause__, PurePosixPath(name).name
        if not isinstance(cause, EntryNotFoundError) or isinstance(cause, LocalEntryNotFoundError):
            raise
        files = _list_files(source)
        namesakes = [f for f in files if PurePosixPath(f).name in (base_name, f"{base_name}.gz")]
        if len(namesakes) != 1:
            raise DataError(
                f"{source.benchmark}: {source.hub_repo} ({source.revision}) has no file {name!r}, "
                f"and {len(namesakes)} of that name elsewhere; it has {_listed(files)}. "
                f"{source.advice()}"
            ) from error
        return _download(source, namesakes[0])


def fetch_videos(source: Source, cache: Path) -> Path:
    """Return the folder of the benchmark's videos, with every archive downloaded and unpacked.

    Of several processes, one works and the others wait. A complete folder needs no network.

    Raises:
        DataError: If an archive cannot be downloaded or unpacked, or the repository has none.
    """
    folder = _video_folder(source, cache)
    if not has_videos(source, cache):
        with locked(folder.with_name(f"{folder.name}.lock"), f"the videos of {source.benchmark}"):
            if not has_videos(source, cache):
                _fetch_archives(source, folder)
    return folder


def has_videos(source: Source, cache: Path) -> bool:
    """Return if all videos of the benchmark were fetched before."""
    return (_video_folder(source, cache) / _COMPLETE).is_file()


def _video_folder(source: Source, cache: Path) -> Path:
    return cache / "data" / source.benchmark / "videos" / _folder_name(source.revision)


def _fetch_archives(source: Source, folder: Path) -> None:
    files = _list_files(source)
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
            unpack(_download(source, archive), unpacked)
        except BrokenArchiveError as error:
            # An earlier run, or another program, may have left a damaged download.
            logger.warning(f"{error}. Downloading it again, once")
            unpack(_download(source, archive, again=True), unpacked)
    (folder / _COMPLETE).touch()


def _folder_name(archive: str) -> str:
    """Return a name without slashes: ``videos/videos_1.tar.gz`` has one."""
    return re.sub(r"[^\w.-]+", "_", archive).strip(".")


def _download(source: Source, name: str, *, again: bool = False) -> Path:
    # Resumes a download that was cut off, shows a bar, and asks nothing if the file is at hand.
    from huggingface_hub import hf_hub_download

    return Path(
        _from_hub(source, name, partial(hf_hub_download, filename=name, force_download=again))
    )


def _list_files(source: Source) -> list[str]:
    from huggingface_hub import HfApi

    return sorted(_from_hub(source, "the list of files", HfApi().list_repo_files))


def hub_errors() -> tuple[type[Exception], ...]:
    """Return the errors that a download may raise."""
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    # The library's error derives from its HTTP client's, and which client that is has changed
    # between versions; its fast transfer raises RuntimeError.
    client = cast("tuple[type[Exception], ...]", HfHubHTTPError.__bases__)
    return OSError, EntryNotFoundError, RuntimeError, *client


def _from_hub(source: Source, what: str, get: Callable[..., T]) -> T:
    try:
        return get(repo_id=source.require_repo(), repo_type="dataset", revision=source.revision)
    except hub_errors() as error:
        # The outer error says that a file could not be had, its cause why.
        causes = [cause for cause in (error, error.__cause__) if cause]
        message = " / ".join(" ".join(str(cause).split()) or repr(cause) for cause in causes)
        raise DataError(
            f"{source.benchmark}: could not get {what} from {source.hub_repo} ({source.revision}) "
            f"on the Hugging Face hub: {message}. {source.advice()}"
        ) from error


def _listed(files: Sequence[str]) -> str:
    return ", ".join(files[:_FILES_SHOWN]) + (" and more" if len(files) > _FILES_SHOWN else "")


class BrokenArchiveError(DataError):
    """An archive that is cut off or damaged: to be downloaded again."""


class _UnsafeMemberError(Exception):
    """A member that must not be unpacked."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar (of any compression) or zip file into a folder, which must not exist.

    The members go to a sibling folder first, which is then moved into place: a process that is
    killed leaves nothing that looks complete. The caller keeps other processes out.

    Raises:
        BrokenArchiveError: If the archive is cut off, damaged or of another kind.
        DataError: If a member is a link or device or would land outside the folder, if the archive
            is larger than the limits, or the disk refuses.
    """
    draft = folder.with_name(f".partial-{folder.name}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        if tarfile.is_tarfile(archive):
            _extract_tar(archive, draft)
        else:
            _extract_zip(archive, draft)
        if not any(draft.iterdir()):
            raise EOFError("it has no file")
        draft.rename(folder)
    except (_UnsafeMemberError, tarfile.FilterError) as error:
        raise DataError(
            f"{archive}: {error}; nothing was unpacked. If this is the official file and you trust "
            f"it, {_BY_HAND}"
        ) from error
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # without one: a decompressor's
            raise DataError(
                f"{archive} cannot be unpacked to {folder}: {error}; make room there or set "
                "LMMS_CAPTIONS_CACHE to another disk, then run again"
            ) from error
        raise BrokenArchiveError(
            f"{archive}: the archive is broken ({error}); delete the file and run again, which "
            f"downloads it again, or {_BY_HAND}"
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _extract_tar(archive: Path, folder: Path) -> None:
    n_bytes = 0
    with tarfile.open(archive) as tar:
        for index, member in enumerate(tqdm(tar, f"Unpacking {archive.name}", unit=" files")):
            if not (member.isfile() or member.isdir()):
                raise _UnsafeMemberError(f"member {member.name!r:.120} is a link or device")
            n_bytes += member.size
            _check_size(archive, index + 1, n_bytes)
            tar.extract(member, folder, filter="data")
        # The checksum of a compressed archive follows the last member.
        while tar.fileobj is not None and tar.fileobj.read(2**20):
            pass


def _extract_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as bundle:
        infos = bundle.infolist()
        _check_size(archive, len(infos), sum(info.file_size for info in infos))
        for info in tqdm(infos, f"Unpacking {archive.name}", unit=" files"):
            bundle.extract(info, folder)  # drops leading slashes and "..", and makes no links


def _check_size(archive: Path, n_files: int, n_bytes: int) -> None:
    limit = max(ALWAYS_BYTES, MOST_RATIO * archive.stat().st_size)
    if n_files > MOST_FILES or n_bytes > limit:
        raise _UnsafeMemberError(
            f"it has {n_files:,} members or more of {n_bytes:,} bytes together, more than "
            f"{MOST_FILES:,} members or {limit:,} bytes"
        )
