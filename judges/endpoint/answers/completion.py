"""Fields of a chat completion.

A reply counts as long as its text can be read. Everything beside the text is an extra: where it is
odd it is left out, and tokens are estimated (see :mod:`.tokens`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

NOT_READABLE: Final = (
    ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
"""What JSON of another shape raises; the last two an infinite count and JSON of great depth."""
_MANY_CHARACTERS: Final = 2**20
_MOST_VALUES: Final = 1_000_000
"""Values of an answer of more than a megabyte, about: as many as 6,000 tokens with 20 alternatives
each have. A value takes up to 200 bytes of memory, also where it is written in two."""
_MOST_NAME: Final = 4096
"""Characters of a model's name, which may be the path of a file."""
_TEXT_TYPES: Final = {None, "text", "output_text"}
_STATUSES: Final = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "insufficient_quota": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "server_error": 500,
    "api_error": 500,
    "overloaded_error": 529,
}
"""Codes and types of errors, and the status that they go with."""


def decode(text: str) -> object:
    """JSON as it came; a whole number of thousands of digits, which Python refuses, is infinite.

    Raises:
        ValueError: If it is no JSON, or so many values that it can be no completion.
        RecursionError: If it is nested too deeply.
    """
    if len(text) > _MANY_CHARACTERS and sum(map(text.count, (",", "[", "{"))) > _MOST_VALUES:
        raise ValueError(f"expected at most {_MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        return json.loads(text, parse_int=_whole)


def text_in(choice: Mapping[str, object]) -> str:
    """Return the text of a choice; empty if its message has none (cut, filtered, refused).

    Raises:
        LookupError: If there is no message; also others of ``NOT_READABLE``.
    """
    message: Mapping[str, object] = choice["message"]  # type: ignore[assignment]  # else it raises
    return text_of(message.get("content"))


def has_reasoning(choice: Mapping[str, object]) -> bool:
    """Return whether a choice has reasoning in a field of its own."""
    message = choice.get("message")
    fields = message if isinstance(message, dict) else {}
    return any(fields.get(name) for name in ("reasoning_content", "reasoning", "thinking"))


def finish_reason_in(choice: Mapping[str, object]) -> str | None:
    """Why a text ended, ``None`` where that is no word."""
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) else None


def model_in(payload: Mapping[str, object]) -> str | None:
    """The model that a completion says it is of, ``None`` where it says none."""
    name = payload.get("model")
    # Where the key stood in it, it is not the name that was sent.
    if not isinstance(name, str) or "[key]" in name:
        return None
    return name.strip()[:_MOST_NAME] or None


def error_in(payload: object) -> object:
    """The error that stands in the place of a reply, as some gateways send it; else ``None``.

    Beside a text it is none, unless the text is said to have ended with it.
    """
    if not isinstance(payload, dict):
        return None
    if payload.get("object") == "error":
        return payload
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    choice = choice if isinstance(choice, dict) else {}
    error = payload.get("error") or choice.get("error")
    if not error or not isinstance(error, dict | str):
        return None
    message = choice.get("message")
    text = text_of(message.get("content")) if isinstance(message, dict) else ""
    return None if text and choice.get("finish_reason") != "error" else error


def status_of(error: object) -> int | None:
    """The HTTP status that an error's code or type goes with, ``None`` where it has neither.

    >>> status_of({"code": "429"}), status_of({"type": "server_error"}), status_of("busy")
    (429, 500, None)
    """
    if not isinstance(error, Mapping):
        return None
    for value in (error.get("code"), error.get("status"), error.get("type")):
        if isinstance(value, int | str) and not isinstance(value, bool):
            name = str(value)[:64].strip().lower()
            status = int(name) if name.isascii() and name.isdecimal() else _STATUSES.get(name, 0)
            if 400 <= status < 600:
                return status
    return None


def text_of(content: object) -> str:
    """Text of a message: as it is, or in parts, of which those that hold text count."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(
        part if isinstance(part, str) else part["text"]
        for part in parts
        if isinstance(part, str)
        or (
            isinstance(part, dict)
            and isinstance(part.get("text"), str)
            and part.get("type") in _TEXT_TYPES
        )
    )


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 400 else float(digits)
