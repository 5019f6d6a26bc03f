"""Parts of an answer: text, tokens, log-probabilities, reasoning, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, exp, log
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import NumberToken, Reply, Request

NOT_READABLE: Final = (
    ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
"""Errors of JSON of another shape; the last two of an infinite count and of great depth."""
_TAG = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
_REASONING: Final = re.compile(
    # <think>..., <seed:think>... (Seed-OSS)
    rf"<((?:[a-z]{{1,12}}:)?{_TAG})>.*?(?:</\1>|\Z)"
    # Magistral
    r"|\[think\].*?(?:\[/think\]|\Z)"
    # Kimi
    r"|\u25c1think\u25b7.*?(?:\u25c1/think\u25b7|\Z)"
    # gpt-oss, with its special tokens
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)\b.*?"
    r"(?:<\|channel\|>final<\|message\|>|\Z)"
    # Gemma: <unused94>thought ... <unused95>, <|channel>thought ... <channel|>
    r"|<unused94>.*?(?:<unused95>|\Z)|<\|channel>thought\b.*?(?:<channel\|>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BARE_HARMONY: Final = re.compile(
    r"\A(?:assistant)?analysis(?=[A-Z\s]).*?(?:assistant(?:final|commentary)|\Z)", re.DOTALL
)
"""Reasoning of gpt-oss if a server drops the special tokens: ``analysis...assistantfinal...``."""
_BEFORE_END: Final = re.compile(
    r"\A.*(?:</think(?:ing)?>|\[/THINK\]|\u25c1/think\u25b7|<unused95>)", re.DOTALL | re.IGNORECASE
)
_MARKS: Final = re.compile(
    r"<\|(?:begin_of_box|end_of_box|message|return|end)\|>|<\|channel\|>final|</?answer>"
)
"""Tokens around an answer, of GLM and gpt-oss."""


def strip_reasoning(text: str) -> str:
    """Return a reply without its reasoning; one that was cut inside its reasoning is empty.

    >>> strip_reasoning("<think>yes or no?</think> no ")
    'no'
    """
    text = text.strip()
    if text.startswith(("analysis", "assistantanalysis")):
        text = _BARE_HARMONY.sub("", text).strip()
    if not any(sign in text for sign in "<[\u25c1"):
        return text
    text = _REASONING.sub("", text)
    # Some servers strip the opening tag alone.
    return _MARKS.sub("", _BEFORE_END.sub("", text)).strip()


MOST_TOKENS: Final = 10_000_000
"""Largest count of tokens that is believed: ten times the longest context there is."""
CHARS_PER_TOKEN: Final = 4.0
"""Characters of English prompts and captions that make a token in an estimate; rather too few."""
PICTURE_TOKENS: Final = 1_500
"""Tokens of a picture in an estimate, if the model's way of counting is not known."""


def count_of(value: object) -> int | None:
    """Return a count of tokens; ``None`` if it is no whole number of tokens."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # What is not a number is not between these.
    return int(value) if 0 <= value <= MOST_TOKENS and value == int(value) else None


def tokens_in(usage: object) -> tuple[int | None, int | None, int]:
    """Return input and output tokens of a reply's ``usage``, and input tokens out of a cache."""
    if not isinstance(usage, dict):
        return None, None, 0
    n_input = count_of(usage.get("prompt_tokens"))
    details, n_cached = usage.get("prompt_tokens_details"), None
    if isinstance(details, dict):
        n_cached = count_of(details.get("cached_tokens"))
    if n_cached is None:
        n_cached = count_of(usage.get("prompt_cache_hit_tokens"))
    return n_input, count_of(usage.get("completion_tokens")), min(n_input or 0, n_cached or 0)


def counted(reply: Reply, request: Request, attempt: int) -> Reply:
    """Return a reply with an estimate of the tokens that the endpoint does not count."""
    if not reply.is_estimated:
        return reply
    # Letters of pictures are no tokens.
    n_pictures, n_letters = pictures_in(request.messages)
    n_input = ceil((len(request.body(attempt)) - n_letters) / CHARS_PER_TOKEN)
    n_output = ceil(len(json.dumps(reply.text)) / CHARS_PER_TOKEN)
    return replace(
        reply,
        input_tokens=reply.input_tokens or n_input + n_pictures * PICTURE_TOKENS,
        output_tokens=reply.output_tokens or n_output,
    )


def pictures_in(messages: Sequence[Mapping[str, object]]) -> tuple[int, int]:
    """Pictures in a request's messages, and the letters that they are written with."""
    n_pictures = n_letters = 0
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "image_url":
                n_pictures += 1
                n_letters += len(part["image_url"]["url"])
    return n_pictures, n_letters


_DIGIT: Final = re.compile("[0-9]")


def number_tokens(logprobs: object, text: str) -> tuple[NumberToken, ...] | None:
    """Return the tokens that write the numbers of a completion's text, in their order.

    The tokens' digits are laid over the text's, from the end: digits are single bytes whatever the
    tokenizer, while other characters may be split, escaped, or left out of the text (special
    tokens, reasoning). ``None`` if they do not fit, or came without alternatives.
    """
    try:
        entries = logprobs["content"]  # type: ignore[index]  # checked by what follows
        if not entries or not any(entry["top_logprobs"] for entry in entries):
            return None
        tokens = [_text(entry) for entry in entries]
        places = [match.start() for match in _DIGIT.finditer(text)]
        digits = [(index, m) for index, token in enumerate(tokens) for m in _DIGIT.finditer(token)]
        digits = digits[len(digits) - len(places) :] if places else []
        if [text[place] for place in places] != [digit[0] for _, digit in digits]:
            return None
        starts: dict[int, int] = {}
        for place, (index, digit) in zip(places, digits, strict=True):
            starts.setdefault(index, place - digit.start())
        for index, start in list(starts.items()):
            if index + 1 < len(tokens):
                starts.setdefault(index + 1, start + len(tokens[index]))
        return tuple(
            NumberToken(start, tokens[index], _alternatives(entries[index]))
            for index, start in sorted(starts.items())
        )
    except NOT_READABLE:
        return None  # They are an extra: the reply itself is as good without.


def _text(entry: Mapping[str, Any]) -> str:
    raw = entry.get("bytes")
    if isinstance(raw, list):
        return bytes(raw).decode("utf-8", "replace")
    return str(entry["token"])


def _alternatives(entry: Mapping[str, Any]) -> dict[str, float]:
    logs = {_text(each): float(each["logprob"]) for each in entry["top_logprobs"]}
    logs.setdefault(_text(entry), float(entry["logprob"]))
    shares: dict[str, float] = {}
    for token, value in logs.items():
        name = token if _DIGIT.search(token) else ""
        shares[name] = shares.get(name, 0.0) + exp(min(value, 0.0))
    return {name: round(log(share), 6) for name, share in shares.items() if share > 0.0}


_STATUSES: Final = {
    "authentication_error": 401, "invalid_api_key": 401, "insufficient_quota": 402,
    "permission_error": 403, "permission_denied": 403, "not_found_error": 404,
    "model_not_found": 404, "rate_limit_error": 429, "rate_limit_exceeded": 429,
    "invalid_request_error": 400, "context_length_exceeded": 400, "content_filter": 400,
    "server_error": 500, "api_error": 500, "overloaded_error": 529,
}  # fmt: skip
"""Codes and types of errors, and the status that they go with."""


def model_in(payload: Mapping[str, object]) -> str | None:
    """Return the model that a completion names, or ``None``."""
    name = payload.get("model")
    # With the key taken out it is not the name that was sent.
    if not isinstance(name, str) or "[key]" in name:
        return None
    return name.strip()[:4096] or None


def error_in(payload: object) -> object:
    """Return the error in place of a reply, as some gateways send it, or ``None``.

    Next to a text it is none, unless the text is said to have ended with it.
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
    """Return the HTTP status of an error's code or type, ``None`` if it has neither."""
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
    """Text of a message: as it is, or of those of its parts that hold text."""
    if isinstance(content, str):
        return content
    texts: list[object] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") in (None, "text", "output_text"):
            texts.append(part.get("text"))
        else:
            texts.append(part)
    return "".join(text for text in texts if isinstance(text, str))
