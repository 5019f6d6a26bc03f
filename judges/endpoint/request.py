"""One chat request to a judge, its body, its key in the store, and who answers it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Final, NamedTuple, Protocol

from lmms_eval_captions.judges.surrogates import whole_json

Message = dict[str, object]
"""A message of a chat: ``role``, and ``content`` as text or in parts, as OpenAI has them."""

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
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
    left_out: tuple[str, ...] = ()
    """Parameters that it is sent without, as its model does not take them; in no key."""
    beside: Mapping[str, object] | None = None
    """Parameters that it is sent with beside its own; in no key."""
    shrink: Callable[[int], Sequence[Message] | None] | None = field(default=None, compare=False)
    """Its messages with smaller pictures, where an endpoint takes no request so large: the more so
    the larger the number, which starts at 1; ``None`` from it where none can be smaller."""
    instead: Sequence[Message] | None = None
    """Messages that are sent in the place of its own; in no key."""
    about: bytes | None = field(default=None, compare=False)
    """What tells the caption that it is about from others, ``None`` where that does not matter:
    chooses the replica that is asked; in no key, and not on the wire."""
    until_s: float | None = field(default=None, compare=False)
    """When, by :func:`time.monotonic`, it is too late to send it, ``None`` where it never is: what
    is under way then is answered and stored. In no key, and not on the wire."""
    _bodies: dict[int, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Attempt to its body, of the latest attempt alone: encoding takes time."""

    def parameters(self, attempt: int) -> dict[str, object]:
        """Sampling parameters as they are asked for, the seed among them.

        Args:
            attempt: 0, and one more for each fresh sample after an unreadable reply.
        """
        parameters = {**self.params, "seed": self.seed}
        if attempt:
            parameters["seed"] = self.seed + 1_000_003 * attempt
            temperature = _number(parameters.get("temperature"))
            parameters["temperature"] = max(RESAMPLE_TEMPERATURE, temperature)
        return parameters

    @property
    def sent_messages(self) -> Sequence[Message]:
        """What goes over the wire."""
        return self.messages if self.instead is None else self.instead

    def body(self, attempt: int) -> bytes:
        """JSON body of what is asked, of which the key is made; each API has its own on the wire.

        Escaped to ASCII, so that a caption with lone surrogates can be sent at all.
        """
        body = self._bodies.get(attempt)
        if body is None:
            payload = {
                "model": self.model,
                "messages": self.messages,
                **self.parameters(attempt),
            }
            body = encode(payload)
            self._bodies.clear()
            self._bodies[attempt] = body
        return body

    def sent_otherwise(
        self,
        *,
        left_out: tuple[str, ...] | None = None,
        beside: Mapping[str, object] | None = None,
        instead: Sequence[Message] | None = None,
    ) -> Request:
        """The same request, under the same key, with something else on the wire.

        Args:
            left_out: Parameters that are not sent, by default those that are not sent now.
            beside: Parameters that are sent beside the request's own, by default as now.
            instead: Messages that are sent in the place of its own, by default as now.
        """
        request = replace(
            self,
            left_out=self.left_out if left_out is None else left_out,
            beside=self.beside if beside is None else beside,
            instead=self.instead if instead is None else instead,
        )
        request._bodies.update(self._bodies)
        return request

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


def is_too_late(request: Request) -> bool:
    """Whether a request is not to be sent any more."""
    return request.until_s is not None and time.monotonic() >= request.until_s


def encode(payload: Mapping[str, object]) -> bytes:
    """JSON as it goes over the wire: without white space, escaped to ASCII."""
    return _ENCODE(payload).encode("ascii")


class NumberToken(NamedTuple):
    """A token of a reply that holds a digit, or the first one after such tokens."""

    start: int
    """Position in the reply's text of the token's first character; negative where white space
    that the token begins with was cut from the text."""
    text: str
    alternatives: Mapping[str, float]
    """Log-probabilities of this place's likeliest tokens, the token itself among them; all that
    hold no digit are one, the empty string."""


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
    is_final: bool = False
    """Whether asking again would give the same text; not stored."""
    model: str | None = None
    """The model that it says it is of; ``None`` where it says none, and from when it is checked
    (:func:`.model_names.check_name`) where that is the one that was expected."""
    endpoint: str | None = None
    """Name (:func:`.urls.endpoint_name`) of the address that it came from; ``None`` where a version
    stored it that did not write that down."""
    cached_tokens: int = 0
    """Of the input tokens, those that the endpoint had in its cache of prefixes, by its own count;
    0 where it says nothing of them."""

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
        if self.endpoint is not None:
            record["endpoint"] = self.endpoint
        if self.cached_tokens:
            record["cached_tokens"] = self.cached_tokens
        return encode(record)

    @classmethod
    def from_json(cls, line: bytes) -> Reply:
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError: If the line is not one that :meth:`to_json` wrote.
        """
        try:
            record = json.loads(whole_json(line.decode("ascii")))
            reason, logprobs = record["finish_reason"], record.get("logprobs")
            model, endpoint = record.get("model"), record.get("endpoint")
            n_input = _count(record["input_tokens"])
            return cls(
                text=_text(record["text"]),
                finish_reason=None if reason is None else _text(reason),
                input_tokens=n_input,
                output_tokens=_count(record["output_tokens"]),
                logprobs=None if logprobs is None else tuple(_token(*token) for token in logprobs),
                refused=tuple(map(_text, record.get("refused", ()))),
                model=None if model is None else _text(model),
                endpoint=None if endpoint is None else _text(endpoint),
                cached_tokens=min(n_input, _count(record.get("cached_tokens"))),
            )
        except (TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"expected a stored reply, got {line[:80]!r}: {error}") from error


class Client(Protocol):
    """Who answers requests: an endpoint, a Batch API, the offline stand-in."""

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:
        """The reply to a request.

        Args:
            request: What is asked.
            attempt: 0, and one more for each fresh sample after an unreadable reply.
            timeout_s: Seconds until the reply must be complete.

        Raises:
            JudgeUnavailableError: What can pass: 429, 5xx, time-out, dropped or garbled response.
            JudgeRequestError: This request is refused.
            JudgeStoppedError: All of them are (401, 404, 403 but for flagged ones).
        """

    async def close(self) -> None:
        """Close every connection."""


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
