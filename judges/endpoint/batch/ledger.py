"""Which batches were submitted, on disk before they are: a run that was killed collects them."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from loguru import logger

from lmms_eval_captions.judges.endpoint.replies import NOT_READABLE
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import StoreError
from lmms_eval_captions.judges.files import parse_json, read_whole, write_atomically

_DAY_S: Final = 24 * 3600.0
_KEPT_S: Final = 30 * _DAY_S
"""Providers delete the replies of a batch after 30 days."""


@dataclass(slots=True)
class SentBatch:
    """A batch that was submitted, or was about to be."""

    model: str
    ids: dict[str, None]
    """``custom_id`` of each request whose reply may be had from it, in the order of asking."""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Our name for it, which the provider keeps as metadata."""
    batch_id: str | None = None
    """The provider's, ``None`` until it is known: the batch may be there all the same."""
    created_s: float = field(default_factory=time.time)
    """Seconds since the epoch."""


class Ledger:
    """The batches at one endpoint, one JSON file each; it holds ids and no texts.

    Args:
        folder: Of the files; made when the first batch is submitted.
        url: The endpoint's base URL.

    Raises:
        StoreError: If the folder cannot be read.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = redact_url(url)
        self._batches: dict[str, SentBatch] = {}
        try:
            for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
                self._load(path)
        except OSError as error:
            raise StoreError(f"cannot read the batches under {folder}: {error}") from error

    def batch_of(self, custom_id: str) -> SentBatch | None:
        """The batch that holds, or will hold, the reply to a request."""
        return self._batches.get(custom_id)

    def path(self, batch: SentBatch) -> Path:
        """File of a batch."""
        return self._folder / f"{batch.name}.json"

    def save(self, batch: SentBatch) -> None:
        """Write a batch down; it is in the operating system's hands when this returns.

        Raises:
            StoreError: If it cannot be written.
        """
        record = {
            "url": self._url,
            "model": batch.model,
            "batch_id": batch.batch_id,
            "created_s": batch.created_s,
            "writer": [socket.gethostname(), os.getpid()],
            "ids": list(batch.ids),
        }
        path = self.path(batch)
        try:
            write_atomically(path, json.dumps(record).encode("ascii"))
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error}; free some space or point LMMS_CAPTIONS_CACHE at "
                "another disk, then run again"
            ) from error
        self._batches.update(dict.fromkeys(batch.ids, batch))

    def forget(self, batch: SentBatch, ids: list[str]) -> None:
        """Take out requests that a batch has no reply to: they may be submitted again."""
        for custom_id in ids:
            batch.ids.pop(custom_id, None)
            self._batches.pop(custom_id, None)
        try:
            if batch.ids:
                self.save(batch)
            else:
                self.path(batch).unlink(missing_ok=True)
        except (OSError, StoreError) as error:
            logger.warning("{} is out of date: {}", self.path(batch), error)

    def _load(self, path: Path) -> None:
        try:
            record = cast("dict[str, Any]", parse_json(read_whole(path)))
            batch = _batch_in(record, path.stem)
            is_ours = record["url"] == self._url
            is_theirs = batch.batch_id is None and _runs_elsewhere(*record["writer"])
        except (IsADirectoryError, FileNotFoundError, *NOT_READABLE) as error:
            logger.warning("{} is no record of a batch and is passed over: {!r}", path, error)
            return
        if time.time() - batch.created_s > _KEPT_S:
            path.unlink(missing_ok=True)
        # What another process is submitting right now is its own to finish.
        elif is_ours and not is_theirs:
            self._batches.update(dict.fromkeys(batch.ids, batch))


def _batch_in(record: Mapping[str, object], name: str) -> SentBatch:
    """The batch in a file of the ledger.

    Raises:
        ValueError: If a field is not what :meth:`Ledger.save` writes; others where one is missing.
    """
    model, ids, batch_id = record["model"], record["ids"], record["batch_id"]
    created_s = record["created_s"]
    if (
        not isinstance(model, str)
        or not (batch_id is None or isinstance(batch_id, str))
        or not (isinstance(ids, list) and all(isinstance(custom_id, str) for custom_id in ids))
        or not (isinstance(created_s, int | float) and 0 <= created_s <= time.time() + _DAY_S)
    ):
        raise ValueError("expected model, ids, batch_id and created_s of a batch")
    return SentBatch(model, dict.fromkeys(ids), name, batch_id, float(created_s))


def _runs_elsewhere(host: str, pid: int) -> bool:
    """Whether another process of this machine has that number."""
    if host != socket.gethostname() or pid == os.getpid() or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
