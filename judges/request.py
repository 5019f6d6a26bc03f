"""One chat request to a judge, its bytes on the wire and its key in the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lmms_eval_captions.judges.prompt import Message

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

    def key(self, body: bytes) -> bytes:
        """Store key, 16 bytes: everything that moves a verdict (the body, the protocol version)."""
        digest = hashlib.blake2b(self.protocol.encode(), digest_size=16)
        digest.update(b"\0")
        digest.update(body)
        return digest.digest()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    text: str
    finish_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0

    def to_json(self) -> bytes:
        """One line of JSON for the store."""
        record = {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
        return _ENCODE(record).encode("ascii")

    @classmethod
    def from_json(cls, line: bytes) -> Reply:
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError: If the line is not one that :meth:`to_json` wrote.
        """
        try:
            return cls(**json.loads(line.decode("ascii")))
        except TypeError as error:
            raise ValueError(f"expected a stored reply, got {line[:80]!r}") from error


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
