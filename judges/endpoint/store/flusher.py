"""Brings to the disk itself, every two seconds, what was written; in a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import inf
from typing import Final

from loguru import logger

FLUSH_S: Final = 2.0
"""A power cut loses what was answered in so long, and in the time that the disk takes."""


class Flusher:
    """Flushes files while the event loop goes on: a disk may take seconds."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._latest: Future[None] | None = None
        self._next_s = -inf
        self._has_failed = False

    def is_due(self) -> bool:
        """Whether it is time, and the disk is done with what it was given before."""
        is_busy = self._latest is not None and not self._latest.done()
        return not is_busy and time.monotonic() >= self._next_s

    def flush(self, flushings: Iterable[Callable[[], None]]) -> None:
        """Call what flushes the files, when :meth:`is_due` says so."""
        self._next_s = time.monotonic() + FLUSH_S
        self._say(self._latest)
        work = list(flushings)
        if not work:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="flush")
        try:
            self._latest = self._thread.submit(_call_all, work)
        except RuntimeError:  # the interpreter is ending, and takes no more work for threads
            self._latest = Future()
            self._latest.set_result(None)
            with suppress(OSError):
                _call_all(work)

    def close(self) -> None:
        """Wait for what is under way."""
        if self._thread is not None:
            self._thread.shutdown()
        self._say(self._latest)

    def _say(self, done: Future[None] | None) -> None:
        error = None if done is None else done.exception()
        if error is not None and not self._has_failed:
            self._has_failed = True
            logger.error(
                "replies are written, but the disk did not take them: {}. Some may be lost; look "
                "after the disk, and run again",
                error,
            )


def _call_all(work: list[Callable[[], None]]) -> None:
    for flush in work:
        flush()
