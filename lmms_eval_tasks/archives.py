"""Unpacking archives of videos: nothing leaves the folder, and a folder is whole or not there."""

from __future__ import annotations

import json
import shutil
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tqdm import tqdm

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER = ".unpacked.json"
"""File in an unpacked folder that says what it was unpacked from."""


def unpack(archive: Path, folder: Path, origin: Mapping[str, str]) -> None:
    """Unpack a tar (of any compression) or zip file, unless it has been unpacked before.

    The members go to a sibling folder first, which then takes its place in one move: a process
    that is killed midway leaves nothing that looks complete. The caller keeps other processes out.

    Args:
        archive: The file.
        folder: Where its members will be; what is there from another origin is replaced.
        origin: What the archive is, written into the marker and compared with it.

    Raises:
        DataError: If the archive is broken, is of another kind, or has a member that would land
            outside the folder or is a link or device; or the disk refuses.
    """
    if is_unpacked(folder, origin):
        return
    partial = folder.with_name(f".partial-{folder.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _extract(archive, partial)
        (partial / MARKER).write_text(json.dumps(dict(origin)), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
        raise DataError(
            f"{archive}: the archive is broken ({error}); delete the file and run again, which "
            "downloads it anew"
        ) from error
    except OSError as error:
        raise DataError(
            f"{archive} cannot be unpacked to {folder}: {error}; make room there or set "
            "LMMS_CAPTIONS_CACHE to another disk, then run again"
        ) from error


def is_unpacked(folder: Path, origin: Mapping[str, str]) -> bool:
    """Whether a folder is the complete content of the archive that ``origin`` describes."""
    return read_marker(folder / MARKER) == dict(origin)


def read_marker(path: Path) -> object:
    """What a marker file says, or ``None`` where it is missing or broken."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value


def _extract(archive: Path, folder: Path) -> None:
    if tarfile.is_tarfile(archive):
        _extract_tar(archive, folder)
    elif zipfile.is_zipfile(archive):
        _extract_zip(archive, folder)
    else:
        raise tarfile.ReadError("neither tar nor zip")


def _extract_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        # The filter is missing before Python 3.10.12; the checks below do not depend on it.
        data_filter = getattr(tarfile, "data_filter", None)
        if data_filter is not None:
            tar.extraction_filter = data_filter
        for member in tqdm(tar, desc=f"Unpacking {archive.name}", unit=" files"):
            _check_name(member.name, archive)
            if not (member.isreg() or member.isdir()):
                raise _unsafe(member.name, archive, "is a link or device")
            tar.extract(member, folder)


def _extract_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as bundle:
        for member in tqdm(bundle.infolist(), desc=f"Unpacking {archive.name}", unit=" files"):
            _check_name(member.filename, archive)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _unsafe(member.filename, archive, "is a link or device")
            bundle.extract(member, folder)


def _check_name(name: str, archive: Path) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]:
        raise _unsafe(name, archive, "lies outside the folder")


def _unsafe(name: str, archive: Path, why: str) -> DataError:
    return DataError(
        f"{archive}: member {name!r} {why}, so that nothing was unpacked; is this the official "
        "file? Unpack it by hand if you trust it, and set LMMS_CAPTIONS_DATA"
    )
