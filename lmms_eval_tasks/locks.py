"""Locks between processes; each ends with its process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loguru import logger

from lmms_eval_captions.judges.errors import DataError, SettingsError


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file of the cache folder; wait, with a message, while another process does.

    ``what`` is the product of the process that holds it, for the message.

    Raises:
        DataError: If the file cannot be written.
    """
    from filelock import FileLock, Timeout

    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                held.enter_context(FileLock(path, timeout=1))
            except Timeout:
                logger.info(f"Waiting for the process that makes {what}")
                held.enter_context(FileLock(path))
        except OSError as error:
            raise DataError(
                f"{path.parent} cannot be written: {error}; set LMMS_CAPTIONS_CACHE to a folder "
                "that can be"
            ) from error
        yield


@contextmanager
def only_one(folder: Path, *, named: Path, doing: str, option: str) -> Iterator[None]:
    """Keep other processes out of a folder of results, which is created if missing.

    ``named`` is the folder that the user named, ``doing`` the work there, such as ``builds``.

    Raises:
        SettingsError: If another process works there.
        DataError: If the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(folder / ".lock", timeout=0))
        except Timeout as error:
            raise SettingsError(
                f"{option}: another process {doing} in {str(named)!r}; wait until it ends, or name "
                "another folder"
            ) from error
        except OSError as error:
            raise DataError(
                f"{folder}: cannot be written: {error}; name another folder with {option}"
            ) from error
        yield
