"""Which requests are under way, so that processes that share a store do not ask the same twice.

A request is claimed by a lock on one byte of a file in the store's folder, at an offset that its
key gives. The system keeps these locks, so that those of a process that dies are gone with it. A
claim lasts until the other processes have had the time to see the reply; who then gets it looks
into the store before it sends anything.

On this machine a claim takes some microseconds, on a network share two round trips.

Where the file system has no such locks, every request is claimed at once: what several processes
ask at the same time is then asked several times, and no reply is lost. The same goes for several
engines within one process, which the system does not tell from each other.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loguru import logger

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]  # then nothing is claimed

FRESH_S: Final = 0.05
"""How old the latest look into the store may be when a request is sent.

A process that dies gives its claims up at once: what it saved within this time may be asked again.
"""
_KEEP_S: Final = 0.1
"""How long a claim lasts beyond its reply's saving: longer than that, so that who gets it next has
looked since."""
_RETRY_S: Final = 1.0
"""How often what another process has claimed is tried to be claimed."""
_N_FILES: Final = 16
"""The system goes through all locks of a file one by one: several files keep that short."""


@dataclass(slots=True)
class _Waiter:
    """A request that another process has claimed."""

    future: asyncio.Future[None]
    is_stored: Callable[[], bool]
    retry_s: float
    """When it is next tried to claim the request."""


class Claims:
    """The claims of one process; to be used inside the event loop alone.

    Args:
        folder: Folder of the files, made with the first claim; ``None`` where none are needed.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder if fcntl is not None else None
        self._files: dict[int, int] = {}
        self._held: set[bytes] = set()
        self._kept: deque[tuple[float, bytes]] = deque()
        """When the replies of claims that are still held were saved, oldest first."""
        self._waiting: dict[bytes, _Waiter] = {}

    def take(self, key: bytes) -> bool:
        """Claim a request.

        Returns:
            Whether it is this process's to send: ``False`` where another one has claimed it.
        """
        if self._folder is None or key in self._held:
            return True
        try:
            fcntl.lockf(self._file(key), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _offset(key))
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno == errno.EACCES and _slot(key) in self._files:
                return False  # as some systems say it
            self._do_without(error)
            return True
        self._held.add(key)
        return True

    def wait(
        self, key: bytes, is_stored: Callable[[], bool], *, patience_s: float
    ) -> asyncio.Future[None]:
        """What to await until another process is done with a request.

        Returns:
            Done once the reply is stored, or the request claimed by this process, as the other
            one ended without a reply; or when patience is over, as the other one may be stopped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting[key] = _Waiter(future, is_stored, time.monotonic() + _RETRY_S)
        patience = loop.call_later(patience_s, _end, future)
        future.add_done_callback(lambda _: patience.cancel())
        return future

    def release(self, key: bytes, *, in_a_while: bool = False) -> None:
        """Give a claim up, if it is held: at once, or when others have had time to see the reply.

        Args:
            key: 16 bytes.
            in_a_while: Whether the reply was just saved.
        """
        self._waiting.pop(key, None)
        if key not in self._held:
            return
        if in_a_while:
            self._kept.append((time.monotonic(), key))
            return
        self._held.remove(key)
        try:
            fcntl.lockf(self._file(key), fcntl.LOCK_UN, 1, _offset(key))
        except OSError as error:
            self._do_without(error)

    def tick(self) -> None:
        """What is done a few times a second, right after the store was looked at."""
        now_s = time.monotonic()
        while self._kept and self._kept[0][0] + _KEEP_S < now_s:
            self.release(self._kept.popleft()[1])
        self._follow()
        for key, waiter in self._waiting.items():
            if waiter.is_stored():
                _end(waiter.future)
            elif now_s >= waiter.retry_s:
                waiter.retry_s = now_s + _RETRY_S
                if self.take(key):
                    _end(waiter.future)

    def close(self) -> None:
        """Give everything up."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()
        self._held.clear()
        self._folder = None

    def _follow(self) -> None:
        """Claim again in the files that others see, where the folder was removed or replaced."""
        for slot, file in list(self._files.items()):
            own = os.fstat(file)
            try:
                there = os.stat(self._path(slot))  # noqa: PTH116 - twice as fast
            except OSError:
                there = None
            if there is not None and (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino):
                continue
            os.close(file)
            del self._files[slot]
            lost = [key for key in self._held if _slot(key) == slot]
            self._held.difference_update(lost)
            for key in lost:
                self.take(key)

    def _file(self, key: bytes) -> int:
        slot = _slot(key)
        file = self._files.get(slot)
        if file is None:
            path = self._path(slot)
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._files[slot] = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        return file

    def _path(self, slot: int) -> Path:
        return Path() if self._folder is None else self._folder / f"{slot:x}"

    def _do_without(self, error: OSError) -> None:
        logger.info(
            "requests cannot be claimed in {} ({}): several processes that ask the same questions "
            "at the same time pay for each, but see each other's replies as they are stored",
            self._folder,
            error,
        )
        self.close()


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _slot(key: bytes) -> int:
    return key[-1] % _N_FILES


def _offset(key: bytes) -> int:
    """The byte that stands for a request: below 2 to the 62, which every system can lock."""
    return int.from_bytes(key[:8], "big") >> 2
