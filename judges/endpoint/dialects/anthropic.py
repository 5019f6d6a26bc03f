"""Anthropic's messages API.

It has no seed, no log-probabilities and one reply per request: these are left out, and named in the
signature like the parameters that a model refuses. Replies are stored under the key that the same
request has at OpenAI's API: the model's name tells whose they are.

Source: docs.anthropic.com, "Messages", "Errors", "Handling stop reasons"; version 2023-06-01.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.answers.completion import (
    NOT_READABLE,
    decode,
    model_in,
    text_of,
)
from lmms_eval_captions.judges.endpoint.answers.failures import (
    ApiWords,
    error_within,
    no_reply_in,
)
from lmms_eval_captions.judges.endpoint.answers.tokens import count_of
from lmms_eval_captions.judges.endpoint.dialects.dialect import Dialect
from lmms_eval_captions.judges.endpoint.endpoint import Key
from lmms_eval_captions.judges.endpoint.redaction import answer_text
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request, encode
from lmms_eval_captions.judges.endpoint.roles import Role
from lmms_eval_captions.judges.errors import JudgeRequestError

_VERSION: Final = "2023-06-01"
_MOST_TOKENS: Final = 4096
"""Longest reply where a request does not say: the API wants a number."""
_NOT_TAKEN: Final = ("seed", "logprobs", "n")
_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Why a message ended, and how OpenAI's API says so. What else there is (``tool_use``) is kept."""
_CACHED: Final = "cache_read_input_tokens"
_INPUT: Final = ("input_tokens", "cache_creation_input_tokens", _CACHED)
"""Counts of what was sent; the first one is without what a cache held. What was written to a cache,
which costs 1.25 times as much, is priced as other input: no request of ours has a
``cache_control``, so that there is none unless a gateway adds one."""
_DATA_URL: Final = re.compile(r"data:([\w/+.-]+);base64,", re.ASCII)
_TEMPERATURE_REFUSED: Final = re.compile(
    r"\btemperature\b\W{0,3} (?:is |was )?(?:deprecated|not supported|unsupported|not permitted)"
    r"|\btemperature: extra inputs are not permitted"
    r"|\bnot support (?:the )?\W?temperature\b"
    r"|\btemperature may only be set to 1\b",
    re.IGNORECASE,
)


def _refused_parameter(said: str) -> str | None:
    return "temperature" if _TEMPERATURE_REFUSED.search(said) else None


def _is_out_of_money(status: int, raw: bytes) -> bool:
    return (status == 400 and b"credit balance is too low" in raw) or (
        status == 429 and b"enforced_spend_limit_reached" in raw
    )


WORDS: Final = ApiWords("anthropic", "/v1/messages", _refused_parameter, _is_out_of_money)


class AnthropicDialect(Dialect):
    """How Anthropic's API is asked and read."""

    not_taken = _NOT_TAKEN
    words = WORDS

    def completions_url(self, url: str) -> str:
        """Where requests are posted, from a base URL such as ``https://api.anthropic.com``."""
        return f"{_root(url)}{WORDS.path}"

    def models_url(self, url: str) -> str:
        """What lists the models."""
        return f"{_root(url)}/v1/models?limit=1000"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """What every request carries."""
        key = {"x-api-key": Key(api_key)} if api_key else {}
        return {"anthropic-version": _VERSION, **key}

    def encode(self, request: Request, attempt: int) -> bytes:
        """A request as it goes over the wire.

        Raises:
            JudgeRequestError: If it shows what cannot be sent.
        """
        asked = request.parameters(attempt)
        dropped = {*_NOT_TAKEN, *request.left_out, "top_logprobs", "max_completion_tokens"}
        most = asked.get("max_tokens") or asked.get("max_completion_tokens") or _MOST_TOKENS
        payload: dict[str, object] = {"model": request.model, "max_tokens": most}
        payload |= {name: value for name, value in asked.items() if name not in dropped}
        system = [text_of(m["content"]) for m in request.sent_messages if m["role"] == "system"]
        if system:
            payload["system"] = "\n\n".join(system)
        payload["messages"] = [
            {"role": message["role"], "content": _content(message["content"])}
            for message in request.sent_messages
            if message["role"] != "system"
        ]
        return encode(payload)

    def read_reply(
        self, raw: bytes, url: str, api_key: str | None, *, role: Role = "judge"
    ) -> Reply:
        """The reply in a message.

        Args:
            raw: JSON as it came.
            url: Where from, for messages.
            api_key: What must not be in the reply, should the server echo it.
            role: What is asked, for messages.

        Raises:
            JudgeUnavailableError: If it is no message.
        """
        try:
            payload: Any = decode(answer_text(raw, api_key, url, strictly=True))
            if payload.get("type") == "error":
                raise error_within(payload["error"], url, words=WORDS, api_key=api_key, role=role)
            n_input, n_output = _counts(usage := payload.get("usage"))
            reason = payload["stop_reason"]
            reason = reason if isinstance(reason, str) else None
            return Reply(
                text=_text(payload["content"]),
                finish_reason=None if reason is None else _FINISH.get(reason, reason),
                input_tokens=n_input or 0,
                output_tokens=n_output or 0,
                is_estimated=None in (n_input, n_output),
                model=model_in(payload),
                cached_tokens=min(n_input or 0, count_of(usage, _CACHED) or 0),
            )
        except NOT_READABLE as unreadable:
            raise no_reply_in(raw, url, api_key, "a message") from unreadable


ANTHROPIC: Final = AnthropicDialect()


def _content(content: object) -> object:
    """Text, or parts of which pictures are written otherwise.

    Raises:
        JudgeRequestError: If there is something else among them.
    """
    return list(map(_block, content)) if isinstance(content, list) else content


def _block(part: Message) -> Message:
    if part["type"] == "text":
        return part
    if part["type"] != "image_url":
        raise JudgeRequestError("Anthropic's API does not support video input")
    shown: Any = part["image_url"]
    url: str = shown["url"]
    match = _DATA_URL.match(url)
    if match is None:
        return {"type": "image", "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": match[1], "data": url[match.end() :]}
    return {"type": "image", "source": source}


def _text(content: Sequence[Mapping[str, object]]) -> str:
    """Text of a message's blocks; thinking is no text, and a refusal may have none.

    Raises:
        TypeError: If they are no blocks.
    """
    if not isinstance(content, list):
        raise TypeError(f"expected blocks, got {content!r:.80}")
    return text_of([block for block in content if block["type"] == "text"])


def _counts(usage: object) -> tuple[int | None, int | None]:
    """Tokens of a request and of its reply, ``None`` where they are not said."""
    counts = [count_of(usage, name) for name in _INPUT]
    n_input = None if counts[0] is None else sum(count or 0 for count in counts)
    return n_input, count_of(usage, "output_tokens")


def _root(url: str) -> str:
    """A base URL without what paths begin with themselves.

    >>> _root("https://api.anthropic.com/v1"), _root("https://api.anthropic.com/v1/messages")
    ('https://api.anthropic.com', 'https://api.anthropic.com')
    """
    return url.removesuffix("/messages").removesuffix("/v1")
