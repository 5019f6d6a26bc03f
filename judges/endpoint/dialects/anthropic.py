"""Anthropic's messages API.

It has no seed, no log-probabilities and one reply per request: these are left out, and named in the
signature like parameters that a model refuses. Replies have the same key as at OpenAI's API: the
model's name tells whose they are.

Source: docs.anthropic.com, "Messages", "Errors", "Handling stop reasons"; version 2023-06-01.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from lmms_eval_captions.judges.endpoint.dialects.dialect import Dialect
from lmms_eval_captions.judges.endpoint.failures import Source, error_within, no_reply_in
from lmms_eval_captions.judges.endpoint.replies import (
    NOT_READABLE,
    count_of,
    decode,
    model_in,
    text_of,
)
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request, encode
from lmms_eval_captions.judges.endpoint.urls import Key
from lmms_eval_captions.judges.errors import JudgeRequestError

_VERSION: Final = "2023-06-01"
_MOST_TOKENS: Final = 4096
"""Longest reply if a request does not say: the API requires a number."""
_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Stop reasons in OpenAI's terms; others (``tool_use``) stay as they are."""
_CACHED: Final = "cache_read_input_tokens"
_INPUT: Final = ("input_tokens", "cache_creation_input_tokens", _CACHED)
"""Counts of the input; the first one leaves out what a cache held."""
_DATA_URL: Final = re.compile(r"data:([\w/+.-]+);base64,", re.ASCII)


class AnthropicDialect(Dialect):
    """Anthropic's API."""

    name: ClassVar[str] = "anthropic"
    key_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY",)
    url_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_BASE_URL",)
    default_url: ClassVar[str] = "https://api.anthropic.com"
    not_taken: ClassVar[tuple[str, ...]] = ("seed", "logprobs", "n")

    def completions_url(self, url: str) -> str:
        """See :class:`Dialect`."""
        return f"{_root(url)}/v1/messages"

    def models_url(self, url: str) -> str:
        """See :class:`Dialect`."""
        return f"{_root(url)}/v1/models?limit=1000"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """See :class:`Dialect`."""
        return {"anthropic-version": _VERSION, **({"x-api-key": Key(api_key)} if api_key else {})}

    def encode(self, request: Request, attempt: int) -> bytes:
        """See :class:`Dialect`."""
        asked = request.parameters(attempt)
        dropped = {*self.not_taken, *request.left_out, "top_logprobs", "max_completion_tokens"}
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

    def read_reply(self, raw: bytes, source: Source) -> Reply:
        """See :class:`Dialect`."""
        try:
            payload: Any = decode(source.text(raw, strictly=True))
            if payload.get("type") == "error":
                raise error_within(payload["error"], source)
            n_input, n_output = _counts(usage := payload.get("usage"))
            reason = payload.get("stop_reason")
            reason = reason if isinstance(reason, str) else None
            return Reply(
                text=_text(payload["content"]),
                finish_reason=None if reason is None else _FINISH.get(reason, reason),
                input_tokens=n_input or 0,
                output_tokens=n_output or 0,
                is_estimated=None in (n_input, n_output),
                model=model_in(payload),
                cached_tokens=min(n_input or 0, count_of(usage, _CACHED) or 0),
                id=payload.get("id"),
            )
        except NOT_READABLE as unreadable:
            raise no_reply_in(raw, source, "a message") from unreadable


ANTHROPIC: Final[Dialect] = AnthropicDialect()


def _content(content: object) -> object:
    return list(map(_block, content)) if isinstance(content, list) else content


def _block(part: Message) -> Message:
    """Return a content part in Anthropic's form."""
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


def _text(content: object) -> str:
    """Return the text of a message; thinking blocks are not text, and a refusal may have none."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise TypeError(f"expected blocks, got {content!r:.80}")
    return text_of([block for block in content if block["type"] == "text"])


def _counts(usage: object) -> tuple[int | None, int | None]:
    counts = [count_of(usage, name) for name in _INPUT]
    n_input = None if counts[0] is None else sum(count or 0 for count in counts)
    return n_input, count_of(usage, "output_tokens")


def _root(url: str) -> str:
    """Return a base URL without the start of the API's paths.

    >>> _root("https://api.anthropic.com/v1"), _root("https://api.anthropic.com/v1/messages")
    ('https://api.anthropic.com', 'https://api.anthropic.com')
    """
    return url.removesuffix("/messages").removesuffix("/v1")
