"""A lock on what one process makes in the cache folder and others wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loguru import logger

from lmms_eval_captions.judges.errors import DataError


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file, whose folder is made; report a wait for another process.

    Args:
        path: The lock file.
        what: What the process that holds it makes, for the message.

    Raises:
        DataError: If the file cannot be written.
    """
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=1)
        except Timeout:
            logger.info(f"Waiting for the process that makes {what}")
            lock.acquire()
    except OSError as error:
        raise DataError(
            f"{path.parent} cannot be written: {error}; set LMMS_CAPTIONS_CACHE to a folder that "
            "can be"
        ) from error
    try:
        yield
    finally:
        lock.release()
