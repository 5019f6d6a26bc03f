"""OpenAI's Batch API: files, batches and their results."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from lmms_eval_captions.judges.endpoint.client import CONNECT_TIMEOUT_S, MOST_BYTES, no_reply
from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.failures import FORBIDDEN, MOST_WORDS, Source, failure
from lmms_eval_captions.judges.endpoint.replies import NOT_READABLE
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.urls import endpoint_name, proxy_of, scrub
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

Outcome = Reply | JudgeError


def read_results(files: Iterable[IO[bytes]], source: Source) -> dict[str, Outcome]:
    """Return the outcomes by ``custom_id``; a reply counts more than an error."""
    outcomes: dict[str, Outcome] = {}
    for file in files:
        for line in _lines(file):
            try:
                record = json.loads(source.text(line, strictly=True))
                custom_id = record["custom_id"]
                outcome = _outcome(record, source)
                earlier = outcomes.get(custom_id)
                if isinstance(custom_id, str) and outcome and not isinstance(earlier, Reply):
                    outcomes[custom_id] = outcome
            except NOT_READABLE:
                continue
    return outcomes


def missing_of(state: Mapping[str, object], api_key: str | None) -> JudgeError:
    """Return the error of a request that a batch that ended has nothing of."""
    status, batch = state.get("status"), f"batch {state.get('id')}"
    if status == "failed":
        return JudgeStoppedError(f"{batch} was refused: {words_of(state, api_key)}")
    if status == "cancelled":
        return JudgeStoppedError(
            f"{batch} was cancelled at the provider; replies that were there already are kept, run "
            "again to submit the rest"
        )
    text = f"{batch} ended ({status}) without a reply to this request"
    return JudgeUnavailableError(text, may_be_billed=False, kind="a batch without a reply")


def errors_of(state: Mapping[str, object]) -> list[tuple[str, str]]:
    """Code and words of each error of a batch that was refused as a whole."""
    errors = state.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    entries = data if isinstance(data, list) else []
    return [(str(e.get("code")), str(e.get("message"))) for e in entries if isinstance(e, dict)]


def words_of(state: Mapping[str, object], api_key: str | None) -> str:
    """The first errors of a batch in one line, without the key."""
    texts = [f"{code}: {message}" for code, message in errors_of(state)[:3]]
    return scrub("; ".join(texts), api_key)[:MOST_WORDS] or "the provider gives no reason"


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(MOST_BYTES + 1):
        if len(line) <= MOST_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MOST_BYTES)


def _outcome(record: Mapping[str, dict[str, Any]], source: Source) -> Outcome | None:
    response = record.get("response")
    if not response:
        refusal = record["error"]
        if refusal.get("code") in ("batch_expired", "batch_cancelled"):
            return None
        words = scrub(f"{refusal.get('code')}: {refusal.get('message')}", source.api_key)
        return JudgeRequestError(f"the batch has no reply to this request: {words[:MOST_WORDS]}")
    status = int(str(response["status_code"]))
    raw = json.dumps(response["body"]).encode("ascii")
    if status == 200:
        try:
            return OPENAI.read_reply(raw, source)
        except JudgeUnavailableError as unreadable:
            return unreadable
    error = failure(status, raw, source, headers={})
    if isinstance(error, JudgeUnavailableError):
        # Not as a rate limit: batches do not slow single requests down.
        return JudgeUnavailableError(str(error), may_be_billed=False, kind=error.kind)
    # The key was good enough for the batch: a 403 is about this input, which was flagged.
    is_flagged = status == 403
    return JudgeRequestError(str(error).removesuffix(f" ({FORBIDDEN})")) if is_flagged else error


NAME_FIELD: Final = "lmms_eval_captions"
"""Metadata field of a batch that holds our name for it."""
_NO_KEY: Final = "none"
_TIMEOUT_S: Final = 900.0
_N_RETRIES: Final = 5

State = Mapping[str, object]


class BatchApi:
    """Files and batches of one endpoint; must be made inside the event loop."""

    def __init__(self, url: str, api_key: str | None) -> None:
        # Half a second of imports, for this mode alone.
        import openai

        self.source = Source(url, api_key, endpoint=endpoint_name(url))
        self._openai = openai
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        self._client = openai.AsyncOpenAI(
            api_key=api_key or _NO_KEY,
            base_url=urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])),
            timeout=openai.Timeout(_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            max_retries=_N_RETRIES,
            http_client=openai.DefaultAsyncHttpxClient(
                auth=(user, password) if user else None,
                event_hooks={"request": [_without_placeholder]},
                follow_redirects=False,
                proxy=proxy_of(url),
                # No proxy or password of the environment, as for single requests.
                trust_env=False,
                verify=ssl.create_default_context(),
            ),
        )
        # OPENAI_ORG_ID and OPENAI_CUSTOM_HEADERS, which may hold another key.
        self._client.organization = self._client.project = None
        self._client._custom_headers = {}
        for name in ("openai", "httpx", "httpcore", "httpx2", "httpcore2"):
            # They write a line per poll, and at their finest headers, which may echo the key.
            logging.getLogger(name).setLevel(logging.WARNING)

    async def upload(self, content: bytes, name: str) -> str:
        """Upload the requests of a batch, one JSON object per line; returns the file's id."""
        try:
            with self._classified():
                file = (name, content, "application/jsonl")
                return str((await self._client.files.create(file=file, purpose="batch")).id)
        except JudgeStoppedError as error:
            raise JudgeStoppedError(
                f"{error}. The judge was to be asked through its Batch API "
                "(LMMS_CAPTIONS_JUDGE_MODE=batch); unset it if the endpoint has none"
            ) from error

    async def create(self, file_id: str, name: str) -> str:
        """Make a batch of an uploaded file, once; returns its id."""
        once = self._client.with_options(max_retries=0)
        for attempt in range(_N_RETRIES + 1):
            try:
                with self._classified():
                    batch = await once.batches.create(
                        input_file_id=file_id,
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={NAME_FIELD: name},
                    )
                return str(batch.id)
            except JudgeUnavailableError:
                # The answer may be lost and the batch exist: a second one costs twice.
                found = await self.find(name)
                if found is not None:
                    return found
                if attempt == _N_RETRIES:
                    raise
        raise AssertionError

    async def find(self, name: str) -> str | None:
        """Return the id of the latest batch with our name, ``None`` if there is none."""
        n_left = 5000
        with self._classified():
            async for batch in self._client.batches.list(limit=100):
                n_left -= 1
                if (batch.metadata or {}).get(NAME_FIELD) == name:
                    return str(batch.id)
                if not n_left:
                    break
        return None

    async def state(self, batch_id: str) -> State:
        """Return a batch as it is now."""
        with self._classified():
            batch = await self._client.batches.retrieve(batch_id)
        if not hasattr(batch, "to_dict"):
            raise JudgeUnavailableError(
                f"expected a batch from {self.source.shown}, got {batch!r:.80}"
            )
        return dict(batch.to_dict(warnings=False))

    async def download(self, file_id: str, to: IO[bytes]) -> None:
        """Write a file of 4 GB at most into another one, and go to its start."""
        with self._classified():
            async with self._client.files.with_streaming_response.content(file_id) as response:
                async for piece in response.iter_bytes():
                    to.write(piece)
                    if to.tell() > 4 << 30:
                        raise JudgeStoppedError(f"file {file_id} has more than 4 GB")
        to.seek(0)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    @contextmanager
    def _classified(self) -> Iterator[None]:
        openai = self._openai
        try:
            yield
        except openai.APIStatusError as error:
            answer = error.response
            raw = answer.content if answer.is_closed else b""
            raise failure(error.status_code, raw, self.source, headers=answer.headers) from None
        except (openai.APIError, OSError) as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if type(cause).__name__ == "ProxyError" and "407" in str(cause):
                raise JudgeStoppedError(
                    f"no reply from {self.source.shown}: the proxy answered 407"
                ) from None
            raise no_reply(cause, self.source, timeout_s=_TIMEOUT_S) from None


async def _without_placeholder(request: Any) -> None:  # noqa: ANN401 - of httpx
    """Send no key if there is none: the package insists on one."""
    if request.headers.get("Authorization") == f"Bearer {_NO_KEY}":
        del request.headers["Authorization"]
