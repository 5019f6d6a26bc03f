"""What a faulty or hostile server may send in the place of an answer, one function for each.

``READ`` are odd and hold the reply all the same; ``PASSING`` hold none and may pass when asked
again; ``LOSING`` refuse one request; ``STOPPING`` refuse them all.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from raw_server import Asked, http
from told_questions import MODEL

HANG_S: Final = 8.0
"""Seconds after which a server that hangs closes the connection: longer than any time-out."""
_BLANKS: Final = b" " * 2**16
_CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_ODD: Final[list[object]] = [
    None, [], {}, "12", -5, float("nan"), float("inf"), True, 1.5, 10**30, {"prompt_tokens": []},
    {"prompt_tokens": -1, "completion_tokens": float("nan")}, {"prompt_tokens": 1},
    {"prompt_tokens": "9", "completion_tokens": {"n": 1}}, [[[]]], "logprobs",
    {"content": [{"token": 5}]}, {"content": [{"token": "8", "logprob": "x", "top_logprobs": [1]}]},
]  # fmt: skip
"""What is no count, no log-probability and no reason."""

_NO_OTHER: Final[list[object]] = [
    None, [], 5, True, "", " ", {"id": "x"}, "[key]", MODEL, MODEL.upper(), f"org/{MODEL}",
    f"{MODEL}-2024-08-06", f"models/{MODEL}-001", f"{MODEL}-latest",
]  # fmt: skip
"""What a completion may say of its model without saying that it is another one."""


@dataclass(slots=True)
class Say:
    """One answer to be given."""

    asked: Asked
    words: str
    """The reply."""
    writer: asyncio.StreamWriter
    rng: random.Random

    def payload(self, text: object = None, **fields: object) -> bytes:
        """The completion, with fields of its choice or of its own that are given."""
        message = {"role": "assistant", "content": self.words if text is None else text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        n_input = len(self.asked.body) // 4
        usage = {"prompt_tokens": n_input, "completion_tokens": len(self.words) // 4 + 1}
        name = self.asked.headers.get("x-request-id", "")
        own = {key: value for key, value in fields.items() if key in ("finish_reason", "logprobs")}
        rest = {key: value for key, value in fields.items() if key not in own}
        whole = {"id": f"chatcmpl-{name}", "choices": [{**choice, **own}], "usage": usage, **rest}
        return json.dumps(whole).encode()

    async def send(self, *pieces: bytes, pause_s: float = 0.0) -> None:
        """Write pieces, one after the other."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(pause_s)

    async def drip(self, start: bytes, piece: bytes, *, pause_s: float, most: int) -> None:
        """Write a start and then the same again and again."""
        await self.send(start)
        for _ in range(most):
            await self.send(piece, pause_s=pause_s)


Hostile = Callable[[Say], Awaitable[None]]


def _sends(make: Callable[[Say], bytes], *, close: bool = False) -> Hostile:
    async def send(say: Say) -> None:
        await say.send(make(say))
        if close:
            say.writer.close()

    return send


def _drips(start: bytes, piece: bytes, *, pause_s: float = 0.0, most: int = 10**6) -> Hostile:
    return lambda say: say.drip(start, piece, pause_s=pause_s, most=most)


def _error(value: object, status: int = 200, headers: str = "", **fields: object) -> Hostile:
    raw = json.dumps({"error": value, **fields}).encode()
    return _sends(lambda _: http(raw, status, headers))


async def _pieces(say: Say) -> None:
    raw = say.payload()
    size = max(1, len(raw) // 9)
    parts = [raw[start : start + size] for start in range(0, len(raw), size)]
    chunks = [f"{len(part):x};ext=1\r\n".encode() + part + b"\r\n" for part in parts]
    await say.send(_CHUNKED, *chunks, b"0\r\nTrailer: x\r\n\r\n", pause_s=0.001)


async def _doubled(say: Say) -> None:
    raw = http(say.payload())
    await say.send(raw[:-3])
    await asyncio.sleep(0.005)
    await say.send(raw[-3:] + raw)


async def _doubled_late(say: Say) -> None:
    # The request's name is in it: without, nothing would tell it from the next one's answer.
    raw = http(say.payload())
    await say.send(raw, pause_s=0.02)
    await say.send(raw)


async def _late(say: Say) -> None:
    """Answers when the time-out is over."""
    await asyncio.sleep(0.9)
    await say.send(http(say.payload()))


async def _hang(say: Say) -> None:
    await asyncio.sleep(HANG_S)
    say.writer.close()


async def _reset(say: Say) -> None:
    say.writer.write(http(say.payload())[:40])
    say.writer.transport.abort()


async def _bomb(say: Say) -> None:
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(b" " * 2**20) for _ in range(40)) + packer.flush()
    await say.send(http(packed, headers="Content-Encoding: gzip\r\n"))


READ: Final[Mapping[str, Hostile]] = {
    "plain": _sends(lambda say: http(say.payload())),
    "gzip": _sends(
        lambda say: http(gzip.compress(say.payload()), headers="Content-Encoding: gzip\r\n")
    ),
    "deflate": _sends(
        lambda say: http(zlib.compress(say.payload()), headers="Content-Encoding: deflate\r\n")
    ),
    "utf-16": _sends(lambda say: http(say.payload().decode().encode("utf-16"))),
    "bom": _sends(lambda say: http(b"\xef\xbb\xbf" + say.payload())),
    "pieces": _pieces,
    "no-length": _sends(lambda say: b"HTTP/1.0 200 OK\r\n\r\n" + say.payload(), close=True),
    "hint": _sends(lambda say: b"HTTP/1.1 103 Hint\r\n\r\n" * 3 + http(say.payload())),
    "odd-usage": _sends(lambda say: http(say.payload(usage=say.rng.choice(_ODD)))),
    "odd-reason": _sends(lambda say: http(say.payload(finish_reason=say.rng.choice(_ODD[:5])))),
    "odd-logprobs": _sends(lambda say: http(say.payload(logprobs=say.rng.choice(_ODD)))),
    "odd-fields": _sends(
        lambda say: http(say.payload(id=[1], model=None, object=7, error=None, x=[[]] * 50))
    ),
    "odd-model": _sends(lambda say: http(say.payload(model=say.rng.choice(_NO_OTHER)))),
    "parts": _sends(
        lambda say: http(say.payload([say.words[:5], {"type": "text", "text": say.words[5:]}]))
    ),
    "many-headers": _sends(
        lambda say: http(say.payload(), headers="".join(f"X-{n}: y\r\n" for n in range(80)))
    ),
    "doubled": _doubled,
    "doubled-at-once": _sends(lambda say: 2 * http(say.payload())),
    "doubled-late": _doubled_late,
}
PASSING: Final[Mapping[str, Hostile]] = {
    "late": _late,
    "hang": _hang,
    "slow-loris": _drips(http(b"", n_bytes=10**6), b" ", pause_s=0.05, most=100),
    "slow-headers": _drips(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", pause_s=0.05, most=100),
    "reset": _reset,
    "close": _sends(lambda _: b"", close=True),
    "truncated": _sends(lambda say: http(say.payload(), n_bytes=10**6)[:-9], close=True),
    "length-too-short": _sends(lambda say: http(say.payload(), n_bytes=30), close=True),
    "chunk-garbage": _sends(lambda say: _CHUNKED + b"zz\r\n" + say.payload(), close=True),
    "gzip-bomb": _bomb,
    "endless": _drips(http(b"", n_bytes=10**12), _BLANKS),
    "endless-chunks": _drips(_CHUNKED, b"10000\r\n" + _BLANKS + b"\r\n"),
    "endless-headers": _drips(b"HTTP/1.1 200 OK\r\n", b"X-Y: z\r\n" * 99),
    "endless-header": _drips(b"HTTP/1.1 200 OK\r\nX: ", _BLANKS),
    "no-gzip": _sends(lambda _: http(b"no gzip", headers="Content-Encoding: gzip\r\n")),
    "brotli": _sends(lambda _: http(b"abcdef", headers="Content-Encoding: br\r\n")),
    "html": _sends(lambda _: http(b"<html>Bad gateway</html>")),
    "empty": _sends(lambda _: http(b"")),
    "half-json": _sends(lambda say: http(say.payload()[:-20])),
    "nested": _sends(lambda _: http(b'{"choices":' + b"[" * 200_000)),
    "latin-1": _sends(lambda _: http('{"choices": "Käse"}'.encode("latin-1"))),
    "no-choices": _sends(lambda _: http(b'{"choices": []}')),
    "odd-choices": _sends(lambda _: http(b'{"choices": {"0": "no"}}')),
    "http-0.9": _sends(lambda _: b"hello, I am HTTP 0.9\r\n\r\n", close=True),
    "tls": _sends(lambda _: b"\x15\x03\x01\x00\x02\x02\x46", close=True),
    "error": _error({"message": "the provider is gone"}),
    "error-429": _error({"message": "slow down", "code": 429}, choices=[]),
    "error-502": _error({"message": "bad gateway", "code": "502"}, choices=None),
    "503": _error({"message": "busy"}, 503),
    "429": _error({"message": "slow"}, 429, "Retry-After: 0\r\n"),
    "429-wild": _error(
        {"message": "slow"}, 429, f"Retry-After: Wed, 21 Oct {'9' * 20} 07:28:00 GMT\r\n"
    ),
    "503-wild": _error({"message": "busy"}, 503, "Retry-After: inf\r\n"),
}
LOSING: Final[Mapping[str, Hostile]] = {
    "400": _error({"message": "this one is refused"}, 400),
    "413": _error({"message": "this one is refused"}, 413),
    "error-400": _error({"message": "this one is refused", "code": 400}),
    "error-422": _error({"message": "this one is refused", "code": "422"}, choices=[]),
}
STOPPING: Final[Mapping[str, Hostile]] = {
    "redirect": _error({"message": "moved"}, 307, "Location: http://127.0.0.1:9/v1\r\n"),
    "redirect-302": _error({"message": "moved"}, 302, "Location: //[\r\n"),
    "401": _error({"message": "who are you"}, 401),
    "error-403": _error({"message": "not you", "code": 403}, choices=[]),
    "error-404": _error({"message": "no such model", "type": "not_found_error"}),
    "another-model": _sends(lambda say: http(say.payload(model="tiny.gguf"))),
}
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "redirect": ("a redirect to",),
    "redirect-302": ("a redirect to",),
    "401": ("who are you",),
    "error-403": ("not you",),
    "error-404": ("no such model",),
    "another-model": ("answered as 'tiny.gguf'",),
    **dict.fromkeys(LOSING, ("this one is refused",)),
    **dict.fromkeys(PASSING, ("gave up on this request", "gave no reply to any request")),
}
"""Words of the reason that each may cost a question its verdict with."""


def all_of() -> dict[str, Hostile]:
    """Every answer by its name."""
    return {**READ, **PASSING, **LOSING, **STOPPING}
