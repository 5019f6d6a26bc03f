"""Lock of a folder that one process at a time may work in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lmms_eval_captions.judges.errors import DataError, SettingsError


@contextmanager
def locked(folder: Path, *, named: Path, doing: str, option: str) -> Iterator[None]:
    """Keep other processes out of a folder; the lock ends with the process.

    Args:
        folder: Folder of the lock file; created if missing.
        named: Folder that the user named.
        doing: Work that is done there, such as ``builds``.
        option: Option that names the folder.

    Raises:
        SettingsError: If another process works there.
        DataError: If the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise SettingsError(
            f"{option}: another process {doing} in {str(named)!r}; wait until it ends, or name "
            "another folder"
        ) from error
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be written: {error}; name another folder with {option}"
        ) from error
    try:
        yield
    finally:
        lock.release()
