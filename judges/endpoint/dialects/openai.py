"""OpenAI's Chat Completions, and Azure's."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.dialects.dialect import Dialect
from lmms_eval_captions.judges.endpoint.failures import Source, error_within, no_reply_in
from lmms_eval_captions.judges.endpoint.replies import (
    NOT_READABLE,
    cached_of,
    count_of,
    decode,
    error_in,
    finish_reason_in,
    has_reasoning,
    model_in,
    number_tokens,
    text_in,
)
from lmms_eval_captions.judges.endpoint.request import NumberToken, Reply, Request, encode
from lmms_eval_captions.judges.endpoint.urls import Key, scrub, with_path
from lmms_eval_captions.judges.errors import JudgeRequestError, JudgeStoppedError

_PATH: Final = "/chat/completions"


class OpenaiDialect(Dialect):
    """OpenAI's API."""

    name: ClassVar[str] = "openai"
    key_variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    url_variables: ClassVar[tuple[str, ...]] = ("OPENAI_BASE_URL", "OPENAI_API_URL")
    default_url: ClassVar[str] = "https://api.openai.com/v1"

    def completions_url(self, url: str) -> str:
        """See :class:`Dialect`."""
        return with_path(url, _PATH)

    def models_url(self, url: str) -> str:
        """See :class:`Dialect`."""
        return with_path(url, "/models")

    def headers(self, api_key: str | None) -> dict[str, str]:
        """See :class:`Dialect`."""
        return {"Authorization": Key(f"Bearer {api_key}")} if api_key else {}

    def encode(self, request: Request, attempt: int) -> bytes:
        """See :class:`Dialect`."""
        body = request.body(attempt)
        if request.left_out or request.instead is not None:
            payload: dict[str, object] = {
                "model": request.model,
                "messages": request.sent_messages,
            }
            body = encode(payload | without(request.parameters(attempt), request.left_out))
        if request.added_params:
            body = body[:-1] + b"," + encode(request.added_params)[1:]
        return body

    def read_reply(self, raw: bytes, source: Source) -> Reply:
        """See :class:`Dialect`."""
        try:
            payload: Any = decode(source.text(raw, strictly=True))
            usage = payload.get("usage") if isinstance(payload, dict) else None
            counts = [count_of(usage, name) for name in ("prompt_tokens", "completion_tokens")]
            error = error_in(payload)
            if error is not None:
                broken_off = error_within(error, source)
                in_all = payload.get("error") or payload is error
                if isinstance(broken_off, JudgeStoppedError) and not in_all:
                    # A choice's own: this request got past the key and the model's name.
                    broken_off = JudgeRequestError(str(broken_off))
                # What was counted may be billed, though it broke off.
                broken_off.may_be_billed |= any(counts)
                raise broken_off
            choice = payload["choices"][0]
            logprobs = choice.get("logprobs")
            text = text_in(choice)
            return Reply(
                text=text,
                finish_reason=finish_reason_in(choice),
                input_tokens=counts[0] or 0,
                output_tokens=counts[1] or 0,
                logprobs=_without_key(logprobs, text, source) if logprobs else None,
                is_estimated=None in counts,
                model=model_in(payload),
                cached_tokens=min(counts[0] or 0, cached_of(usage)),
                is_only_reasoning=not text.strip() and has_reasoning(choice),
                id=payload.get("id"),
            )
        except NOT_READABLE as unreadable:
            raise no_reply_in(raw, source, "a chat completion") from unreadable


OPENAI: Final = OpenaiDialect()


def without(parameters: dict[str, object], left_out: tuple[str, ...]) -> dict[str, object]:
    """Remove parameters that a model refuses; ``max_tokens`` gets its newer name.

    >>> without({"logprobs": True, "top_logprobs": 20, "seed": 0}, ("logprobs",))
    {'seed': 0}
    >>> without({"max_tokens": 256, "seed": 0}, ("max_tokens",))
    {'seed': 0, 'max_completion_tokens': 256}
    """
    for parameter in left_out:
        value = parameters.pop(parameter, None)
        if parameter == "logprobs":
            parameters.pop("top_logprobs", None)
        if parameter == "max_tokens" and value is not None:
            parameters["max_completion_tokens"] = value
    return parameters


def _without_key(logprobs: object, text: str, source: Source) -> tuple[NumberToken, ...] | None:
    """Return the tokens that write a reply's numbers; none if they spell the key."""
    tokens = number_tokens(logprobs, text)
    if not tokens or not source.api_key:
        return tokens
    written = "".join(token.text for token in tokens)
    shown = "\n".join([written, *(name for token in tokens for name in token.alternatives)])
    return tokens if scrub(shown, source.api_key) == shown else None


_HOSTS: Final = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_DEPLOYMENT_PATH: Final = "/chat/completions"


class AzureDialect(OpenaiDialect):
    """Azure's API: a deployment's URL, its full target URI, or a resource's URL."""

    name: ClassVar[str] = "azure"
    key_variables: ClassVar[tuple[str, ...]] = ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY")
    url_variables: ClassVar[tuple[str, ...]] = ("AZURE_OPENAI_ENDPOINT",)
    default_url: ClassVar[str] = ""
    names_models: ClassVar[bool] = False

    @classmethod
    def is_address(cls, url: str) -> bool:
        """See :class:`.dialect.Dialect`."""
        parts = urlsplit(url)
        return "api-version=" in parts.query or (parts.hostname or "").endswith(_HOSTS)

    def completions_url(self, url: str) -> str:
        """See :class:`.dialect.Dialect`.

        >>> AzureDialect().completions_url("https://r.openai.azure.com/openai/deployments/d?api-version=1")
        'https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1'
        >>> AzureDialect().completions_url("https://r.openai.azure.com")
        'https://r.openai.azure.com/openai/v1/chat/completions'
        """
        path = urlsplit(url).path.rstrip("/")
        if path.endswith(_DEPLOYMENT_PATH):
            return url
        return with_path(url, _DEPLOYMENT_PATH if path else f"/openai/v1{_DEPLOYMENT_PATH}")

    def models_url(self, url: str) -> str:
        """See :class:`.dialect.Dialect`."""
        path = urlsplit(url).path
        root = path.partition("/deployments/")[0] or "/openai/v1"
        return with_path(urlsplit(url)._replace(path="").geturl(), f"{root}/models")

    def headers(self, api_key: str | None) -> dict[str, str]:
        """See :class:`.dialect.Dialect`."""
        return {"api-key": Key(api_key)} if api_key else {}
