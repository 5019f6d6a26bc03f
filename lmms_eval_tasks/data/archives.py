"""Unpacking of video archives: nothing leaves the folder, and a folder is complete or absent."""

from __future__ import annotations

import lzma
import shutil
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Final

from tqdm import tqdm

from lmms_eval_captions.judges.errors import DataError

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
