"""All stored replies of an engine: one store per model, and what happens when a disk is full."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.store.flusher import Flusher
from lmms_eval_captions.judges.endpoint.store.slug import slug
from lmms_eval_captions.judges.endpoint.store.store import ReplyStore
from lmms_eval_captions.judges.endpoint.store.writable import require_writable
from lmms_eval_captions.judges.errors import JudgeError, JudgeStoppedError, StoreError


class UnsavedReplyError(JudgeError):
    """A reply that came but is not on disk: it does not count, yet its text is shown."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


class StoredReplies:
    """Reply stores by model, below one folder.

    A reply is under its request's key. Where endpoints are told from each other and that of another
    one is there already, it is under a key that the endpoint's name is in as well.

    Args:
        folder: Folder of the stores.
        patience_s: How long a reply that cannot be written is held.
        endpoints: Names of the endpoint's addresses whose replies alone serve, or ``None`` where
            those of every endpoint do.
    """

    def __init__(
        self, folder: Path, *, patience_s: float, endpoints: tuple[str, ...] | None = None
    ) -> None:
        self._folder = folder
        self._patience_s = patience_s
        self._endpoints = endpoints
        self._stores: dict[str, ReplyStore] = {}
        self._flusher = Flusher()
        self._has_foreign = False
        self._is_writable = False

    def require_writable(self) -> None:
        """Raise where no reply could be kept; looked at until it is so once.

        Raises:
            JudgeStoppedError: If nothing can be written.
        """
        if not self._is_writable:
            try:
                require_writable(self._folder)
            except StoreError as error:
                raise JudgeStoppedError(str(error)) from error
            self._is_writable = True

    def get(self, model: str, key: bytes, *, max_age_s: float | None = None) -> Reply | None:
        """A stored reply; ``None`` also for one whose line was cut short.

        Args:
            model: Name of the judge.
            key: 16 bytes.
            max_age_s: Where not ``None``, take in first what other processes have stored, if that
                was done longer ago.

        Raises:
            JudgeStoppedError: If the store cannot be read.
        """
        store = self._store(model)
        if max_age_s is not None:
            store.refresh(max_age_s=max_age_s)
        reply = self._reply(store, key)
        if self._endpoints is None or (reply is not None and reply.endpoint in self._endpoints):
            return reply
        for own in self._own_keys(key):
            reply = self._reply(store, own)
            if reply is not None:
                return reply
        return None

    def has(self, model: str, key: bytes) -> bool:
        """Whether a reply that serves was stored when the store was last looked at."""
        if self._endpoints is None:
            return key in self._store(model)
        return self.get(model, key) is not None

    async def save(self, model: str, key: bytes, reply: Reply) -> None:
        """Put a reply on disk before it counts; on a full disk hold it, and its slot, a while.

        Nothing new is sent in a slot that is held, and nothing may be while nothing can be kept.

        Raises:
            UnsavedReplyError: If it could not be written for as long as patience lasts.
        """
        value = reply.to_json()
        deadline_s = time.monotonic() + self._patience_s
        while True:
            try:
                self._put(self._store(model), key, value, reply.endpoint)
            except StoreError as error:
                if time.monotonic() >= deadline_s:
                    raise UnsavedReplyError(
                        f"answered, but the reply could not be saved: {error}", reply
                    ) from error
                await asyncio.sleep(min(1.0, self._patience_s / 10))
            else:
                return

    def refresh(self) -> None:
        """Take in what other processes have stored since, and flush what is due."""
        for store in self._stores.values():
            store.refresh()
        if self._flusher.is_due():
            flushings = [store.flushing() for store in self._stores.values()]
            self._flusher.flush([flushing for flushing in flushings if flushing is not None])

    def close(self) -> None:
        """Flush and close every store."""
        self._flusher.close()
        for store in self._stores.values():
            store.close()

    def _put(self, store: ReplyStore, key: bytes, value: bytes, endpoint: str | None) -> None:
        """Write a reply down; one of another endpoint that is there stays."""
        if self._endpoints is not None and endpoint is not None and key in store:
            key = _own_key(key, endpoint)
        store.put(key, value)

    def _own_keys(self, key: bytes) -> Iterator[bytes]:
        return (_own_key(key, name) for name in self._endpoints or ())

    def _reply(self, store: ReplyStore, key: bytes) -> Reply | None:
        try:
            stored = store.get(key)
        except OSError as error:
            raise JudgeStoppedError(
                f"cannot read the verdicts under {self._folder}: {error}"
            ) from error
        try:
            return None if stored is None else Reply.from_json(stored)
        except ValueError as error:
            if not self._has_foreign:
                self._has_foreign = True
                logger.warning(
                    "{}: a line that is no reply is passed over, and so are others: {}",
                    self._folder,
                    error,
                )
            return None

    def _store(self, model: str) -> ReplyStore:
        store = self._stores.get(model)
        if store is None:
            try:
                store = ReplyStore(self._folder / slug(model))
            except StoreError as error:
                raise JudgeStoppedError(str(error)) from error
            self._stores[model] = store
        return store


def _own_key(key: bytes, endpoint: str) -> bytes:
    """The key of a reply that another endpoint's reply to the same request was there before."""
    return hashlib.blake2b(key + endpoint.encode("utf-8", "surrogatepass"), digest_size=16).digest()
