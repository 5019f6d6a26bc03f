"""Work on videos in a process of its own, which a bad video may crash."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import ParamSpec, TypeVar

from lmms_eval_captions.judges.errors import DataError

P = ParamSpec("P")
R = TypeVar("R")


class Isolated:
    """Calls functions in another process; a context manager."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a function of a module; its errors are raised here.

        Raises:
            DataError: If the process ends, as where a decoder crashes; the next call starts a new
                one.
        """
        if self._pool is None:
            # Not forked: threads of this process may hold locks.
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent)
        try:
            return self._pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool as error:
            self._pool = None
            raise DataError("the process that read the video ended before its time") from error


def _end_with_parent() -> None:
    """Have this process end where the one that started it was killed: nobody else would end it."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
