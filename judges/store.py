"""Replies on disk: append-only segments, one a process, that survive a kill at any moment.

A line is the key in hexadecimal, a space, the reply as JSON, and a line end. Every process appends
to a segment of its own and reads all of them, so several processes, on one machine or on a shared
file system, use one store without locks. A line that a kill or a full disk cut short is passed
over.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections import OrderedDict
from pathlib import Path

from loguru import logger

from lmms_eval_captions.judges.errors import StoreError

_KEY_HEX = 32
_MAX_OPEN = 64


class ReplyStore:
    """The replies of one judge model under ``folder``.

    Args:
        folder: Folder of the segments; made when the first reply is written.

    Raises:
        StoreError: If the folder cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: dict[bytes, tuple[int, int, int]] = {}
        self._segments: list[Path] = []
        self._read_to: dict[int, int] = {}
        self._readers: OrderedDict[int, int] = OrderedDict()
        self._own: int | None = None
        self._own_size = 0
        self._own_number = -1
        self._torn = False
        try:
            for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
                self._load(path)
        except OSError as error:
            raise StoreError(f"cannot read the verdicts under {folder}: {error}") from error

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: bytes) -> bytes | None:
        """The stored JSON of a reply, or ``None``."""
        entry = self._index.get(key)
        if entry is None:
            return None
        segment, offset, length = entry
        data = os.pread(self._reader(segment), length, offset)
        return data if len(data) == length else None

    def put(self, key: bytes, value: bytes) -> None:
        """Append one reply; it is in the operating system's hands when this returns.

        Args:
            key: 16 bytes.
            value: The reply as JSON, without a line end.

        Raises:
            StoreError: If it could not be written whole (disk full, no permission).
        """
        try:
            self._append(key, value)
        except OSError as error:
            self._torn = self._own is not None
            raise StoreError(
                f"cannot write to {self._folder}: {error}; free some space, or point "
                "LMMS_CAPTIONS_CACHE at a folder on another disk (move the old one along to keep "
                "its verdicts), and run again: it goes on where this run stopped"
            ) from error

    def refresh(self) -> float | None:
        """Take in what other processes have appended since.

        A folder that cannot be read just now is looked at again the next time.

        Returns:
            This process's place among those that write, in [0, 1), or ``None`` where no other one
            has written.
        """
        others: list[Path] = []
        try:
            known = {path: number for number, path in enumerate(self._segments)}
            for path in sorted(self._folder.glob("*.jsonl")):
                number = known.get(path)
                if (number is None or number != self._own_number) and self._load(path, number):
                    others.append(path)
        except OSError as error:
            logger.debug("{}: {}", self._folder, error)
        if not others:
            return None
        own = self._segments[self._own_number] if self._own is not None else others[-1]
        return sum(path <= own for path in others) / (len(others) + 1)

    def close(self) -> None:
        """Flush to the disk itself, and close every file."""
        if self._own is not None:
            os.fsync(self._own)
            os.close(self._own)
            self._own = None
        for descriptor in self._readers.values():
            os.close(descriptor)
        self._readers.clear()

    def _load(self, path: Path, number: int | None = None) -> bool:
        """Index the whole lines of a segment, from where it was read to before; if any."""
        if number is None:
            number = len(self._segments)
            self._segments.append(path)
        start = self._read_to.get(number, 0)
        if path.stat().st_size <= start:
            return False
        with path.open("rb") as stream:
            stream.seek(start)
            data = stream.read()
        # What follows the last line end is being written, or was cut short by a kill.
        data = data[: data.rfind(b"\n") + 1]
        self._index_lines(data, number, start)
        self._read_to[number] = start + len(data)
        return bool(data)

    def _index_lines(self, data: bytes, number: int, offset: int) -> None:
        for line in data.split(b"\n")[:-1]:
            # A line that was cut short and then ended has no closing brace.
            if line.endswith(b"}") and line[_KEY_HEX : _KEY_HEX + 2] == b" {":
                key = _from_hex(line[:_KEY_HEX])
                if key is not None:
                    start = _KEY_HEX + 1
                    self._index[key] = (number, offset + start, len(line) - start)
            offset += len(line) + 1

    def _append(self, key: bytes, value: bytes) -> None:
        own = self._open_own() if self._own is None else self._own
        prefix = b"\n" if self._torn else b""
        line = b"%s%s %s\n" % (prefix, key.hex().encode("ascii"), value)
        written = os.write(own, line)
        self._own_size += written
        if written < len(line):
            raise OSError(28, "only part of a line could be written: no space left on the disk")
        self._torn = False
        start = self._own_size - len(value) - 1
        self._index[key] = (self._own_number, start, len(value))

    def _open_own(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
        path = self._folder / f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._own = os.open(path, flags, 0o644)
        self._own_number = len(self._segments)
        self._segments.append(path)
        return self._own

    def _reader(self, segment: int) -> int:
        descriptor = self._readers.get(segment)
        if descriptor is None:
            if len(self._readers) >= _MAX_OPEN:
                os.close(self._readers.popitem(last=False)[1])
            descriptor = os.open(self._segments[segment], os.O_RDONLY)
            self._readers[segment] = descriptor
        return descriptor


def _from_hex(text: bytes) -> bytes | None:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None
