"""One chat request to a judge, its bytes on the wire and its key in the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.endpoint.answers.logprobs import NumberToken
from lmms_eval_captions.judges.protocols.prompt import Message
from lmms_eval_captions.judges.surrogates import whole_json

if TYPE_CHECKING:
    from lmms_eval_captions.judges.judge_config import JudgeConfig

_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
RESAMPLE_TEMPERATURE = 0.7
"""Temperature of a repeated request. Deviation: the papers ask once; at temperature 0 a repeated
request would return the unreadable text again, so a fresh sample needs one above 0."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a judge."""

    protocol: str
    """Name and version of the protocol, e.g. ``vdc_answer:1``; part of the store's key."""
    model: str
    messages: Sequence[Message]
    params: Mapping[str, object]
    """Sampling parameters of the chat completion, ``temperature`` and ``max_tokens`` among them."""
    seed: int
    timeout_s: float
    stand_in: Callable[[], str]
    """The reply of the offline stand-in ``lexical``."""

    def body(self, attempt: int) -> bytes:
        """JSON body; ``attempt`` > 0 asks for a fresh sample after an unreadable reply.

        Escaped to ASCII, so that a caption with lone surrogates can be sent at all.
        """
        payload = {"model": self.model, "messages": self.messages, **self.params, "seed": self.seed}
        if attempt:
            payload["seed"] = self.seed + 1_000_003 * attempt
            payload["temperature"] = max(RESAMPLE_TEMPERATURE, _number(payload.get("temperature")))
        return _ENCODE(payload).encode("ascii")

    def key(self, body: bytes, alias: str | None = None) -> bytes:
        """Store key, 16 bytes: everything that moves a verdict (the body, the protocol version).

        Args:
            body: As :meth:`body` gives it.
            alias: Name under which an endpoint may answer as the model, if there is one: replies
                that were taken for the model's because of it serve no run without it.
        """
        digest = hashlib.blake2b(self.protocol.encode(), digest_size=16)
        digest.update(b"\0")
        digest.update(body)
        if alias is not None:
            digest.update(b"\0" + alias.encode())
        return digest.digest()


def request_of(
    prompt: str,
    messages: Sequence[Message],
    *,
    config: JudgeConfig,
    seed: int,
    stand_in: Callable[[], str],
    **params: object,
) -> Request:
    """A request to a benchmark's judge, at its temperature and length.

    Args:
        prompt: Name of the prompt, of which the protocol's version makes the store's key.
        messages: The prompt with its slots filled.
        config: The benchmark's judge.
        seed: Seed, >= 0.
        stand_in: The reply of the offline stand-in.
        params: Further sampling parameters.
    """
    return Request(
        protocol=f"{prompt}:{config.protocol}",
        model=config.model,
        messages=messages,
        params={"temperature": config.temperature, "max_tokens": config.max_tokens, **params},
        seed=seed,
        timeout_s=config.timeout_s,
        stand_in=stand_in,
    )


def without(body: bytes, parameter: str) -> bytes:
    """The body of a request without what its model does not take; itself where it is not in it.

    >>> without(b'{"model":"m","logprobs":true,"top_logprobs":20,"seed":0}', "logprobs")
    b'{"model":"m","seed":0}'
    >>> without(b'{"model":"m","max_tokens":256}', "max_tokens")
    b'{"model":"m","max_completion_tokens":256}'
    """
    payload = json.loads(body)
    if parameter not in payload:
        return body
    value = payload.pop(parameter)
    if parameter == "logprobs":
        payload.pop("top_logprobs", None)
    if parameter == "max_tokens":
        payload["max_completion_tokens"] = value
    return _ENCODE(payload).encode("ascii")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    text: str
    finish_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    logprobs: Sequence[NumberToken] | None = None
    """The tokens that write numbers, where the request asked for ``logprobs`` and got them."""
    refused: tuple[str, ...] = ()
    """Parameters that were to be sent and that the model does not take: it was asked without."""
    is_estimated: bool = False
    """Whether its tokens are not those that the endpoint counts; not stored."""
    model: str | None = None
    """The model that it says it is of; ``None`` where it says none, and from when it is checked
    (:func:`.model_names.check_name`) where that is the one that was expected."""

    def to_json(self) -> bytes:
        """One line of JSON for the store."""
        record: dict[str, object] = {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
        if self.logprobs is not None:
            record["logprobs"] = self.logprobs
        if self.refused:
            record["refused"] = self.refused
        if self.model is not None:
            record["model"] = self.model
        return _ENCODE(record).encode("ascii")

    @classmethod
    def from_json(cls, line: bytes) -> Reply:
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError: If the line is not one that :meth:`to_json` wrote.
        """
        try:
            record = json.loads(whole_json(line.decode("ascii")))
            reason, logprobs = record["finish_reason"], record.get("logprobs")
            model = record.get("model")
            return cls(
                text=_text(record["text"]),
                finish_reason=None if reason is None else _text(reason),
                input_tokens=_count(record["input_tokens"]),
                output_tokens=_count(record["output_tokens"]),
                logprobs=None if logprobs is None else tuple(_token(*one) for one in logprobs),
                refused=tuple(map(_text, record.get("refused", ()))),
                model=None if model is None else _text(model),
            )
        except (TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"expected a stored reply, got {line[:80]!r}: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.80}")
    return value


def _token(start: int, text: str, alternatives: Mapping[str, float]) -> NumberToken:
    """A token as it was stored, if it is one."""
    shares = {name: float(value) for name, value in alternatives.items()}
    if not all(map(isfinite, shares.values())):
        raise TypeError(f"expected logarithms of shares, got {alternatives!r:.80}")
    return NumberToken(int(start), _text(text), shares)


def _count(value: object) -> int:
    """A number of tokens; 0 for what cannot be one: the reply is as good."""
    return max(0, value) if isinstance(value, int) else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
