"""One process at work in a folder at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError, SettingsError

_FILE: Final = ".lock"


@contextmanager
def alone_in(folder: Path, *, of: Path, doing: str, option: str) -> Iterator[None]:
    """Keep other processes from working in a folder, whose files would be of both.

    The lock is the operating system's: it ends with the process, however that ends.

    Args:
        folder: That of the lock; it is made.
        of: The folder that the user named.
        doing: What is done there, such as ``builds``.
        option: The one that the user named it with.

    Raises:
        SettingsError: If another process works there.
        DataError: If the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / _FILE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise SettingsError(
            f"{option}: another process {doing} in {str(of)!r}; wait for its end, or name another "
            "folder"
        ) from error
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be written: {error}; name a folder that can with {option}"
        ) from error
    try:
        yield
    finally:
        lock.release()
