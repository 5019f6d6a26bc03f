"""A client that asks through the provider's Batch API: half the price, within a day.

It gathers requests until no new one comes for a moment, submits them as one batch, waits, and
answers each. A run's second steps make a second batch. What was submitted is on disk before it is
waited for, so that a run that was stopped and is started again collects it: nothing is paid twice.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import time
import uuid
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, cast

from loguru import logger

from lmms_eval_captions.judges.endpoint.batch_api import (
    BatchApi,
    Outcome,
    State,
    errors_of,
    missing_of,
    read_results,
    words_of,
)
from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.endpoint import BatchPace
from lmms_eval_captions.judges.endpoint.replies import NOT_READABLE, counted
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.urls import redact_url, scrub
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
    StoreError,
)
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


class Ledger:
    """The batches at one endpoint, one JSON file each; it holds ids and no texts."""

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
        """Write a batch down; it is in the operating system's hands when this returns."""
        record = asdict(batch) | {"url": self._url, "ids": list(batch.ids)}
        del record["name"]
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
            model, batch_id = record["model"], record["batch_id"]
            ids, created_s = record["ids"], float(record["created_s"])
            is_ours = record["url"] == self._url
            if not all(isinstance(text, str) for text in (model, batch_id or "", *ids)):
                raise ValueError("expected texts as model, batch_id and ids")
            if not 0 <= created_s <= time.time() + _DAY_S:
                raise ValueError("expected seconds since 1970 as created_s")
        except (IsADirectoryError, FileNotFoundError, *NOT_READABLE) as error:
            logger.warning("{} is no record of a batch and is passed over: {!r}", path, error)
            return
        if time.time() - created_s > _KEPT_S:
            path.unlink(missing_ok=True)
        elif is_ours:
            batch = SentBatch(model, dict.fromkeys(ids), path.stem, batch_id, created_s)
            self._batches.update(dict.fromkeys(batch.ids, batch))


BATCH_CONCURRENCY: Final = 350_000
"""Requests that may wait at once: all 329,388 of VCapsBench, which take some 7 GB of memory."""
BATCH_PATIENCE_S: Final = 4 * 24 * 3600.0
"""Time for which one request is tried: a batch takes up to a day."""
BATCH_ATTEMPTS: Final = 3
_ENDED: Final = {"completed", "failed", "expired", "cancelled"}
_TOO_MUCH: Final = {"token_limit_exceeded", "rate_limit_exceeded", "request_limit_exceeded"}


@dataclass(slots=True)
class Group:
    """Requests that are answered by one batch, all to one model."""

    model: str
    sent: SentBatch | None = None
    """The batch of an earlier run that has their replies; ``None`` if they are to be submitted."""
    lines: dict[str, bytes] = field(default_factory=dict)
    """``custom_id`` to the request as a line of the batch's file."""
    n_bytes: int = 0

    def add(self, custom_id: str, line: bytes) -> None:
        """Add a request."""
        self.lines[custom_id] = line
        self.n_bytes += len(line)


class BatchClient:
    """Chat completions through a Batch API; must be made inside the event loop."""

    def __init__(self, url: str, api_key: str | None, folder: Path, pace: BatchPace) -> None:
        self._pace, self._api_key = pace, api_key
        self._ledger = Ledger(folder, url)
        self._api = BatchApi(url, api_key)
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._groups: dict[str, Group] = {}
        """Model, or name of an earlier batch, to requests that are asked now."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._uploading = asyncio.Lock()
        self._accepted: set[str] = set()
        """Names of batches that the provider is at work on."""

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:  # noqa: ARG002
        """Return the reply to a request, hours later."""
        body, asked = OPENAI.encode(request, attempt), request.body(attempt)
        digest = hashlib.blake2b(body, digest_size=16)
        if asked != body:
            digest.update(asked)
        custom_id = digest.hexdigest()
        future = self._waiting.get(custom_id)
        if future is None or future.done():
            self._line_up(custom_id, body, request.model)
            future = self._waiting[custom_id] = asyncio.get_running_loop().create_future()
        return counted(await asyncio.shield(future), request, attempt)

    async def close(self) -> None:
        """Stop waiting. Batches at the provider go on, and are collected by the next run."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._accepted:
            logger.warning(
                "{} batch(es) are still at the provider; run the same command again to collect "
                "them, nothing is submitted or paid twice",
                len(self._accepted),
            )
        await self._api.close()

    def _line_up(self, custom_id: str, body: bytes, model: str) -> None:
        line = b'{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":%s}\n'
        line = line % (custom_id.encode("ascii"), body)
        sent = self._ledger.batch_of(custom_id)
        name = sent.name if sent else model
        group = self._groups.setdefault(name, Group(model, sent))
        is_full = len(group.lines) >= self._pace.max_requests
        if sent is None and (is_full or group.n_bytes + len(line) > self._pace.max_bytes):
            self._spawn(group)
            group = self._groups[name] = Group(model)
        group.add(custom_id, line)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._pace.quiet_s, self._begin)

    def _begin(self) -> None:
        """Answer all that was asked, as nothing more comes."""
        groups, self._groups, self._timer = self._groups, {}, None
        for group in groups.values():
            self._spawn(group)

    def _spawn(self, group: Group) -> None:
        task = asyncio.get_running_loop().create_task(self._answered(group))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, group: Group) -> None:
        """Answer a group's requests, with the error if it fails."""
        try:
            await (self._submit(group) if group.sent is None else self._resume(group, group.sent))
        except Exception as error:  # noqa: BLE001 - requests would wait for ever
            words = f"{type(error).__name__}: {scrub(str(error), self._api_key)}"
            outcome = JudgeRequestError(f"the batch ended with {words}")
            for custom_id in group.lines:
                own = error if isinstance(error, JudgeError) else outcome
                self._settle(custom_id, copy.copy(own))

    async def _submit(self, group: Group) -> None:
        """Submit a group, as several batches if the provider takes no more at once."""
        while True:
            sent = await self._create(group)
            state = await self._wait(sent)
            codes = {code for code, _ in errors_of(state)}
            if state.get("status") != "failed" or not codes & _TOO_MUCH:
                await self._answer(sent, state)
                return
            self._ledger.forget(sent, list(sent.ids))
            words = words_of(state, self._api_key)
            if self._accepted:
                logger.info("batch {} has to wait for others: {}", sent.batch_id, words)
                await asyncio.sleep(self._pace.most_poll_s)
            elif len(group.lines) == 1:
                raise JudgeStoppedError(words)
            else:
                logger.info("batch {} is too large here: {}", sent.batch_id, words)
                halves = Group(group.model), Group(group.model)
                for index, (custom_id, line) in enumerate(group.lines.items()):
                    halves[2 * index >= len(group.lines)].add(custom_id, line)
                for half in halves:
                    await self._submit(half)
                return

    async def _create(self, group: Group) -> SentBatch:
        """Submit a group as one batch, written down before and after."""
        sent = SentBatch(group.model, dict.fromkeys(group.lines))
        async with self._uploading:
            file_id = await self._api.upload(b"".join(group.lines.values()), f"{sent.name}.jsonl")
            self._ledger.save(sent)
            sent.batch_id = await self._api.create(file_id, sent.name)
        self._ledger.save(sent)
        logger.info(
            f"submitted batch {sent.batch_id}: {len(sent.ids):,} requests to {sent.model}, "
            f"{group.n_bytes / 1e6:.1f} MB, at the Batch API's price. Replies come within 24 "
            "hours. This process waits for them; it may be stopped at any time, and the same "
            f"command run again collects them ({self._ledger.path(sent)})"
        )
        return sent

    async def _resume(self, group: Group, sent: SentBatch) -> None:
        """Answer requests from a batch that an earlier run submitted, or was about to."""
        if sent.batch_id is None:
            sent.batch_id = await self._api.find(sent.name)
        if sent.batch_id is None:
            self._ledger.forget(sent, list(sent.ids))
            await self._submit(group)
            return
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(sent.created_s))
        logger.info(
            f"waiting for batch {sent.batch_id} of {len(sent.ids):,} requests to {sent.model}, "
            f"submitted {moment} by an earlier run"
        )
        try:
            await self._answer(sent, await self._wait(sent))
        except JudgeStoppedError as error:
            raise JudgeStoppedError(
                f"{error}. Batch {sent.batch_id} was submitted by an earlier run: use the key it "
                f"was submitted with; or delete {self._ledger.path(sent)} to submit, and pay for, "
                "its requests again"
            ) from error

    async def _wait(self, sent: SentBatch) -> State:
        wait_s, told = self._pace.first_poll_s, ""
        answered_s = time.monotonic()
        while True:
            try:
                state = await self._api.state(str(sent.batch_id))
            except JudgeUnavailableError as error:
                if time.monotonic() - answered_s > self._pace.patience_s:
                    raise JudgeStoppedError(f"gave up on batch {sent.batch_id}: {error}") from error
                await asyncio.sleep(wait_s)
                continue
            answered_s = time.monotonic()
            status = scrub(str(state.get("status")), self._api_key)[:40]
            if status in _ENDED:
                self._accepted.discard(sent.name)
                return state
            if time.time() - sent.created_s > self._pace.most_wait_s:
                raise JudgeStoppedError(
                    f"batch {sent.batch_id} has not ended after {self._pace.most_wait_s / 3600:g} "
                    f"hours, its status is {status!r}; look at it at the provider, and run again "
                    "when it has ended"
                )
            if status != "validating":
                self._accepted.add(sent.name)
            counts = state.get("request_counts")
            done = counts.get("completed") if isinstance(counts, dict) else "?"
            text = f"batch {sent.batch_id}: {status}, {done} of {len(sent.ids)} done"
            if text != told:
                logger.info("{}", text)
                told = text
            await asyncio.sleep(wait_s)
            wait_s = min(self._pace.most_poll_s, 1.5 * wait_s)

    async def _answer(self, sent: SentBatch, state: State) -> None:
        """Answer the requests of a batch that ended, those that wait."""
        with ExitStack() as opened:
            files: list[IO[bytes]] = []
            for file_id in (state.get("output_file_id"), state.get("error_file_id")):
                if isinstance(file_id, str) and file_id:
                    files.append(opened.enter_context(SpooledTemporaryFile(16 << 20)))
                    await self._api.download(file_id, files[-1])
            outcomes = read_results(files, self._api.source)
        asked = list(sent.ids)
        failed = [i for i in asked if not isinstance(outcomes.get(i), Reply)]
        # First, so that what is asked again right away goes into another batch.
        self._ledger.forget(sent, failed)
        for custom_id in asked:
            self._settle(custom_id, outcomes.get(custom_id) or missing_of(state, self._api_key))
        logger.info(
            f"collected batch {sent.batch_id} ({state.get('status')}): "
            f"{len(asked) - len(failed):,} replies, {len(failed):,} requests without"
        )

    def _settle(self, custom_id: str, outcome: Outcome) -> None:
        future = self._waiting.pop(custom_id, None)
        if future is None or future.done():
            return
        if isinstance(outcome, Reply):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)
            future.exception()  # seen: who asked may be gone
