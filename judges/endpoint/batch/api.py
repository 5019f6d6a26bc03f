"""The provider's Batch API over HTTP: files and batches, each call tried again while it may pass.

The endpoints are five small requests; sending them through the session type of the hot path keeps
one place that classifies answers and keeps the key out of texts.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, Final

import aiohttp
from loguru import logger

from lmms_eval_captions.judges.endpoint.answers.answers import failure, no_reply
from lmms_eval_captions.judges.endpoint.endpoint import Key
from lmms_eval_captions.judges.endpoint.http.wire import (
    open_session,
    read_answer,
    save_answer,
)
from lmms_eval_captions.judges.endpoint.redaction import answer_text, scrub
from lmms_eval_captions.judges.endpoint.urls import proxy_of
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError

NAME_FIELD: Final = "lmms_eval_captions"
"""Metadata of a batch that holds our name for it."""
ENDPOINT: Final = "/v1/chat/completions"
_TIMEOUT_S: Final = 900.0
_MAX_WAIT_S: Final = 60.0
_PAGE: Final = 100
_MOST_PAGES: Final = 50
_MOST_IN_MEMORY_BYTES: Final = 16 * 2**20
"""Of a file that is downloaded; a larger one goes to disk."""

State = Mapping[str, object]
"""A batch as the provider describes it."""


class BatchApi:
    """Files and batches of one endpoint; must be made inside the event loop.

    Args:
        url: Base URL, e.g. ``https://api.openai.com/v1``.
        api_key: Bearer token or ``None``.
        patience_s: How long one call is tried while it fails in a way that can pass.
        backoff_s: Wait after the first failure; doubles with each.
    """

    def __init__(
        self, url: str, api_key: str | None, *, patience_s: float, backoff_s: float
    ) -> None:
        self.url = url
        self._api_key = api_key
        self._patience_s = patience_s
        self._backoff_s = backoff_s
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        self._session = open_session(
            {"Authorization": Key(f"Bearer {api_key}")} if api_key else {},
            timeout_s=_TIMEOUT_S,
        )
        self._proxy = proxy_of(url)

    async def upload(self, content: bytes, name: str) -> str:
        """Upload the requests of a batch, a JSON object a line; returns the file's id.

        Raises:
            JudgeRequestError: If the file is refused.
            JudgeStoppedError: If nothing more can be asked; also an endpoint without a Batch API.
        """
        deadline_s, n_failed = time.monotonic() + self._patience_s, 0
        while True:
            form = aiohttp.FormData()
            form.add_field("purpose", "batch")
            form.add_field("file", content, filename=name, content_type="application/jsonl")
            try:
                return _id(self._object(await self._once("POST", "/files", form)))
            except JudgeUnavailableError as error:
                n_failed += 1
                await self._pause(n_failed, deadline_s, error)
            except JudgeStoppedError as error:
                raise JudgeStoppedError(
                    f"{error}. The judge was to be asked through its Batch API "
                    "(LMMS_CAPTIONS_JUDGE_MODE=batch); unset it where the endpoint has none"
                ) from error

    async def create(self, file_id: str, name: str) -> str:
        """Make a batch of an uploaded file, once whatever happens on the way; returns its id.

        Raises:
            JudgeRequestError: If the batch is refused.
            JudgeStoppedError: If nothing more can be asked.
        """
        order = {
            "input_file_id": file_id,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {NAME_FIELD: name},
        }
        deadline_s, n_failed = time.monotonic() + self._patience_s, 0
        while True:
            try:
                return _id(self._object(await self._once("POST", "/batches", order)))
            except JudgeUnavailableError as error:
                n_failed += 1
                await self._pause(n_failed, deadline_s, error)
                # The answer may have been lost and the batch be there: a second one costs twice.
                found = await self.find(name)
                if found is not None:
                    return found

    async def find(self, name: str) -> str | None:
        """Id of the batch that has our name, ``None`` where there is none.

        Raises:
            JudgeStoppedError: If the batches cannot be listed.
        """
        after = ""
        for _ in range(_MOST_PAGES):
            page = self._object(await self._get(f"/batches?limit={_PAGE}{after}"))
            data = page.get("data")
            batches = [b for b in data if isinstance(b, dict)] if isinstance(data, list) else []
            for batch in batches:
                metadata = batch.get("metadata")
                if isinstance(metadata, dict) and metadata.get(NAME_FIELD) == name:
                    return _id(batch)
            if not page.get("has_more") or not batches:
                break
            after = f"&after={_id(batches[-1])}"
        return None

    async def state(self, batch_id: str) -> State:
        """A batch as it is now; what is none, such as a gateway's page, is asked for again.

        Raises:
            JudgeStoppedError: If nothing more can be asked.
        """
        deadline_s, n_failed = time.monotonic() + self._patience_s, 0
        while True:
            raw = await self._get(f"/batches/{batch_id}")
            try:
                return self._object(raw)
            except JudgeStoppedError as error:
                n_failed += 1
                await self._pause(n_failed, deadline_s, JudgeUnavailableError(str(error)))

    async def content(self, file_id: str) -> IO[bytes]:
        """A file, of 4 GB at most, on disk where it is large; to be closed by the caller."""
        file = SpooledTemporaryFile(_MOST_IN_MEMORY_BYTES)  # noqa: SIM115 - the caller's
        try:
            await self._get(f"/files/{file_id}/content", file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def _get(self, path: str, file: IO[bytes] | None = None) -> bytes:
        deadline_s, n_failed = time.monotonic() + self._patience_s, 0
        while True:
            try:
                return await self._once("GET", path, file=file)
            except JudgeUnavailableError as error:
                n_failed += 1
                await self._pause(n_failed, deadline_s, error)

    async def _pause(self, n_failed: int, deadline_s: float, error: JudgeUnavailableError) -> None:
        if time.monotonic() > deadline_s:
            raise JudgeStoppedError(f"gave up after {n_failed} attempts: {error}") from error
        if n_failed == 1:
            logger.warning("{}; tried again for {:,.0f} s", error, self._patience_s)
        wait_s = min(_MAX_WAIT_S, self._backoff_s * 2 ** min(n_failed - 1, 16))
        asked_s = min(error.retry_after_s or 0.0, self._patience_s)
        await asyncio.sleep(max(wait_s * self._random.uniform(0.5, 1.0), asked_s))

    async def _once(
        self,
        method: str,
        path: str,
        content: aiohttp.FormData | Mapping[str, object] | None = None,
        file: IO[bytes] | None = None,
    ) -> bytes:
        """The body of an answer of 200; empty where it goes into a file."""
        url = f"{self.url}{path}"
        # aiohttp's own argument for JSON would override the type of a form.
        body = {"data": content} if isinstance(content, aiohttp.FormData) else {"json": content}
        try:
            async with self._session.request(
                method,
                url,
                proxy=self._proxy,
                allow_redirects=False,
                **(body if content is not None else {}),
            ) as response:
                if file is not None and response.status == 200:
                    file.seek(0)
                    file.truncate()
                    await save_answer(response, file)
                    return b""
                raw = await read_answer(response)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise no_reply(error, url, timeout_s=_TIMEOUT_S, api_key=self._api_key) from error
        if response.status != 200:
            raise failure(
                response.status, raw, url, headers=response.headers, api_key=self._api_key
            )
        return raw

    def _object(self, raw: bytes) -> State:
        text = answer_text(raw, self._api_key, self.url)
        words = scrub(text, self._api_key)[:80]
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise JudgeStoppedError(f"expected JSON of the Batch API, got {words!r}") from error
        if not isinstance(value, dict):
            raise JudgeStoppedError(f"expected an object of the Batch API, got {words!r}")
        return value


def _id(described: State) -> str:
    """The provider's id of a file or a batch.

    Raises:
        KeyError: If it has none.
        TypeError: If it is no text.
    """
    value = described["id"]
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected an id, got {value!r:.80}")
    return value
