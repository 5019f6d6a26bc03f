"""Chat completions over HTTP: one call in, one reply or one classified error out.

The official SDK costs 2-3 ms of CPU a call, a bare aiohttp session a tenth of that, and a full VDC
is 193,650 calls: so the hot path is a bare session.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final

import aiohttp
from yarl import URL

from lmms_eval_captions.judges.errors import (
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
    ParameterRefusedError,
)
from lmms_eval_captions.judges.logprobs import NumberToken, number_tokens
from lmms_eval_captions.judges.redaction import answer_text, redactor, scrub
from lmms_eval_captions.judges.refusals import refused_parameter
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.judges.settings import Key, proxy_of, redact_url

_HINTS: Final = {
    401: "check OPENAI_API_KEY",
    402: "the account has nothing left to pay with",
    403: "the key may not use this model or endpoint",
    404: "check the model's name (LMMS_CAPTIONS_JUDGE) and LMMS_CAPTIONS_JUDGE_URL",
    407: "check the user and password in the environment's proxy",
}
_PASSING: Final = {408, 425, 429}
_MAYBE_ANSWERED: Final = {408, 502, 504, 524}
"""Statuses of a gateway that may hide an answer, and its bill."""
_REFUSING: Final = {400, 403, 404, 422}
CONNECT_TIMEOUT_S: Final = 20.0
"""Seconds until a connection must be there."""
_DOWN_FOR_S: Final = 10.0
_WORDS: Final = 300
_NOT_READABLE: Final = (
    ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
"""What a body of another shape raises; the last two an infinite count and JSON of great depth."""


@dataclass(slots=True)
class _Replica:
    url: str
    parsed: URL
    proxy: str | None
    session: aiohttp.ClientSession
    in_flight: int = 0
    down_until_s: float = 0.0


class ChatClient:
    """An OpenAI-compatible endpoint with one or more replicas; must be made inside the event loop.

    Args:
        urls: Base URLs, e.g. ``http://127.0.0.1:8000/v1``; replicas of one another.
        api_key: Bearer token or ``None``.
    """

    def __init__(self, urls: tuple[str, ...], api_key: str | None) -> None:
        self._api_key = api_key
        headers = {"Content-Type": "application/json"}
        if api_key:
            headers["Authorization"] = Key(f"Bearer {api_key}")
        # aiohttp's ``trust_env`` asks a thread for the proxy at every call, and refuses to send our
        # key where a .netrc names the host.
        self._replicas = [
            _Replica(
                url=f"{url}/chat/completions",
                parsed=URL(f"{url}/chat/completions"),
                proxy=proxy_of(url),
                session=aiohttp.ClientSession(
                    headers=headers,
                    connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                    cookie_jar=aiohttp.DummyCookieJar(),
                ),
            )
            for url in urls
        ]

    async def complete(
        self,
        body: bytes,
        *,
        timeout_s: float,
        asked: bytes = b"",  # noqa: ARG002 - of clients that gather requests
    ) -> Reply:
        """Send one chat completion to the replica that is least busy.

        Args:
            body: JSON of the request.
            timeout_s: Seconds until the reply must be complete.
            asked: Not used: every call is a request of its own.

        Raises:
            JudgeUnavailableError: What can pass: 429, 5xx, time-out, dropped or garbled response.
            JudgeRequestError: The endpoint refuses this request.
            JudgeStoppedError: The endpoint refuses them all (401, 403, 404).
        """
        now_s = time.monotonic()
        replica = min(self._replicas, key=lambda r: (r.down_until_s > now_s, r.in_flight))
        replica.in_flight += 1
        try:
            status, headers, raw = await self._post(replica, body, timeout_s)
        finally:
            replica.in_flight -= 1
        if status == 200:
            replica.down_until_s = 0.0
            return read_completion(raw, replica.url, self._api_key)
        if status >= 500:
            # What fails at once is the least busy of all: it must not draw every request.
            replica.down_until_s = time.monotonic() + _DOWN_FOR_S
        raise failure(status, raw, replica.url, headers=headers, api_key=self._api_key)

    async def close(self) -> None:
        """Close every connection."""
        for replica in self._replicas:
            await replica.session.close()

    async def _post(
        self, replica: _Replica, body: bytes, timeout_s: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        post = replica.session.post(
            replica.parsed, data=body, timeout=_timeout(timeout_s), proxy=replica.proxy
        )
        try:
            async with post as response:
                return response.status, response.headers, await response.read()
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            replica.down_until_s = time.monotonic() + _DOWN_FOR_S
            raise no_reply(
                error, replica.url, timeout_s=timeout_s, api_key=self._api_key
            ) from error


@cache
def _timeout(total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S)


def read_completion(raw: bytes, url: str, api_key: str | None) -> Reply:
    """The reply in a chat completion.

    Args:
        raw: JSON as it came.
        url: Where from, for messages.
        api_key: What must not be in the reply, should the server echo it.

    Raises:
        JudgeUnavailableError: If it is no chat completion.
    """
    answer = answer_text(raw, api_key, url)
    try:
        payload = json.loads(answer)
        choice = payload["choices"][0]
        text = choice["message"]["content"]
        usage = payload.get("usage") or {}
        logprobs = choice.get("logprobs")
        words = text if isinstance(text, str) else ""
        reply = Reply(
            text=words,
            finish_reason=choice.get("finish_reason"),
            input_tokens=int(usage.get("prompt_tokens") or 0),
            output_tokens=int(usage.get("completion_tokens") or 0),
            logprobs=_without_key(logprobs, words, api_key) if logprobs else None,
        )
    except _NOT_READABLE as error:
        words = scrub(answer, api_key)
        raise JudgeUnavailableError(
            f"expected a chat completion from {redact_url(url)}, got {words[:_WORDS]!r}"
        ) from error
    return reply


def no_reply(
    error: Exception, url: str, *, timeout_s: float, api_key: str | None
) -> JudgeUnavailableError | JudgeStoppedError:
    """The error that a connection's failure is.

    Args:
        error: What aiohttp raised.
        url: Where to.
        timeout_s: Seconds until the reply had to be complete.
        api_key: What must not be in the message.
    """
    start = f"no reply from {redact_url(url)}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return JudgeUnavailableError(
            f"{start}: not connected within {min(timeout_s, CONNECT_TIMEOUT_S):g} s",
            may_be_billed=False,
        )
    if isinstance(error, asyncio.TimeoutError):
        return JudgeUnavailableError(f"{start} within {timeout_s:g} s")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        # Its own text holds the proxy's URL, with user and password.
        words = f"the proxy answered {error.status}"
        if error.status == 407:
            return JudgeStoppedError(f"{start}: {words} ({_HINTS[407]})")
        return JudgeUnavailableError(f"{start}: {words}", may_be_billed=False)
    return JudgeUnavailableError(
        f"{start}: {scrub(str(error), api_key, url) or type(error).__name__}",
        may_be_billed=not isinstance(error, aiohttp.ClientConnectorError),
    )


def failure(
    status: int, raw: bytes, url: str, *, headers: Mapping[str, str], api_key: str | None
) -> JudgeUnavailableError | JudgeRequestError | JudgeStoppedError:
    """The error that an answer other than 200 is.

    Args:
        status: HTTP status.
        raw: Body of the answer.
        url: Where from, for messages.
        headers: Of the answer.
        api_key: What must not be in the message, should the server echo it.
    """
    words = _server_words(answer_text(raw, api_key, url), api_key)
    message = f"{redact_url(url)} answered {status}: {words}"
    parameter = refused_parameter(words) if status in _REFUSING else None
    if parameter is not None:
        return ParameterRefusedError(message, parameter)
    if status in _HINTS:
        return JudgeStoppedError(f"{message} ({_HINTS[status]})")
    if status == 429 and b"insufficient_quota" in raw:
        return JudgeStoppedError(f"{message} ({_HINTS[402]})")
    if status in _PASSING or status >= 500:
        return JudgeUnavailableError(
            message,
            retry_after_s=_retry_after_s(headers),
            rate_limited=status == 429,
            may_be_billed=status in _MAYBE_ANSWERED,
        )
    return JudgeRequestError(message)


def _without_key(
    logprobs: object, text: str, api_key: str | None
) -> tuple[NumberToken, ...] | None:
    """The tokens that write a reply's numbers; none where they hold the key, spelt as bytes."""
    tokens = number_tokens(logprobs, text)
    if not tokens:
        return tokens
    written = "".join(token.text for token in tokens)
    shown = "\n".join([written, *(name for token in tokens for name in token.alternatives)])
    return tokens if redactor(api_key).text(shown) == shown else None


def _server_words(text: str, api_key: str | None) -> str:
    """The human part of an error body, without the key, shortened."""
    text = text.strip()
    try:
        payload = json.loads(text)
        error = payload.get("error", payload) if isinstance(payload, dict) else payload
        text = error.get("message") or text if isinstance(error, dict) else str(error)
    except (ValueError, RecursionError):
        pass
    # Shortened last: half a key must not stay.
    return " ".join(scrub(str(text), api_key).split())[:_WORDS] or "(empty response)"


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds of a ``Retry-After`` header, which holds seconds or a date."""
    value = headers.get("Retry-After")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
