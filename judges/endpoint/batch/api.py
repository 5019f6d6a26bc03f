"""The provider's Batch API through the ``openai`` package, each call tried while it may pass.

The package's own retries are off: they end within seconds, where an outage of hours is waited for,
and would make a second batch where the answer to the first was lost. What an answer says is bounded
and classified before the package reads it, as it is for single requests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from importlib import import_module
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp
from loguru import logger

from lmms_eval_captions.judges.endpoint.answers.failures import HINTS
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.http.no_reply import no_reply
from lmms_eval_captions.judges.endpoint.http.wire import (
    CONNECT_TIMEOUT_S,
    MOST_BYTES,
    MOST_ERROR_BYTES,
    MOST_FILE_BYTES,
    save_answer,
)
from lmms_eval_captions.judges.endpoint.redaction import answer_text, scrub
from lmms_eval_captions.judges.endpoint.urls import proxy_of
from lmms_eval_captions.judges.errors import JudgeError, JudgeStoppedError, JudgeUnavailableError

if TYPE_CHECKING:
    from openai import AsyncAPIResponse

NAME_FIELD: Final = "lmms_eval_captions"
"""Metadata of a batch that holds our name for it."""
ENDPOINT: Final = "/v1/chat/completions"
_NO_KEY: Final = "none"
_TIMEOUT_S: Final = 900.0
_MAX_WAIT_S: Final = 60.0
_PAGE: Final = 100
_MOST_PAGES: Final = 50
_MOST_IN_MEMORY_BYTES: Final = 16 * 2**20
"""Of a file that is downloaded; a larger one goes to disk."""

State = Mapping[str, object]
"""A batch as the provider describes it."""
Call = Callable[[], "AbstractAsyncContextManager[AsyncAPIResponse[Any]]"]
"""A call of the package whose answer is still to be read."""


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
        # Half a second of imports, for this mode alone.
        import openai

        self.url = url
        self._api_key = api_key
        self._patience_s = patience_s
        self._backoff_s = backoff_s
        self._random = random.Random(0)  # noqa: S311 - jitter of waits
        # ``httpx``; ``httpx2`` from the package's third version on.
        base = openai.DefaultAsyncHttpxClient.__bases__[0]
        httpx = import_module(base.__module__.partition(".")[0])
        # Also what a full disk says to a file that is downloaded.
        self._failures = (
            openai.APIConnectionError, httpx.HTTPError, aiohttp.ClientPayloadError, OSError,
        )  # fmt: skip
        for name in ("openai", httpx.__name__, httpx.__name__.replace("x", "core", 1)):
            # They write a line per poll, and at their finest headers, which may echo the key.
            logging.getLogger(name).setLevel(logging.WARNING)
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        plain_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self._client = openai.AsyncOpenAI(
            api_key=api_key or _NO_KEY,
            base_url=plain_url,
            timeout=openai.Timeout(_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                auth=(user, password) if user else None,
                event_hooks={"request": [_without_placeholder], "response": [self._check]},
                follow_redirects=False,
                proxy=proxy_of(url),
                # No proxy or password but those that are ours.
                trust_env=False,
                # Certificates as for single requests: the system's, or those of SSL_CERT_FILE.
                verify=ssl.create_default_context(),
            ),
        )
        # Of the environment otherwise: headers that single requests have none of, another key
        # among them (OPENAI_CUSTOM_HEADERS).
        self._client.organization = self._client.project = None
        self._client._custom_headers = {}

    async def upload(self, content: bytes, name: str) -> str:
        """Upload the requests of a batch, one JSON object per line; returns the file's id.

        Raises:
            JudgeRequestError: If the file is refused.
            JudgeStoppedError: If nothing more can be asked; also an endpoint without a Batch API.
        """
        file = (name, content, "application/jsonl")
        files = self._client.files.with_streaming_response
        try:
            return _id(await self._object(lambda: files.create(file=file, purpose="batch")))
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
        batches = self._client.batches.with_streaming_response
        pause = self._pauses()
        while True:
            try:
                raw = await self._once(
                    lambda: batches.create(
                        input_file_id=file_id,
                        endpoint=ENDPOINT,
                        completion_window="24h",
                        metadata={NAME_FIELD: name},
                    )
                )
                return _id(self._parsed(raw))
            except JudgeUnavailableError as error:
                await pause(error)
                # The answer may have been lost and the batch be there: a second one costs twice.
                batch_id = await self.find(name)
                if batch_id is not None:
                    return batch_id

    async def find(self, name: str) -> str | None:
        """Id of the batch that has our name, ``None`` where there is none.

        Raises:
            JudgeStoppedError: If the batches cannot be listed.
        """
        listed = self._client.batches.with_streaming_response
        after: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = await self._object(partial(listed.list, limit=_PAGE, **after))
            data = page.get("data")
            batches = [b for b in data if isinstance(b, dict)] if isinstance(data, list) else []
            for batch in batches:
                metadata = batch.get("metadata")
                if isinstance(metadata, dict) and metadata.get(NAME_FIELD) == name:
                    return _id(batch)
            if not page.get("has_more") or not batches:
                break
            after = {"after": _id(batches[-1])}
        return None

    async def state(self, batch_id: str) -> State:
        """A batch as it is now; what is none, such as a gateway's page, is asked for again.

        Raises:
            JudgeStoppedError: If nothing more can be asked.
        """
        batches = self._client.batches.with_streaming_response
        pause = self._pauses()
        while True:
            raw = await self._patiently(lambda: batches.retrieve(batch_id))
            try:
                return self._parsed(raw)
            except JudgeStoppedError as error:
                await pause(JudgeUnavailableError(str(error)))

    async def content(self, file_id: str) -> IO[bytes]:
        """A file, of 4 GB at most, on disk where it is large; to be closed by the caller."""
        files = self._client.files.with_streaming_response
        file = SpooledTemporaryFile(_MOST_IN_MEMORY_BYTES)  # noqa: SIM115 - the caller's
        try:
            await self._patiently(lambda: files.content(file_id), file)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def _object(self, call: Call) -> State:
        return self._parsed(await self._patiently(call))

    async def _patiently(self, call: Call, file: IO[bytes] | None = None) -> bytes:
        pause = self._pauses()
        while True:
            try:
                return await self._once(call, file)
            except JudgeUnavailableError as error:
                await pause(error)

    def _pauses(self) -> Callable[[JudgeUnavailableError], Any]:
        """Waits after each failure of one call, and gives up on it in the end."""
        deadline_s, n_failed = time.monotonic() + self._patience_s, 0

        async def pause(error: JudgeUnavailableError) -> None:
            nonlocal n_failed
            n_failed += 1
            if time.monotonic() > deadline_s:
                raise JudgeStoppedError(f"gave up after {n_failed} attempts: {error}") from error
            if n_failed == 1:
                logger.warning("{}; tried again for {:,.0f} s", error, self._patience_s)
            wait_s = min(_MAX_WAIT_S, self._backoff_s * 2 ** min(n_failed - 1, 16))
            asked_s = min(error.retry_after_s or 0.0, self._patience_s)
            await asyncio.sleep(max(wait_s * self._random.uniform(0.5, 1.0), asked_s))

        return pause

    async def _once(self, call: Call, file: IO[bytes] | None = None) -> bytes:
        """The body of an answer of 200; empty where it goes into a file."""
        try:
            return await asyncio.wait_for(self._answered(call, file), _TIMEOUT_S)
        except (*self._failures, asyncio.TimeoutError) as error:
            raise self._no_answer(error) from None

    async def _answered(self, call: Call, file: IO[bytes] | None) -> bytes:
        body = BytesIO()
        target, most_bytes = (body, MOST_BYTES) if file is None else (file, MOST_FILE_BYTES)
        async with call() as response:
            target.seek(0)
            target.truncate()
            await _save(response.http_response, target, most_bytes)
        return body.getvalue()

    async def _check(self, response: Any) -> None:  # noqa: ANN401 - of httpx or httpx2
        """Raise what an answer other than 200 stands for, of which no more than 64 KB are read."""
        if response.status_code == 200:
            return
        raw = BytesIO()
        with suppress(aiohttp.ClientPayloadError):
            await _save(response, raw, MOST_ERROR_BYTES)
        raise OPENAI.failure(
            response.status_code,
            raw.getvalue(),
            str(response.url),
            headers=response.headers,
            api_key=self._api_key,
        )

    def _no_answer(self, error: Exception) -> JudgeError:
        """The error that a call's failure is."""
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        if isinstance(cause, JudgeError):
            return cause
        if type(cause).__name__ == "ProxyError" and "407" in str(cause):
            return JudgeStoppedError(
                f"no reply from {self.url}: the proxy answered 407 ({HINTS[407]})"
            )
        return no_reply(cause, self.url, timeout_s=_TIMEOUT_S, api_key=self._api_key)

    def _parsed(self, raw: bytes) -> State:
        text = answer_text(raw, self._api_key, self.url)
        words = scrub(text, self._api_key)[:80]
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise JudgeStoppedError(f"expected JSON of the Batch API, got {words!r}") from error
        if not isinstance(value, dict):
            raise JudgeStoppedError(f"expected an object of the Batch API, got {words!r}")
        return value


async def _without_placeholder(request: Any) -> None:  # noqa: ANN401 - of httpx or httpx2
    """Send no key where there is none: the package insists on one."""
    if request.headers.get("Authorization") == f"Bearer {_NO_KEY}":
        del request.headers["Authorization"]


async def _save(response: Any, file: IO[bytes], most_bytes: int) -> None:  # noqa: ANN401 - as above
    encoding = response.headers.get("Content-Encoding", "")
    await save_answer(response.aiter_raw(), encoding, file, most_bytes=most_bytes)


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
