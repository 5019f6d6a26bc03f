"""The segment that this process appends to, which survives the removal of its folder.

The file stays open, so what was written can be read from it even when its name is gone.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal

_COPY_BYTES: Final = 1 << 20
# Not everywhere there is one that leaves out what reading does not need.
_flush_data = getattr(os, "fdatasync", os.fsync)


class SegmentWriter:
    """Appends lines to a new file.

    Args:
        folder: Folder of the file; made if it is not there.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n_bytes = 0
        self._is_torn = False
        """Whether part of a line may stand at the end."""
        self._to_flush = False
        self._to_flush_folder = True
        self.path, self._file = _create(folder)
        self._identity = _identity(os.fstat(self._file))

    def append(self, line: bytes) -> int:
        """Append a line; it is in the operating system's hands when this returns.

        Returns:
            The line's first byte within the file.

        Raises:
            OSError: If it could not be written whole.
        """
        prefix = b"\n" if self._is_torn else b""
        self._is_torn = self._to_flush = True
        n_written = os.write(self._file, prefix + line)
        self._n_bytes += n_written
        if n_written < len(prefix) + len(line):
            raise OSError(errno.ENOSPC, "only part of a line could be written: the disk is full")
        self._is_torn = False
        return self._n_bytes - len(line)

    def read(self, start: int, n_bytes: int) -> bytes:
        """Bytes of the file, wherever it is now."""
        return os.pread(self._file, n_bytes, start)

    def look(self) -> Literal["there", "changed", "gone"]:
        """Whether the file still stands where it was made, with what was written.

        Raises:
            OSError: If that cannot be told.
        """
        try:
            there = os.stat(self.path)  # noqa: PTH116 - twice as fast, and called for every reply
        except (FileNotFoundError, NotADirectoryError):
            return "gone"
        if _identity(there) != self._identity:
            return "gone"
        if there.st_size == self._n_bytes:
            return "there"
        self._n_bytes, self._is_torn = there.st_size, True
        return "changed"

    def move(self) -> None:
        """Write everything that this file holds into a new one, and go on with that.

        Raises:
            OSError: If it could not be written whole; this file is then kept.
        """
        path, file = _create(self._folder)
        try:
            n_bytes = 0
            while data := os.pread(self._file, _COPY_BYTES, n_bytes):
                n_bytes += os.write(file, data)
        except OSError:
            os.close(file)
            with suppress(OSError):
                path.unlink()
            raise
        os.close(self._file)
        self.path, self._file, self._n_bytes = path, file, n_bytes
        self._identity = _identity(os.fstat(file))
        self._to_flush = self._to_flush_folder = True

    def flushing(self) -> Callable[[], None] | None:
        """What brings all that was appended to the disk itself, to be called in any thread.

        Returns:
            ``None`` where nothing is to be done.
        """
        if not self._to_flush:
            return None
        folder = self._folder if self._to_flush_folder else None
        self._to_flush = self._to_flush_folder = False
        return partial(_flush, os.dup(self._file), folder)

    def close(self) -> None:
        """Bring everything to the disk itself, and close the file."""
        flush = self.flushing()
        os.close(self._file)
        if flush is not None:
            flush()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _create(folder: Path) -> tuple[Path, int]:
    folder.mkdir(parents=True, exist_ok=True)
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
    path = folder / f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
    return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)


def _flush(file: int, folder: Path | None) -> None:
    try:
        _flush_data(file)
    finally:
        os.close(file)
    for path in (folder, *folder.parents[:2]) if folder is not None else ():
        # Without its entry in the folder a file is lost. Not every file system can flush that.
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
