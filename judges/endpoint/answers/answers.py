"""What an answer over HTTP is: the reply that it holds, or the error that it stands for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urljoin

import aiohttp

from lmms_eval_captions.judges.endpoint.answers.completion import (
    NOT_READABLE,
    decode,
    error_in,
    finish_reason_in,
    model_in,
    status_of,
    text_in,
)
from lmms_eval_captions.judges.endpoint.answers.logprobs import NumberToken, number_tokens
from lmms_eval_captions.judges.endpoint.answers.moderation import is_about_content
from lmms_eval_captions.judges.endpoint.answers.refusals import refused_parameter
from lmms_eval_captions.judges.endpoint.answers.tokens import count_of
from lmms_eval_captions.judges.endpoint.http.wire import CONNECT_TIMEOUT_S
from lmms_eval_captions.judges.endpoint.redaction import answer_text, redactor, scrub
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.roles import WORDS, Role
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import (
    BROKEN_OFF,
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
    ParameterRefusedError,
)

FORBIDDEN: Final = "the key may not use this model or endpoint"
"""What is said of a 403 that stops everything, and not of one that is about what was asked."""
_HINTS: Final = {
    401: "check {role.key}",
    402: "the account has nothing left to pay with",
    403: FORBIDDEN,
    404: "check the model's name ({role.model}) and {role.url}",
    407: "check the user and password in the environment's proxy",
}
_PASSING: Final = {408, 425, 429}
_TIMED_OUT: Final = {408, 504, 524}
_MAYBE_ANSWERED: Final = {*_TIMED_OUT, 502}
"""Statuses of a gateway that may hide an answer, and its bill."""
_REFUSING: Final = {400, 403, 404, 422}
_WORDS: Final = 300
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_MOST_RETRY_AFTER_S: Final = 24 * 3600.0
"""A server that asks to wait for longer does not mean it."""


def read_completion(raw: bytes, url: str, api_key: str | None, *, role: Role = "judge") -> Reply:
    """The reply in a chat completion.

    Args:
        raw: JSON as it came.
        url: Where from, for messages.
        api_key: What must not be in the reply, should the server echo it.
        role: What is asked, for messages.

    Raises:
        JudgeUnavailableError: If it is no chat completion.
    """
    try:
        payload = decode(answer_text(raw, api_key, url, strictly=True))
        usage = payload.get("usage") if isinstance(payload, dict) else None
        counts = [count_of(usage, name) for name in ("prompt_tokens", "completion_tokens")]
        error = error_in(payload)
        if error is not None:
            broken_off = _error_within(error, url, api_key, role)
            in_all = isinstance(payload, dict) and (payload.get("error") or payload is error)
            if isinstance(broken_off, JudgeStoppedError) and not in_all:
                # A choice's own: this request got past the key and the model's name.
                broken_off = JudgeRequestError(str(broken_off))
            # What was counted may be billed, though it broke off.
            broken_off.may_be_billed |= any(counts)
            raise broken_off
        choice = payload["choices"][0]  # type: ignore[index]  # else it raises
        logprobs = choice.get("logprobs")
        text = text_in(choice)
        reply = Reply(
            text=text,
            finish_reason=finish_reason_in(choice),
            input_tokens=counts[0] or 0,
            output_tokens=counts[1] or 0,
            logprobs=_without_key(logprobs, text, api_key) if logprobs else None,
            is_estimated=None in counts,
            model=model_in(payload),  # type: ignore[arg-type]  # a mapping, as it has choices
        )
    except NOT_READABLE as unreadable:
        words = scrub(answer_text(raw, api_key, url), api_key)[:_WORDS]
        raise JudgeUnavailableError(
            f"expected a chat completion from {redact_url(url)}, got {words!r}",
            kind="no chat completion",
        ) from unreadable
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
            kind="not connected",
        )
    if isinstance(error, asyncio.TimeoutError):
        return JudgeUnavailableError(
            f"{start} within {timeout_s:g} s", timed_out=True, kind="time-out"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        # Its own text holds the proxy's URL, with user and password.
        words = f"the proxy answered {error.status}"
        if error.status == 407:
            return JudgeStoppedError(f"{start}: {words} ({_HINTS[407]})")
        return JudgeUnavailableError(f"{start}: {words}", may_be_billed=False, kind="not connected")
    # aiohttp's text of a response that is none holds the whole URL, with what it asks for.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    words = " ".join(scrub(text, api_key, url).split())[:_WORDS]
    is_connected = not isinstance(error, aiohttp.ClientConnectorError)
    return JudgeUnavailableError(
        f"{start}: {words or type(error).__name__}",
        may_be_billed=is_connected,
        kind=BROKEN_OFF if is_connected else "not connected",
    )


def failure(
    status: int,
    raw: bytes,
    url: str,
    *,
    headers: Mapping[str, str],
    api_key: str | None,
    answered: str | None = None,
    role: Role = "judge",
) -> JudgeUnavailableError | JudgeRequestError | JudgeStoppedError:
    """The error that an answer other than 200 is.

    Args:
        status: HTTP status.
        raw: Body of the answer.
        url: Where from, for messages.
        headers: Of the answer.
        api_key: What must not be in the message, should the server echo it.
        answered: What came, in words, where that is not the status.
        role: What is asked, for messages.
    """
    error = _failure(
        status, raw, url, headers=headers, api_key=api_key, answered=answered, role=role
    )
    error.status = status
    return error


def _failure(
    status: int,
    raw: bytes,
    url: str,
    *,
    headers: Mapping[str, str],
    api_key: str | None,
    answered: str | None,
    role: Role,
) -> JudgeUnavailableError | JudgeRequestError | JudgeStoppedError:
    text = answer_text(raw, api_key, url)
    words = _server_words(text, api_key)
    message = f"{redact_url(url)} answered {answered or status}: {words}"
    if status in _REDIRECTS:
        return JudgeStoppedError(
            f"{redact_url(url)} answered {status}, {_goal(url, headers, api_key, role)}"
        )
    parameter = refused_parameter(words) if status in _REFUSING else None
    if parameter is not None:
        return ParameterRefusedError(message, parameter)
    if status in _HINTS and not (status == 403 and is_about_content(text)):
        return JudgeStoppedError(f"{message} ({_HINTS[status].format(role=WORDS[role])})")
    if status == 429 and b"insufficient_quota" in raw:
        return JudgeStoppedError(f"{message} ({_HINTS[402]})")
    if status in _PASSING or status >= 500:
        return JudgeUnavailableError(
            message,
            retry_after_s=_retry_after_s(headers),
            rate_limited=status == 429,
            timed_out=status in _TIMED_OUT,
            may_be_billed=status in _MAYBE_ANSWERED,
            kind=f"HTTP {status}",
        )
    return JudgeRequestError(message)


def _error_within(error: object, url: str, api_key: str | None, role: Role) -> JudgeError:
    """The error that stands in an answer of 200: what its code or type says, else it can pass."""
    raw = json.dumps({"error": error}).encode("ascii")
    status = status_of(error)
    if status is None:
        words = _server_words(raw.decode("ascii"), api_key)
        return JudgeUnavailableError(
            f"{redact_url(url)} answered 200 with an error: {words}",
            kind="an error in place of a reply",
        )
    answered = f"200 with an error {status}"
    return failure(status, raw, url, headers={}, api_key=api_key, answered=answered, role=role)


def _goal(url: str, headers: Mapping[str, str], api_key: str | None, role: Role) -> str:
    """Where a redirect points to, without secrets, and what to do about it."""
    try:
        goal = redact_url(urljoin(url, headers.get("Location", "")))
    except ValueError:
        goal = ""
    words = scrub(goal, api_key, url).removesuffix("/chat/completions")[:_WORDS]
    who, setting = WORDS[role].who, WORDS[role].url
    return (
        f"a redirect to {words!r}, which is not followed: an answer counts from the {who}'s own "
        f"address alone, and the key goes nowhere else. If that is the {who}, set {setting} to it"
    )


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
    """Seconds of a ``Retry-After`` header, which holds seconds or a date; ``None`` where wild."""
    value = headers.get("Retry-After")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            return None
    # What is not a number is not below anything.
    return max(0.0, seconds) if seconds <= _MOST_RETRY_AFTER_S else None
