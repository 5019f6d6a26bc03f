"""The errors that answers over HTTP stand for, whatever API they come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from lmms_eval_captions.judges.endpoint.answers.completion import status_of
from lmms_eval_captions.judges.endpoint.answers.moderation import is_about_content
from lmms_eval_captions.judges.endpoint.answers.quotas import retry_after_s
from lmms_eval_captions.judges.endpoint.redaction import answer_text, scrub
from lmms_eval_captions.judges.endpoint.roles import Api, Role, role_words
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
    ParameterRefusedError,
)

FORBIDDEN: Final = "the key may not use this model or endpoint"
"""What is said of a 403 that stops everything, and not of one that is about what was asked."""
HINTS: Final[Mapping[int, str]] = {
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
MOST_WORDS: Final = 300
"""Characters of a server's words in a message."""
_REDIRECTS: Final = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True)
class ApiWords:
    """What one API's errors say, beside their status."""

    api: Api
    path: str
    """What follows a base URL, which a redirect names as well."""
    refused_parameter: Callable[[str], str | None]
    """The parameter that the words of a refusal are about, ``None`` for none."""
    is_out_of_money: Callable[[int, bytes], bool]
    """Whether an answer of that status and body says that nothing more can be paid."""


def failure(
    answer: tuple[int, bytes],
    url: str,
    *,
    words: ApiWords,
    headers: Mapping[str, str],
    api_key: str | None,
    answered: str | None = None,
    role: Role = "judge",
) -> JudgeUnavailableError | JudgeRequestError | JudgeStoppedError:
    """The error that an answer other than 200 is.

    Args:
        answer: HTTP status and body.
        url: Where from, for messages.
        words: Those of the API.
        headers: Of the answer.
        api_key: What must not be in the message, should the server echo it.
        answered: What came, in words, where that is not the status.
        role: What is asked, for messages.
    """
    error = _failure(
        answer, url, words=words, headers=headers, api_key=api_key, answered=answered, role=role
    )
    error.status = answer[0]
    return error


def _failure(
    answer: tuple[int, bytes],
    url: str,
    *,
    words: ApiWords,
    headers: Mapping[str, str],
    api_key: str | None,
    answered: str | None,
    role: Role,
) -> JudgeUnavailableError | JudgeRequestError | JudgeStoppedError:
    status, raw = answer
    text = answer_text(raw, api_key, url)
    said = _server_words(text, api_key)
    message = f"{redact_url(url)} answered {answered or status}: {said}"
    if status in _REDIRECTS:
        goal = _goal(url, headers, api_key)
        return JudgeStoppedError(
            f"{redact_url(url)} answered {status}, {_redirected(goal, words, role)}"
        )
    if words.is_out_of_money(status, raw):
        return JudgeStoppedError(f"{message} ({HINTS[402]})")
    parameter = words.refused_parameter(said) if status in _REFUSING else None
    if parameter is not None:
        return ParameterRefusedError(message, parameter)
    if status in HINTS and not (status == 403 and is_about_content(text)):
        hint = HINTS[status].format(role=role_words(role, words.api))
        return JudgeStoppedError(f"{message} ({hint})")
    if status in _PASSING or status >= 500:
        return JudgeUnavailableError(
            message,
            retry_after_s=retry_after_s(headers),
            rate_limited=status == 429,
            timed_out=status in _TIMED_OUT,
            may_be_billed=status in _MAYBE_ANSWERED,
            kind=f"HTTP {status}",
        )
    return JudgeRequestError(message)


def error_within(
    error: object, url: str, *, words: ApiWords, api_key: str | None, role: Role
) -> JudgeError:
    """The error that stands in an answer of 200: what its code or type says, else it can pass."""
    raw = json.dumps({"error": error}).encode("ascii")
    status = status_of(error)
    if status is None:
        said = _server_words(raw.decode("ascii"), api_key)
        return JudgeUnavailableError(
            f"{redact_url(url)} answered 200 with an error: {said}",
            kind="an error in place of a reply",
        )
    return failure(
        (status, raw),
        url,
        words=words,
        headers={},
        api_key=api_key,
        answered=f"200 with an error {status}",
        role=role,
    )


def no_reply_in(raw: bytes, url: str, api_key: str | None, expected: str) -> JudgeUnavailableError:
    """The error that an answer of 200 is which cannot be read.

    Args:
        raw: Body as it came.
        url: Where from.
        api_key: What must not be in the message.
        expected: What was expected, in words.
    """
    said = scrub(answer_text(raw, api_key, url), api_key)[:MOST_WORDS]
    return JudgeUnavailableError(
        f"expected {expected} from {redact_url(url)}, got {said!r}",
        kind=f"no {expected.removeprefix('a ')}",
    )


def _goal(url: str, headers: Mapping[str, str], api_key: str | None) -> str:
    """Where a redirect points to, without secrets; empty where that is nowhere."""
    try:
        goal = redact_url(urljoin(url, headers.get("Location", "")))
    except ValueError:
        goal = ""
    return scrub(goal, api_key, url)


def _redirected(goal: str, words: ApiWords, role: Role) -> str:
    """Where a redirect points to, and what to do about it."""
    of_role = role_words(role, words.api)
    return (
        f"a redirect to {goal.removesuffix(words.path)[:MOST_WORDS]!r}, which is not followed: an "
        f"answer counts from the {of_role.who}'s own address alone, and the key goes nowhere else. "
        f"If that is the {of_role.who}, set {of_role.url} to it"
    )


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
    return " ".join(scrub(str(text), api_key).split())[:MOST_WORDS] or "(empty response)"
