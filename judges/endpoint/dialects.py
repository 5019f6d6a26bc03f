"""APIs that models are asked through: OpenAI's Chat Completions, Azure's, Anthropic's messages.

Anthropic's API has no seed, no log-probabilities and one reply per request: these are left out, and
named in the signature like parameters that a model refuses. The store's keys do not depend on the
API.

Source: docs.anthropic.com, "Messages", "Errors", "Handling stop reasons"; version 2023-06-01.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint import replies
from lmms_eval_captions.judges.endpoint.failures import Source, error_within, no_reply_in
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request, encode
from lmms_eval_captions.judges.endpoint.urls import Key, scrub, with_path
from lmms_eval_captions.judges.errors import JudgeRequestError, JudgeStoppedError

_PATH: Final = "/chat/completions"


class Dialect:
    """One API: addresses, keys, encoding of requests, reading of replies. This is OpenAI's."""

    name: ClassVar[str] = "openai"
    """Value of ``LMMS_CAPTIONS_JUDGE_API``."""
    key_variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    """The first one that is set counts."""
    url_variables: ClassVar[tuple[str, ...]] = ("OPENAI_BASE_URL", "OPENAI_API_URL")
    """Read if ``LMMS_CAPTIONS_JUDGE_URL`` is not set."""
    default_url: ClassVar[str] = "https://api.openai.com/v1"
    not_taken: ClassVar[tuple[str, ...]] = ()
    """Parameters that the API does not have."""
    names_models: ClassVar[bool] = True
    """Replies name the model that was asked for."""

    @classmethod
    def is_address(cls, url: str) -> bool:  # noqa: ARG003 - of APIs with addresses of their own
        """Return whether a URL is recognised as this API's."""
        return False

    def completions_url(self, url: str) -> str:
        """Return the address that requests are posted to."""
        return with_path(url, _PATH)

    def models_url(self, url: str) -> str:
        """Return the address of the list of models."""
        return with_path(url, "/models")

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the headers of every request."""
        return {"Authorization": Key(f"Bearer {api_key}")} if api_key else {}

    def encode(self, request: Request, attempt: int) -> bytes:
        """Return a request's body; raises a :class:`JudgeRequestError` if it cannot be sent."""
        body = request.body(attempt)
        if request.left_out or request.instead is not None:
            payload: dict[str, object] = {"model": request.model, "messages": request.sent_messages}
            body = encode(payload | without(request.parameters(attempt), request.left_out))
        if request.added_params:
            body = body[:-1] + b"," + encode(request.added_params)[1:]
        return body

    def read_reply(self, raw: bytes, source: Source) -> Reply:
        """Read an answer of 200; raises a :class:`JudgeError` if there is no reply in it."""
        try:
            payload: Any = json.loads(source.text(raw, strictly=True))
            usage = payload.get("usage") if isinstance(payload, dict) else None
            n_input, n_output, n_cached = replies.tokens_in(usage)
            error = replies.error_in(payload)
            if error is not None:
                broken_off = error_within(error, source)
                in_all = payload.get("error") or payload is error
                if isinstance(broken_off, JudgeStoppedError) and not in_all:
                    # A choice's own: this request got past the key and the model's name.
                    broken_off = JudgeRequestError(str(broken_off))
                # What was counted may be billed, though it broke off.
                broken_off.may_be_billed |= bool(n_input or n_output)
                raise broken_off
            choice = payload["choices"][0]
            logprobs, reason = choice.get("logprobs"), choice.get("finish_reason")
            message = choice["message"]
            # A message that was cut, filtered or refused may have no content.
            text = replies.text_of(message.get("content"))
            reasoning = map(message.get, ("reasoning_content", "reasoning", "thinking"))
            tokens = replies.number_tokens(logprobs, text) if logprobs else None
            if tokens and scrub(str(tokens), source.api_key, source.url) != str(tokens):
                tokens = None  # a token's bytes spell the key
            return Reply(
                text=text,
                finish_reason=reason if isinstance(reason, str) else None,
                input_tokens=n_input or 0,
                output_tokens=n_output or 0,
                logprobs=tokens,
                is_estimated=not n_input or n_output is None or bool(text and not n_output),
                model=replies.model_in(payload),
                endpoint=source.endpoint,
                cached_tokens=n_cached,
                is_only_reasoning=not text.strip() and any(reasoning),
                id=payload.get("id"),
            )
        except replies.NOT_READABLE as unreadable:
            raise no_reply_in(raw, source, "a chat completion") from unreadable


OPENAI: Final = Dialect()


def without(parameters: dict[str, object], left_out: tuple[str, ...]) -> dict[str, object]:
    """Remove parameters that a model refuses; ``max_tokens`` gets its newer name."""
    for parameter in left_out:
        value = parameters.pop(parameter, None)
        if parameter == "logprobs":
            parameters.pop("top_logprobs", None)
        if parameter == "max_tokens" and value is not None:
            parameters["max_completion_tokens"] = value
    return parameters


class AzureDialect(Dialect):
    """Azure's API: a deployment's URL, its full target URI, or a resource's URL."""

    name: ClassVar[str] = "azure"
    key_variables: ClassVar[tuple[str, ...]] = ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY")
    url_variables: ClassVar[tuple[str, ...]] = ("AZURE_OPENAI_ENDPOINT",)
    default_url: ClassVar[str] = ""
    names_models: ClassVar[bool] = False

    @classmethod
    def is_address(cls, url: str) -> bool:
        """See :class:`Dialect`."""
        parts, hosts = urlsplit(url), ("openai", "cognitiveservices", "services.ai")
        endings = tuple(f".{host}.azure.com" for host in hosts)
        return "api-version=" in parts.query or (parts.hostname or "").endswith(endings)

    def completions_url(self, url: str) -> str:
        """See :class:`Dialect`.

        >>> AzureDialect().completions_url("https://r.openai.azure.com")
        'https://r.openai.azure.com/openai/v1/chat/completions'
        """
        path = urlsplit(url).path.rstrip("/")
        if path.endswith(_PATH):
            return url
        return with_path(url, _PATH if path else f"/openai/v1{_PATH}")

    def models_url(self, url: str) -> str:
        """See :class:`Dialect`."""
        path = urlsplit(url).path
        root = path.partition("/deployments/")[0] or "/openai/v1"
        return with_path(urlsplit(url)._replace(path="").geturl(), f"{root}/models")

    def headers(self, api_key: str | None) -> dict[str, str]:
        """See :class:`Dialect`."""
        return {"api-key": Key(api_key)} if api_key else {}


_VERSION: Final = "2023-06-01"
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
        # The API requires a number.
        most = asked.get("max_tokens") or asked.get("max_completion_tokens") or 4096
        payload: dict[str, object] = {"model": request.model, "max_tokens": most}
        payload |= {name: value for name, value in asked.items() if name not in dropped}
        system = [
            replies.text_of(m["content"]) for m in request.sent_messages if m["role"] == "system"
        ]
        if system:
            payload["system"] = "\n\n".join(system)
        payload["messages"] = [
            {**m, "content": list(map(_block, c)) if isinstance(c := m["content"], list) else c}
            for m in request.sent_messages
            if m["role"] != "system"
        ]
        return encode(payload)

    def read_reply(self, raw: bytes, source: Source) -> Reply:
        """See :class:`Dialect`."""
        try:
            payload: Any = json.loads(source.text(raw, strictly=True))
            if payload.get("type") == "error":
                raise error_within(payload["error"], source)
            usage = payload.get("usage")
            usage = usage if isinstance(usage, dict) else {}
            counts = [replies.count_of(usage.get(name)) for name in _INPUT]
            n_input = None if counts[0] is None else sum(count or 0 for count in counts)
            n_output = replies.count_of(usage.get("output_tokens"))
            reason = payload.get("stop_reason")
            reason = reason if isinstance(reason, str) else None
            content = payload["content"]
            if not isinstance(content, str):
                # Thinking is no text, and a refusal may have none.
                content = replies.text_of([block for block in content if block["type"] == "text"])
            return Reply(
                text=content,
                finish_reason=None if reason is None else _FINISH.get(reason, reason),
                input_tokens=n_input or 0,
                output_tokens=n_output or 0,
                is_estimated=not n_input or n_output is None or bool(content and not n_output),
                model=replies.model_in(payload),
                endpoint=source.endpoint,
                cached_tokens=min(n_input or 0, replies.count_of(usage.get(_CACHED)) or 0),
                id=payload.get("id"),
            )
        except replies.NOT_READABLE as unreadable:
            raise no_reply_in(raw, source, "a message") from unreadable


ANTHROPIC: Final = AnthropicDialect()


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


def _root(url: str) -> str:
    """Return a base URL without the start of the API's paths."""
    return url.removesuffix("/messages").removesuffix("/v1")


DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect for dialect in (OPENAI, AzureDialect(), ANTHROPIC)
}
"""The dialects, the default first."""


def api_of(urls: Sequence[str], api: str | None = None) -> str:
    """Return the API of some addresses: the given one, or the one that they are recognised by."""
    known = (name for name, dialect in DIALECTS.items() if any(map(dialect.is_address, urls)))
    return api or next(known, OPENAI.name)
