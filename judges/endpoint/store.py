"""Replies on disk: append-only segments of JSON lines, one per process, read by all.

Several processes, also on a network file system, use one store without locks: each appends to a
segment of its own. A reply is in the operating system's hands before it counts, so a kill loses
nothing; it is on the disk itself within two seconds. A line has a checksum over key and reply, so
one that was cut short or altered is passed over, and what it held is asked again.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import socket
import stat
import tempfile
import threading
import time
import uuid
from binascii import unhexlify
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final
from zlib import crc32

from loguru import logger

from lmms_eval_captions.judges.endpoint.endpoint import CACHE_VARIABLE
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import JudgeError, StoreError

MAX_LINE_BYTES: Final = 64 << 20
"""Longer lines are passed over: an answer of 16 MiB is at most 48 MiB of JSON."""
FLUSH_S: Final = 2.0
_MAX_OPEN: Final = 64
_LINE: Final = re.compile(rb"([0-9a-f]{32})-([0-9a-f]{8})(\{.*\})\n", re.DOTALL)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A name fit for a folder, different for different names."""
    safe = _UNSAFE.sub("-", name)[:80].strip(".-")
    if safe == name:
        return name
    encoded = name.encode("utf-8", "surrogatepass")
    return f"{safe}-{hashlib.blake2b(encoded, digest_size=3).hexdigest()}"


def write_line(key: bytes, value: bytes) -> bytes:
    """The line of a reply: key, CRC-32 of key and reply, reply."""
    name = key.hex().encode("ascii")
    return b"%s-%08x%s\n" % (name, crc32(value, crc32(name)), value)


def read_line(line: bytes) -> tuple[bytes, bytes] | None:
    """Key and JSON of a line; ``None`` if it is damaged, cut short or something else."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, checksum, value = match.groups()
    return (unhexlify(name), value) if int(checksum, 16) == crc32(value, crc32(name)) else None


def require_writable(folder: Path) -> None:
    """Make a folder; raises a :class:`StoreError` if no file can be written in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as draft:
            os.write(draft.fileno(), b"0")
    except OSError as error:
        raise StoreError(
            f"replies cannot be kept in {folder} ({error.strerror or error}): nothing is asked, as "
            f"answers would be lost. Make it writable, or set {CACHE_VARIABLE} to a folder that is"
        ) from error


class ReplyStore:
    """The replies of one model in a folder; a :class:`StoreError` if it cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: dict[bytes, tuple[str, int, int]] = {}
        """Key to segment, first byte and length of its line."""
        self._n_read: dict[str, float] = {}
        """Segments of others to their bytes that are in the index; all if one cannot be read."""
        self._files: dict[str, int] = {}
        """Descriptors of those that are open."""
        self._own, self._own_file, self._own_bytes = "", -1, 0
        self._is_torn = self._is_dirty = False
        """Part of a line may stand at the end of the own segment; it may not be on the disk yet."""
        self._flushed_s = time.monotonic()
        self._flushing: threading.Thread | None = None
        try:
            self._read_segments()
        except OSError as error:
            raise StoreError(f"cannot read the verdicts under {folder}: {error}") from error

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    def get(self, key: bytes) -> bytes | None:
        """The stored JSON of a reply, or ``None``."""
        place = self._index.get(key)
        if place is None:
            return None
        path, start, n_bytes = place
        try:
            entry = read_line(os.pread(self._opened(path), n_bytes, start))
        except OSError as error:
            raise StoreError(f"cannot read the verdicts under {self._folder}: {error}") from error
        if entry is None or entry[0] != key:
            del self._index[key]  # damaged since it was read
            return None
        return entry[1]

    def put(self, key: bytes, value: bytes) -> None:
        """Append one reply; it is in the operating system's hands when this returns."""
        line = write_line(key, value)
        try:
            self._append(line)
        except OSError as error:
            raise StoreError(
                f"cannot write to {self._folder}: {error}; free some space, or point "
                f"{CACHE_VARIABLE} at a folder on another disk (move the old one along to keep "
                "its verdicts), and run again: it goes on where this run stopped"
            ) from error
        self._is_dirty = True
        self._index[key] = (self._own, self._own_bytes - len(line), len(line))

    def refresh(self) -> None:
        """Read what other processes have appended; every two seconds flush, in a thread."""
        with suppress(OSError):
            self._read_segments()
        is_busy = self._flushing is not None and self._flushing.is_alive()
        if self._is_dirty and not is_busy and time.monotonic() - self._flushed_s >= FLUSH_S:
            self._is_dirty, self._flushed_s = False, time.monotonic()
            self._flushing = threading.Thread(
                target=_flush, args=(os.dup(self._own_file),), daemon=True
            )
            self._flushing.start()

    def close(self) -> None:
        """Flush to the disk itself, and close every file."""
        if self._flushing is not None:
            self._flushing.join()
        if self._own_file >= 0:
            _flush(self._own_file)
            self._own, self._own_file, self._own_bytes = "", -1, 0
            self._is_dirty = False
        self._close_others()

    def _append(self, line: bytes) -> None:
        if self._own_file < 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname())[:40]
            self._own = str(self._folder / f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl")
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._own_file = os.open(self._own, flags, 0o644)
        prefix = b"\n" if self._is_torn else b""
        self._is_torn = True
        n_written = os.write(self._own_file, prefix + line)
        self._own_bytes += n_written
        if n_written < len(prefix) + len(line):
            raise OSError(errno.ENOSPC, "only part of a line could be written: the disk is full")
        self._is_torn = False

    def _opened(self, path: str) -> int:
        if path == self._own:
            return self._own_file
        if path not in self._files:
            if len(self._files) >= _MAX_OPEN:
                self._close_others()
            self._files[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        return self._files[path]

    def _close_others(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

    def _read_segments(self) -> None:
        """Index the lines that are new in the segments of others."""
        if not self._folder.exists():
            return
        with os.scandir(self._folder) as entries:
            paths = sorted(entry.path for entry in entries if entry.name.endswith(".jsonl"))
        for path in paths:
            try:
                if path != self._own:
                    self._read_new(path)
            except OSError as error:
                self._n_read[path] = inf
                logger.warning("{} cannot be read and is passed over: {}", path, error)

    def _read_new(self, path: str) -> None:
        start = self._n_read.get(path, 0)
        if start == inf:
            return
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a file")
        if status.st_size <= start:
            return
        place, n_damaged = int(start), 0
        with Path(path).open("rb", buffering=1 << 20) as stream:
            stream.seek(place)
            while line := stream.readline(MAX_LINE_BYTES):
                if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                    break  # it is being written, or was cut short by a kill
                entry = read_line(line)
                if entry is not None:
                    self._index[entry[0]] = (path, place, len(line))
                elif line.strip():
                    n_damaged += 1
                place += len(line)
        self._n_read[path] = place
        if n_damaged:
            logger.warning(
                f"{n_damaged} line(s) of {path} are damaged or cut short; what they held is asked "
                "again where it is needed"
            )


class UnsavedReplyError(JudgeError):
    """A reply that came but is not on disk: it does not count, yet its text is shown."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


class StoredReplies:
    """The stores of all models of an engine.

    If endpoints are distinguished, a reply is also stored under a key with the endpoint's name.
    """

    def __init__(
        self, folder: Path, *, patience_s: float, endpoints: tuple[str, ...] | None = None
    ) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._endpoints = endpoints
        self._stores: dict[str, ReplyStore] = {}
        self._is_warned = self.is_writable = False
        self._refreshed_s = -inf

    def require_writable(self) -> None:
        """Raise a :class:`StoreError` if no reply could be kept."""
        require_writable(self._folder)
        self.is_writable = True

    def get(self, model: str, key: bytes) -> Reply | None:
        """A stored reply."""
        store = self._stores.get(model) or self._opened(model)
        reply = self._reply(store, key)
        if self._endpoints is None or (reply is not None and reply.endpoint in self._endpoints):
            return reply
        own = (self._reply(store, _own_key(key, name)) for name in self._endpoints)
        return next((reply for reply in own if reply is not None), None)

    def has(self, model: str, key: bytes) -> bool:
        """Return whether a reply that serves is stored."""
        if self._endpoints is None:
            return key in self._opened(model)
        return self.get(model, key) is not None

    async def save(self, model: str, key: bytes, reply: Reply) -> None:
        """Put a reply on disk before it counts; if the disk is full, hold it for a while."""
        value = reply.to_json()
        deadline_s = time.monotonic() + self._patience_s
        while True:
            try:
                store = self._opened(model)
                if self._endpoints is not None and reply.endpoint:
                    store.put(_own_key(key, reply.endpoint), value)
                if self._endpoints is None or key not in store:
                    store.put(key, value)
            except StoreError as error:
                if time.monotonic() >= deadline_s:
                    raise UnsavedReplyError(
                        f"answered, but the reply could not be saved: {error}", reply
                    ) from error
                await asyncio.sleep(min(1.0, self._patience_s / 10))
            else:
                return

    def refresh(self) -> None:
        """Read what other processes have stored, once a second, and flush what is due."""
        if time.monotonic() - self._refreshed_s >= 1.0:
            self._refreshed_s = time.monotonic()
            for store in self._stores.values():
                store.refresh()

    def close(self) -> None:
        """Flush and close every store."""
        for store in self._stores.values():
            store.close()

    def _reply(self, store: ReplyStore, key: bytes) -> Reply | None:
        stored = store.get(key)
        try:
            return None if stored is None else Reply.from_json(stored)
        except ValueError as error:
            if not self._is_warned:
                self._is_warned = True
                words = "a line that is no reply is passed over, and so are others"
                logger.warning("{}: {}: {}", self._folder, words, error)
            return None

    def _opened(self, model: str) -> ReplyStore:
        if model not in self._stores:
            self._stores[model] = ReplyStore(self._folder / slug(model))
        return self._stores[model]


def _own_key(key: bytes, endpoint: str) -> bytes:
    return hashlib.blake2b(key + endpoint.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _flush(file: int) -> None:
    try:
        os.fsync(file)
    except OSError as error:
        logger.error("the disk did not take the latest replies: {}; they may be lost", error)
    finally:
        os.close(file)
