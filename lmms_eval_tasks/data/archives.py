"""Unpacking archives of videos: nothing leaves the folder, and a folder is whole or not there."""

from __future__ import annotations

import json
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from calendar import timegm
from typing import TYPE_CHECKING, Final

from tqdm import tqdm

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.archive_members import Members, UnsafeMemberError
from lmms_eval_captions.lmms_eval_tasks.data.tar_stream import open_tar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MARKER: Final = ".unpacked.json"
"""File in an unpacked folder that says what it was unpacked from."""

BROKEN: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    OverflowError,
)
"""What the standard library raises, beside ``OSError``, on archives that are cut off, damaged,
encrypted or of a kind that it does not know."""

_NO_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MOST_INDEX_BYTES: Final = 32 * 2**20
"""Of a zip file's list of members; a hundred thousand take half of it."""
_MOST_TAIL_BYTES: Final = 2**16 + 200
"""Within which a zip file's end records are: a comment has at most 65,535 bytes."""


class BrokenArchiveError(DataError):
    """An archive that is cut off or damaged: to be downloaded again."""


def unpack(archive: Path, folder: Path, origin: Mapping[str, str]) -> None:
    """Unpack a tar (of any compression) or zip file, unless it has been unpacked before.

    The members go to a sibling folder first, which then takes its place in one move: a process
    that is killed midway leaves nothing that looks complete. The caller keeps other processes out.
    Of members of one name the last counts. Modes and owners are not taken over.

    Args:
        archive: The file.
        folder: Where its members will be; what is there from another origin is replaced.
        origin: What the archive is, written into the marker and compared with it.

    Raises:
        BrokenArchiveError: If the archive is cut off, damaged or of another kind. A tar must have
            its end mark, as all that tar programs write do: without it a cut at a member's end
            could not be told.
        DataError: If it has a member that would land outside the folder or is no plain file, if it
            holds more than the disk or ``Members`` takes; or the disk refuses.
    """
    if is_unpacked(folder, origin):
        return
    partial = folder.with_name(f".partial-{folder.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        members = Members(partial, archive, reserved=MARKER)
        _extract(archive, members)
        # Zeros, such as a download that made room and stopped, are an empty tar.
        members.require_any()
        (partial / MARKER).write_text(json.dumps(dict(origin)), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except UnsafeMemberError as error:
        raise DataError(
            f"{archive}: {error}, so that nothing was unpacked; is this the official file? Unpack "
            "it by hand if you trust it, and set LMMS_CAPTIONS_DATA"
        ) from error
    except BROKEN as error:
        raise BrokenArchiveError(
            f"{archive}: the archive is broken ({error}); delete the file and run again, which "
            "downloads it anew, or unpack it by hand and set LMMS_CAPTIONS_DATA"
        ) from error
    except OSError as error:
        raise DataError(
            f"{archive} cannot be unpacked to {folder}: {error}; make room there or set "
            "LMMS_CAPTIONS_CACHE to another disk, then run again"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_unpacked(folder: Path, origin: Mapping[str, str]) -> bool:
    """Whether a folder is the complete content of the archive that ``origin`` describes."""
    return read_marker(folder / MARKER) == dict(origin)


def read_marker(path: Path) -> object:
    """What a marker file says, or ``None`` where it is missing or broken."""
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value


def _extract(archive: Path, members: Members) -> None:
    if not archive.is_file():
        raise OSError(f"there is no file {archive}")
    # A zip file may hold a tar file, uncompressed: what a file begins with says what it is.
    with archive.open("rb") as file:
        is_zip = file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
    if is_zip:
        _extract_zip(archive, members)
    else:
        _extract_tar(archive, members)


def _extract_tar(archive: Path, members: Members) -> None:
    with open_tar(archive) as tar:
        for member in tqdm(tar, desc=f"Unpacking {archive.name}", unit=" files"):
            members.expect(member.name, member.size)
            if member.isdir():
                members.add_folder(member.name)
            elif member.isreg() and not member.issparse():
                members.add(member.name, member.size, tar, member.mtime)
            else:
                raise UnsafeMemberError(member.name, "is a link or device, or has holes")


def _extract_zip(archive: Path, members: Members) -> None:
    n_members = _read_end(archive)
    with zipfile.ZipFile(archive) as bundle:
        infos = bundle.infolist()
        if n_members != len(infos) % 2**16:
            raise zipfile.BadZipFile(f"{len(infos):,} members where its end says {n_members:,}")
        if min((info.header_offset for info in infos), default=bundle.start_dir):
            # So it is with what is left of a zip file that was cut off behind another one in it.
            raise zipfile.BadZipFile("something stands before its first member")
        for info in infos:
            members.expect(info.filename, info.file_size)
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UnsafeMemberError(info.filename, "is a link or device")
        for info in tqdm(infos, desc=f"Unpacking {archive.name}", unit=" files"):
            if not info.is_dir():
                _add_zipped(bundle, info, members)
            elif info.file_size or info.CRC:
                raise zipfile.BadZipFile(f"the folder {info.filename!r:.120} has content")
            else:
                members.add_folder(info.filename)


def _changed_s(info: zipfile.ZipInfo) -> float:
    """Seconds since 1970, as if in UTC: archives name no time zone, and some no real date."""
    try:
        return timegm((*info.date_time, 0, 0, 0))
    except ValueError:  # month 0, which stands for none
        return timegm((*_NO_DATE, 0, 0, 0))


def _add_zipped(bundle: zipfile.ZipFile, info: zipfile.ZipInfo, members: Members) -> None:
    with bundle.open(info) as stream:
        members.add(info.filename, info.file_size, stream, _changed_s(info))
        if stream.read(1):
            raise zipfile.BadZipFile(f"member {info.filename!r:.120} is longer than it says")


def _read_end(archive: Path) -> int:
    """How many members a zip file's end says that it has, modulo 65,536.

    Raises:
        BadZipFile: If the list of members, which zipfile reads as a whole, is vast.
    """
    with archive.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MOST_TAIL_BYTES))
        tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    n_members, n_bytes = _number(tail, end + 10, 2), _number(tail, end + 12, 4)
    end_64 = tail.rfind(b"PK\x06\x06", 0, end)
    # What does not fit, and with some tools whatever it is, stands in a record of its own.
    if end_64 >= 0 and n_members == 2**16 - 1:
        n_members = _number(tail, end_64 + 32, 8)
    if end_64 >= 0 and n_bytes == 2**32 - 1:
        n_bytes = _number(tail, end_64 + 40, 8)
    if end >= 0 and n_bytes > _MOST_INDEX_BYTES:
        raise zipfile.BadZipFile(f"its list of members takes {n_bytes:,} bytes")
    return n_members % 2**16


def _number(raw: bytes, start: int, n_bytes: int) -> int:
    return int.from_bytes(raw[start : start + n_bytes], "little")
