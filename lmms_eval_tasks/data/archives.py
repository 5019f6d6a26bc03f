"""Unpacks archives of videos: nothing leaves the folder, and a folder is complete or absent."""

from __future__ import annotations

import errno
import json
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from calendar import timegm
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from tqdm import tqdm

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER: Final = ".unpacked.json"
"""File in an unpacked folder that says what it was unpacked from."""
MOST_FILES: Final = 100_000
"""Members of one archive; the largest benchmark has 5,677 videos."""
MOST_RATIO: Final = 100
"""Most unpacked bytes per packed byte, beyond 1 GiB; videos have 1, zeros 1,000."""
_ALWAYS_BYTES: Final = 2**30
_LEFT_FREE_BYTES: Final = 256 * 2**20
BROKEN: Final = (
    tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError,
    struct.error, EOFError, RuntimeError, ValueError, LookupError, OverflowError,
)  # fmt: skip
"""Errors of the standard library, except ``OSError``, on archives that are cut off, damaged,
encrypted or of an unknown kind."""


class BrokenArchiveError(DataError):
    """An archive that is cut off or damaged: to be downloaded again."""


class _UnsafeMemberError(Exception):
    """A member that must not be unpacked."""


def unpack(archive: Path, folder: Path, origin: Mapping[str, str]) -> None:
    """Unpack a tar (of any compression) or zip file, unless it has been unpacked before.

    The members go to a sibling folder first, which is then moved into place: a process that is
    killed leaves nothing that looks complete. The caller keeps other processes out.

    Args:
        archive: The file.
        folder: Folder of its members; one of another origin is replaced.
        origin: Description of the archive, which is written into the marker.

    Raises:
        BrokenArchiveError: If the archive is cut off, damaged or of another kind.
        DataError: If a member would land outside the folder or is a link or device, if the archive
            holds more than videos do, or the disk refuses.
    """
    if is_unpacked(folder, origin):
        return
    partial = folder.with_name(f".partial-{folder.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        if zipfile.is_zipfile(archive) and not tarfile.is_tarfile(archive):
            _extract_zip(archive, partial)
        else:
            _extract_tar(archive, partial)
        if not any(partial.iterdir()):
            raise EOFError("it holds no file")
        (partial / MARKER).write_text(json.dumps(dict(origin)), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except (_UnsafeMemberError, tarfile.FilterError) as error:
        raise DataError(
            f"{archive}: {error}; nothing was unpacked. If this is the official file and you trust "
            "it, unpack it by hand and set LMMS_CAPTIONS_DATA"
        ) from error
    except BROKEN as error:
        raise BrokenArchiveError(
            f"{archive}: the archive is broken ({error}); delete the file and run again, which "
            "downloads it anew, or unpack it by hand and set LMMS_CAPTIONS_DATA"
        ) from error
    except OSError as error:
        if error.errno is None:  # of a decompressor
            raise BrokenArchiveError(f"{archive}: the archive is broken ({error})") from error
        raise DataError(
            f"{archive} cannot be unpacked to {folder}: {error}; make room there or set "
            "LMMS_CAPTIONS_CACHE to another disk, then run again"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_unpacked(folder: Path, origin: Mapping[str, str]) -> bool:
    """Return whether a folder is the complete content of an archive."""
    return read_marker(folder / MARKER) == dict(origin)


def read_marker(path: Path) -> object:
    """Return the content of a marker file, ``None`` if it is missing or broken."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value


class _Room:
    """Bounds of what an archive may hold."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self._most_bytes = max(_ALWAYS_BYTES, MOST_RATIO * archive.stat().st_size)
        disk = shutil.disk_usage(folder)
        # Some network file systems do not tell.
        self._free_bytes = disk.free - _LEFT_FREE_BYTES if disk.total else self._most_bytes
        self._n_bytes = self._n_members = 0

    def take(self, name: str, n_bytes: int) -> None:
        """Raise if a member must not be unpacked, before it is."""
        self._n_members += 1
        self._n_bytes += n_bytes
        parts = PurePosixPath(name.replace("\\", "/")).parts
        first = parts[0] if parts else ""
        is_elsewhere = name.startswith(("/", "\\")) or ":" in first or first == MARKER
        if is_elsewhere or any(part.strip() == ".." for part in parts):
            raise _UnsafeMemberError(f"member {name!r:.120} lies outside the folder")
        if self._n_members > MOST_FILES or self._n_bytes > self._most_bytes:
            raise _UnsafeMemberError(
                f"member {name!r:.120} is one of more than {MOST_FILES:,}, or would make "
                f"{self._n_bytes:,} bytes of the archive, more than {MOST_RATIO} times its own"
            )
        if self._n_bytes > self._free_bytes:
            raise OSError(
                errno.ENOSPC,
                f"its members take more than {self._n_bytes:,} bytes, and the disk has room for "
                f"{max(0, self._free_bytes):,}",
            )


def _extract_tar(archive: Path, folder: Path) -> None:
    room = _Room(archive, folder)
    with tarfile.open(archive) as tar:
        for member in tqdm(tar, desc=f"Unpacking {archive.name}", unit=" files"):
            room.take(member.name, member.size)
            if not (member.isdir() or (member.isreg() and not member.issparse())):
                raise _UnsafeMemberError(f"member {member.name!r:.120} is a link or device")
            tar.extract(member, folder, filter="data")
            # tarfile keeps all members for lookups by name.
            tar.members = []  # type: ignore[attr-defined] # not in its stubs
        # The checksum of a compressed one stands behind the last member.
        while tar.fileobj is not None and tar.fileobj.read(2**20):
            pass
    with archive.open("rb") as file:
        is_plain = file.read(262)[257:] == b"ustar"
        file.seek(-min(tarfile.BLOCKSIZE, archive.stat().st_size), os.SEEK_END)
        # A plain tar that was cut between two members is complete to tarfile.
        if is_plain and file.read().strip(b"\0"):
            raise EOFError("it ends without an end mark: cut off")


def _extract_zip(archive: Path, folder: Path) -> None:
    room = _Room(archive, folder)
    with zipfile.ZipFile(archive) as bundle:
        infos = bundle.infolist()
        for info in infos:
            room.take(info.filename, info.file_size)
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _UnsafeMemberError(f"member {info.filename!r:.120} is a link")
        for info in tqdm(infos, desc=f"Unpacking {archive.name}", unit=" files"):
            path = Path(bundle.extract(info, folder))
            with suppress(OSError, OverflowError, ValueError):  # no date, or none that the disk has
                # The same time wherever it is unpacked, so that captions of a clip stay valid.
                changed_s = timegm((*info.date_time, 0, 0, 0))
                os.utime(path, (changed_s, changed_s))
