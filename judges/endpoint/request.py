"""Requests, replies, and what came of asking."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar

from lmms_eval_captions.judges.errors import Failure
from lmms_eval_captions.judges.files import whole_json

Message = dict[str, object]
"""A message of a chat: ``role``, and ``content`` as text or as OpenAI's content parts."""
Shown = Literal["", "pictures", "a video"]
"""Media that a request shows."""
SHOWN: Final[tuple[Shown, ...]] = ("", "pictures", "a video")
LEXICAL: Final = "lexical"
"""Name of the offline stand-in judge, which needs no endpoint."""

RESAMPLE_TEMPERATURE = 0.7
"""Temperature of a repeated request. Deviation: the papers ask once; at temperature 0 it would
return the unreadable text again."""


_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode


def encode(payload: Mapping[str, object]) -> bytes:
    """Encode JSON without white space, in ASCII."""
    return _ENCODE(payload).encode("ascii")


def is_offline(model: str | None) -> bool:
    """Return whether a model needs no endpoint; its scores are a smoke test."""
    return model == LEXICAL


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded picture of a request."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a model; what has a default is not in the store's key."""

    protocol: str
    """Name and version of the protocol, e.g. ``vdc_answer:1``."""
    model: str
    messages: Sequence[Message]
    params: Mapping[str, object]
    """Parameters of the chat completion, ``temperature`` and ``max_tokens`` among them."""
    seed: int
    timeout_s: float
    stand_in: Callable[[], str]
    """The reply of the offline stand-in ``lexical``."""
    left_out: tuple[str, ...] = ()
    """Parameters that are not sent because the model refuses them."""
    added_params: Mapping[str, object] | None = None
    """Parameters that are sent in addition."""
    shrink: Callable[[int], Sequence[Message] | None] | None = field(default=None, compare=False)
    """Messages with pictures halved so many times, ``None`` if they cannot be smaller."""
    instead: Sequence[Message] | None = None
    """Messages that are sent in place of ``messages``."""
    about: bytes | None = field(default=None, compare=False)
    """Digest of the caption, which chooses the replica."""
    until_s: float | None = field(default=None, compare=False)
    """Time (:func:`time.monotonic`) from which it is not sent any more."""
    _bodies: dict[int, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def parameters(self, attempt: int) -> dict[str, object]:
        """Return the parameters including the seed."""
        parameters = {**self.params, "seed": self.seed}
        if attempt:
            parameters["seed"] = self.seed + 1_000_003 * attempt
            temperature = parameters.get("temperature")
            usual = float(temperature) if isinstance(temperature, int | float) else 0.0
            parameters["temperature"] = max(RESAMPLE_TEMPERATURE, usual)
        return parameters

    @property
    def sent_messages(self) -> Sequence[Message]:
        """Messages that go over the wire."""
        return self.messages if self.instead is None else self.instead

    @property
    def shown(self) -> Shown:
        """Media in the messages."""
        parts = (m["content"] for m in self.messages if isinstance(m.get("content"), list))
        types = {part.get("type") for content in parts for part in content}  # type: ignore[attr-defined]
        if "video_url" in types:
            return "a video"
        return "pictures" if "image_url" in types else ""

    def body(self, attempt: int) -> bytes:
        """Return the JSON body, of which the key is made, in ASCII: captions have surrogates."""
        body = self._bodies.get(attempt)
        if body is None:
            asked = {"model": self.model, "messages": self.messages, **self.parameters(attempt)}
            body = encode(asked)
            self._bodies.clear()
            self._bodies[attempt] = body
        return body

    def sent_as(
        self,
        left_out: tuple[str, ...] = (),
        added_params: Mapping[str, object] | None = None,
        instead: Sequence[Message] | None = None,
    ) -> Request:
        """Return the same request, under the same key, with another form on the wire."""
        request = replace(self, left_out=left_out, added_params=added_params, instead=instead)
        request._bodies.update(self._bodies)
        return request

    def key(self, attempt: int) -> bytes:
        """Return the store's key, 16 bytes, of everything that affects a verdict."""
        digest = hashlib.blake2b(self.protocol.encode() + b"\0", digest_size=16)
        digest.update(self.body(attempt))
        return digest.digest()

    @property
    def is_too_late(self) -> bool:
        """Return whether it is not to be sent any more."""
        return self.until_s is not None and time.monotonic() >= self.until_s


class NumberToken(NamedTuple):
    """A token of a reply that holds a digit, or the first one after such tokens."""

    start: int
    """Position of its first character in the reply's text; negative if white space that the token
    begins with was cut from the text."""
    text: str
    alternatives: Mapping[str, float]
    """Log-probabilities of the likeliest tokens here, the token itself among them; all that hold
    no digit are one, the empty string."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request."""

    text: str
    finish_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    logprobs: Sequence[NumberToken] | None = None
    """Tokens that write numbers, if the request asked for ``logprobs`` and got them."""
    refused: tuple[str, ...] = ()
    """Parameters that the model refused; it was asked without them."""
    is_estimated: bool = False
    """The token counts are ours; not stored."""
    is_final: bool = False
    """Asking again would give the same text; not stored."""
    model: str | None = None
    """Name under which the model answered."""
    endpoint: str | None = None
    """Name (:func:`.urls.endpoint_name`) of the address that answered."""
    cached_tokens: int = 0
    is_only_reasoning: bool = False
    """The text is empty and the server sent reasoning in a separate field."""
    id: str | None = None
    """The completion's id; not stored."""

    def to_json(self) -> bytes:
        """Return one line of JSON for the store."""
        record: dict[str, object] = {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
        if self.logprobs is not None:
            record["logprobs"] = self.logprobs
        for name in ("refused", "model", "endpoint", "cached_tokens", "is_only_reasoning"):
            if value := getattr(self, name):
                record[name] = value
        return encode(record)

    @classmethod
    def from_json(cls, line: bytes) -> Reply:
        """Read what :meth:`to_json` wrote."""
        try:
            record = json.loads(whole_json(line.decode("ascii")))
            record["refused"] = tuple(record.get("refused", ()))
            if record.get("logprobs") is not None:
                record["logprobs"] = tuple(
                    NumberToken(int(start), text, {name: float(log) for name, log in logs.items()})
                    for start, text, logs in record["logprobs"]
                )
            reply = cls(**record)
        except (TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"expected a stored reply, got {line[:80]!r}: {error}") from error
        if not (isinstance(reply.text, str) and isinstance(reply.input_tokens, int)):
            raise ValueError(f"expected a stored reply, got {line[:80]!r}")  # noqa: TRY004 - of the line
        return reply


class Client(Protocol):
    """An endpoint or its Batch API."""

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:
        """Return the reply to a request; a :class:`JudgeError` if there is none."""

    async def close(self) -> None:
        """Close every connection."""


T = TypeVar("T")
R = TypeVar("R")

UNREADABLE: Final = "unreadable reply"
"""Start of the reason of a request whose replies were all unreadable; they are kept."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens; replies from the store count as nothing."""

    n_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused: tuple[str, ...] = ()
    """Parameters that the model refused, such as ``seed``, of stored replies too."""
    served: tuple[str, ...] = ()
    """Names under which it answered, if they say more than the name asked for."""

    def __add__(self, other: Usage) -> Usage:
        if other is NO_USAGE:
            return self
        return Usage(
            self.n_calls + other.n_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            _merged(self.refused, other.refused),
            _merged(self.served, other.served),
        )


NO_USAGE: Final = Usage()


def _merged(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *others))) if others else names


class Outcome(TypedDict):
    """The part of a judgement that comes from its requests."""

    reply: str
    reason: str | None
    failure: Failure | None
    cached: bool
    usage: Usage


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """The outcome of one request."""

    value: T | None
    """The value that was read; ``None`` if the request is unscored."""
    reply: str
    """The judge's raw text, the last one if it was asked again; empty if none came."""
    reason: str | None
    cached: bool
    """Every reply came from the store."""
    usage: Usage
    failure: Failure | None = None

    def outcome(self, *earlier: Asked[Any]) -> Outcome:
        """Return the outcome of this request and of the steps before it."""
        steps = (*earlier, self)
        return {
            "reply": self.reply,
            "reason": self.reason,
            "failure": self.failure,
            "cached": all(step.cached for step in steps),
            "usage": reduce(add, (step.usage for step in steps)),
        }

    def no_answer(self) -> Outcome:
        """Return the outcome of a first step that gave no answer, so that it is the last."""
        return {**self.outcome(), "reason": f"no answer from the caption: {self.reason}"}


class Ask(Protocol):
    """Puts one request to the judge; several may be gathered."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Ask, read the reply, and ask again if it cannot be read. Never raises."""


About = bytes | Sequence[bytes] | None
"""Digest of the caption that chains are about, or one for each of them."""
Chain = Callable[[Ask], Awaitable[R]]
"""The requests of one question, one after the other or several at once, up to its result."""
