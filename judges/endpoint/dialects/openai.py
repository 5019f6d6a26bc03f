"""OpenAI's chat completions, which most servers of one's own and gateways speak as well."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.judges.endpoint.answers.completion import (
    NOT_READABLE,
    decode,
    error_in,
    finish_reason_in,
    model_in,
    text_in,
)
from lmms_eval_captions.judges.endpoint.answers.failures import (
    ApiWords,
    error_within,
    no_reply_in,
)
from lmms_eval_captions.judges.endpoint.answers.logprobs import number_tokens
from lmms_eval_captions.judges.endpoint.answers.refusals import refused_parameter
from lmms_eval_captions.judges.endpoint.answers.tokens import cached_of, count_of
from lmms_eval_captions.judges.endpoint.dialects.dialect import Dialect
from lmms_eval_captions.judges.endpoint.endpoint import Key
from lmms_eval_captions.judges.endpoint.redaction import answer_text, redactor
from lmms_eval_captions.judges.endpoint.request import NumberToken, Reply, Request, encode
from lmms_eval_captions.judges.endpoint.roles import Role
from lmms_eval_captions.judges.errors import (
    JudgeRequestError,
    JudgeStoppedError,
)


def _is_out_of_money(status: int, raw: bytes) -> bool:
    return status == 429 and b"insufficient_quota" in raw


WORDS: Final = ApiWords("openai", "/chat/completions", refused_parameter, _is_out_of_money)


class OpenaiDialect(Dialect):
    """How OpenAI's API, and those that follow it, is asked and read."""

    words = WORDS

    def completions_url(self, url: str) -> str:
        """Where requests are posted, from a base URL such as ``https://api.openai.com/v1``."""
        return f"{url}{WORDS.path}"

    def models_url(self, url: str) -> str:
        """What lists the models."""
        return f"{url}/models"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """What every request carries."""
        return {"Authorization": Key(f"Bearer {api_key}")} if api_key else {}

    def encode(self, request: Request, attempt: int) -> bytes:
        """A request as it goes over the wire: its body, with what is left out or sent beside it."""
        body = request.body(attempt)
        if request.left_out or request.instead is not None:
            payload: dict[str, object] = {
                "model": request.model,
                "messages": request.sent_messages,
            }
            body = encode(payload | _without(request.parameters(attempt), request.left_out))
        if request.beside:
            body = body[:-1] + b"," + encode(request.beside)[1:]
        return body

    def read_reply(
        self, raw: bytes, url: str, api_key: str | None, *, role: Role = "judge"
    ) -> Reply:
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
                broken_off = error_within(error, url, words=WORDS, api_key=api_key, role=role)
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
            return Reply(
                text=text,
                finish_reason=finish_reason_in(choice),
                input_tokens=counts[0] or 0,
                output_tokens=counts[1] or 0,
                logprobs=_without_key(logprobs, text, api_key) if logprobs else None,
                is_estimated=None in counts,
                model=model_in(payload),  # type: ignore[arg-type]  # a mapping, as it has choices
                cached_tokens=min(counts[0] or 0, cached_of(usage)),
            )
        except NOT_READABLE as unreadable:
            raise no_reply_in(raw, url, api_key, "a chat completion") from unreadable


OPENAI: Final = OpenaiDialect()


def _without(parameters: dict[str, object], left_out: tuple[str, ...]) -> dict[str, object]:
    """Parameters without what the model does not take, in words of its own where it has some.

    >>> _without({"logprobs": True, "top_logprobs": 20, "seed": 0}, ("logprobs",))
    {'seed': 0}
    >>> _without({"max_tokens": 256, "seed": 0}, ("max_tokens",))
    {'seed': 0, 'max_completion_tokens': 256}
    """
    for parameter in left_out:
        value = parameters.pop(parameter)
        if parameter == "logprobs":
            parameters.pop("top_logprobs", None)
        if parameter == "max_tokens":
            parameters["max_completion_tokens"] = value
    return parameters


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
