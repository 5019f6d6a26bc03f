"""Where the members of an archive may go, and how much of them."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

MOST_FILES: Final = 100_000
"""Members of one archive; the largest benchmark has 5,677 videos."""
MOST_RATIO: Final = 100
"""Most unpacked bytes per packed byte, beyond ``_ALWAYS_BYTES``; videos have 1, zeros 1,000."""
_ALWAYS_BYTES: Final = 2**30
_LEFT_FREE_BYTES: Final = 256 * 2**20
_BYTES_OF_A_FILE: Final = 4096
"""Disk space that even an empty file takes."""
_MOST_NAME_BYTES: Final = 255
_MOST_PATH_BYTES: Final = 1024
_MOST_FOLDERS: Final = 64
_CHUNK: Final = 2**20


class UnsafeMemberError(Exception):
    """A member that must not be unpacked; the text names it and says why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"member {name!r:.120} {why}")


class Readable(Protocol):
    """What gives a member's content."""

    def read(self, n_bytes: int, /) -> bytes:
        """At most so many bytes, none at the end."""


class Members:
    """Writes the members of one archive below a folder, and nothing elsewhere.

    Args:
        folder: An empty folder.
        archive: The file that they come from.
        reserved: Name that no member may have in the folder itself.
    """

    def __init__(self, folder: Path, archive: Path, *, reserved: str) -> None:
        self._folder = folder
        self._reserved = reserved
        self._most_bytes = max(_ALWAYS_BYTES, MOST_RATIO * archive.stat().st_size)
        disk = shutil.disk_usage(folder)
        # Some network file systems do not tell.
        self._free_bytes = disk.free - _LEFT_FREE_BYTES if disk.total else self._most_bytes
        self._n_bytes = self._n_members = 0
        self._written: set[Path] = set()

    def expect(self, name: str, size: int) -> None:
        """Make sure, before anything is written, that a member may be.

        Args:
            name: Its path in the archive.
            size: Bytes that the archive says it has.

        Raises:
            UnsafeMemberError: If it would land outside the folder, has a name that cannot be, or
                is one too many or too much for an archive of videos.
            OSError: If the disk has no room for it.
        """
        self._path(name)
        self._n_members += 1
        self._n_bytes += size + _BYTES_OF_A_FILE
        if size < 0:
            raise UnsafeMemberError(name, f"has {size} bytes")
        if self._n_members > MOST_FILES:
            raise UnsafeMemberError(name, f"is one of more than {MOST_FILES:,}")
        if self._n_bytes > self._most_bytes:
            raise UnsafeMemberError(
                name,
                f"would make {self._n_bytes:,} bytes of the archive, more than {MOST_RATIO} times "
                "its own",
            )
        if self._n_bytes > self._free_bytes:
            raise OSError(
                errno.ENOSPC,
                f"its members take {self._n_bytes:,} bytes and more, and the disk has room for "
                f"{max(0, self._free_bytes):,}",
            )

    def add_folder(self, name: str) -> None:
        """Make a folder that the archive has, and those above it.

        Raises:
            UnsafeMemberError: If it cannot be where the archive says.
        """
        self._make_folder(self._path(name), name)

    def add(self, name: str, size: int, stream: Readable, changed_s: float) -> None:
        """Write a file; one that the archive had before under the same name is replaced.

        Args:
            name: Its path in the archive.
            size: Bytes to take from the stream.
            stream: Of its content.
            changed_s: Time of its last change, in seconds since 1970: it has the same wherever, and
                however often, the archive is unpacked, so that captions of it stay kept.

        Raises:
            UnsafeMemberError: If it cannot be where the archive says.
            EOFError: If the stream has fewer bytes.
        """
        path = self._path(name)
        if path == self._folder:
            raise UnsafeMemberError(name, "has no name")
        self._make_folder(path.parent, name)
        if path in self._written:
            path.unlink()
        self._written.add(path)
        try:
            file = path.open("xb")
        except FileExistsError as error:
            raise UnsafeMemberError(name, "stands where another one is already") from error
        with file:
            while size > 0:
                chunk = stream.read(min(size, _CHUNK))
                if not chunk:
                    raise EOFError(f"member {name!r:.120} ends {size:,} bytes too early")
                file.write(chunk)
                size -= len(chunk)
        with suppress(OSError, OverflowError, ValueError):  # no time that the disk has
            os.utime(path, (changed_s, changed_s))

    def require_any(self) -> None:
        """Make sure that the archive had a file at all.

        Raises:
            EOFError: If it had none.
        """
        if not self._written:
            raise EOFError("it holds no file")

    def _make_folder(self, path: Path, name: str) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UnsafeMemberError(name, "stands below a file of the archive") from error

    def _path(self, name: str) -> Path:
        path = PurePosixPath(name.replace("\\", "/"))
        parts = path.parts
        # Windows leaves out dots and blanks at the end of a name: ".. " would be "..".
        if path.is_absolute() or any(not part.strip(". ") for part in parts):
            raise UnsafeMemberError(name, "lies outside the folder")
        if parts and (":" in parts[0] or parts[0].casefold() == self._reserved):
            raise UnsafeMemberError(name, "lies outside the folder or is our own mark")
        if "\0" in name or len(parts) > _MOST_FOLDERS or not _fits(parts):
            raise UnsafeMemberError(name, "has a name that no disk can write")
        return self._folder.joinpath(*parts)


def _fits(parts: tuple[str, ...]) -> bool:
    try:
        sizes = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return False
    return max(sizes, default=0) <= _MOST_NAME_BYTES and sum(sizes) <= _MOST_PATH_BYTES
