"""One file of replies, read as it grows, and read anew where it is no longer what it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal

from lmms_eval_captions.judges.endpoint.store.line import KEY_LETTERS, MAX_LINE_BYTES, read_line
from lmms_eval_captions.judges.endpoint.store.places import Place

_BUFFER_BYTES: Final = 1 << 20


class Segment:
    """The whole lines of one file, which another process may be writing.

    Args:
        path: The file; it is not opened yet.
        number: The store's number for it.
    """

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.number = number
        self.n_damaged = 0
        """Lines that were passed over."""
        self.read_to = 0
        """First byte that was not read yet."""
        self.is_behind = False
        """Whether reading began and did not come to the end."""
        self._seen: os.stat_result | None = None
        self._is_checked: bool | None = None

    def is_checked(self) -> bool:
        """Whether its lines have checksums, which those of earlier versions have not."""
        if self._is_checked is None:
            try:
                if not stat.S_ISREG(self.path.stat().st_mode):
                    return True  # a folder, a pipe: not to be opened
                file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    start = os.pread(file, KEY_LETTERS + 1, 0)
                finally:
                    os.close(file)
            except OSError:
                start = b""
            if len(start) <= KEY_LETTERS:
                return True  # as far as can be told yet
            self._is_checked = start[KEY_LETTERS:] != b" "
        return self._is_checked

    def look(self) -> Literal["same", "grown", "changed"]:
        """What happened to the file since the last look.

        A file that was shortened, rewritten in place or replaced by another one has changed. One
        that was rewritten and grew may pass for grown; the checksums tell when a line is read. One
        that could not be read to its end counts as grown.

        Raises:
            OSError: If the file is gone, cannot be read, or is none.
        """
        # Twice as fast as the path's own, and called for every segment many times a second.
        seen, now = self._seen, os.stat(self.path)  # noqa: PTH116
        if not stat.S_ISREG(now.st_mode):
            raise OSError("it is not a file")
        self._seen = now
        if seen is None:
            return "grown"
        if (now.st_dev, now.st_ino) != (seen.st_dev, seen.st_ino) or now.st_size < self.read_to:
            return "changed"
        if now.st_size != seen.st_size:
            return "grown"
        if now.st_mtime_ns != seen.st_mtime_ns:
            return "changed"
        return "grown" if self.is_behind else "same"

    def start_afresh(self) -> None:
        """Read everything again the next time."""
        self.read_to, self.n_damaged, self.is_behind = 0, 0, True

    def read(self) -> Iterator[tuple[bytes, Place]]:
        """Keys and places of the good lines that came since the last time.

        Raises:
            OSError: If the file cannot be read; what was given before is right, and the next time
                it goes on from there.
        """
        self.is_behind = True
        with self.path.open("rb", buffering=_BUFFER_BYTES) as stream:
            stream.seek(self.read_to)
            for line, n_bytes in _lines(stream):
                start = self.read_to
                self.read_to += n_bytes
                entry = read_line(line)
                if entry is not None:
                    yield entry[0], (self.number, start, n_bytes)
                elif line.strip() or n_bytes > MAX_LINE_BYTES:
                    self.n_damaged += 1
        self.is_behind = False


def _lines(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Lines that have an end, and their lengths; those that are too long as empty ones.

    What follows the last line end is being written, or was cut short by a kill.
    """
    while line := stream.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n"):
            yield line, len(line)
            continue
        n_bytes = len(line)
        while line and not line.endswith(b"\n"):
            line = stream.readline(_BUFFER_BYTES)
            n_bytes += len(line)
        if line:
            yield b"", n_bytes
