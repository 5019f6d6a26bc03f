"""What goes over the wire, bounded: connections that are in step, answers of a size that is read.

A connection that is kept for the next request carries whatever the server sends on it, and what was
sent beyond the answer would be read as the next request's. So a connection is used again only where
nothing came on it after its last answer. What comes later, while the next request is under way,
looks like its answer; only a server that repeats the ``X-Request-ID`` that it was sent (vLLM does,
in the completion's ``id``) can be told to be out of step then, see :class:`RequestNames`.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from functools import cache
from itertools import count
from typing import IO, TYPE_CHECKING, Final

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

CONNECT_TIMEOUT_S: Final = 20.0
"""Seconds until a connection must be there."""
MOST_BYTES: Final = 16 * 2**20
"""Largest answer, as it came and unpacked. The largest that a judge gives is some 300 KB: 500
tokens with 20 alternatives each."""
MOST_FILE_BYTES: Final = 4 * 2**30
"""Largest file of a batch."""
MOST_ERROR_BYTES: Final = 2**16
"""Of an answer other than 200, all that is looked at."""
_PIECE_BYTES: Final = 2**18
"""Of an answer, unpacked at once."""
_KEPT_S: Final = 30.0
"""Seconds that a connection is kept for the next request."""


class OutOfStepError(aiohttp.ClientConnectionError):
    """A server sent more than it was asked for, or the answer to another request."""


class TooLargeError(aiohttp.ClientPayloadError):
    """An answer is larger than what is read."""


@cache
def timeout_of(total_s: float) -> aiohttp.ClientTimeout:
    """Time-outs of a request that must be answered, to its last byte, within so many seconds."""
    return aiohttp.ClientTimeout(total=total_s, sock_connect=CONNECT_TIMEOUT_S)


def open_session(
    headers: Mapping[str, str], *, timeout_s: float = 900.0, reuse: bool = True
) -> aiohttp.ClientSession:
    """A session that keeps no cookies; must be made inside the event loop.

    Args:
        headers: Of every request.
        timeout_s: Of every request that has none of its own.
        reuse: Whether a connection serves more than one request.
    """
    return aiohttp.ClientSession(
        # Unpacked here, piece by piece: how much aiohttp unpacks at once depends on its version.
        auto_decompress=False,
        headers={"Accept-Encoding": "gzip, deflate", **headers},
        connector=_InStepConnector(
            limit=0, force_close=not reuse, keepalive_timeout=_KEPT_S if reuse else None
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=timeout_of(timeout_s),
    )


class _InStepConnector(aiohttp.TCPConnector):
    """Hands out no connection on which something lies that nobody asked for."""

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A new connection, or a kept one on which nothing came since its last answer.

        Raises:
            OutOfStepError: If something did.
        """
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        if protocol is not None and protocol.should_close:
            connection.close()
            raise OutOfStepError("the server sent something that it was not asked for")
        return connection


async def read_answer(response: aiohttp.ClientResponse) -> bytes:
    """The body of an answer, unpacked; of one other than 200 the first 64 KB.

    Where it is not read to its end, its connection is closed.

    Raises:
        TooLargeError: If an answer of 200 is larger than 16 MB.
        aiohttp.ClientPayloadError: If one cannot be unpacked.
    """
    is_good = response.status == 200
    most_bytes = MOST_BYTES if is_good else MOST_ERROR_BYTES
    pieces: list[bytes] = []
    n_bytes = 0
    try:
        unpack = _unpacker(response.headers.get("Content-Encoding", ""))
        while n_bytes <= most_bytes and (chunk := await response.content.readany()):
            for piece in (chunk,) if unpack is None else unpack(chunk):
                pieces.append(piece)
                n_bytes += len(piece)
                if n_bytes > most_bytes:
                    break
    except aiohttp.ClientPayloadError:
        # What an error's status says counts whatever becomes of its words.
        if is_good:
            raise
    if is_good and n_bytes > most_bytes:
        raise _too_large(most_bytes)
    return b"".join(pieces)


async def save_answer(
    chunks: AsyncIterable[bytes], encoding: str, file: IO[bytes], *, most_bytes: int
) -> None:
    """Write the body of an answer into a file, unpacked.

    Args:
        chunks: The body as it comes.
        encoding: What it is packed with, of its ``Content-Encoding``.
        file: Where to.
        most_bytes: Largest body, unpacked.

    Raises:
        TooLargeError: If it is larger.
        aiohttp.ClientPayloadError: If it cannot be unpacked.
    """
    unpack = _unpacker(encoding)
    n_bytes = 0
    async for chunk in chunks:
        for piece in (chunk,) if unpack is None else unpack(chunk):
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise _too_large(most_bytes)
            file.write(piece)


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]] | None:
    """What unpacks the chunks of an answer, ``None`` where it is not packed.

    Raises:
        aiohttp.ClientPayloadError: If it is packed in a way that was not asked for.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        raise aiohttp.ClientPayloadError(f"an answer packed as {name[:40]!r}, not as asked for")
    # ``deflate`` comes with the header of zlib, or without one.
    stream = None if name == "deflate" else zlib.decompressobj(16 + zlib.MAX_WBITS)

    def unpack(chunk: bytes) -> Iterator[bytes]:
        nonlocal stream
        if stream is None:
            has_header = chunk[0] & 0x0F == zlib.DEFLATED
            stream = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
        try:
            while not stream.eof:
                piece = stream.decompress(chunk, _PIECE_BYTES)
                chunk = stream.unconsumed_tail
                if piece:
                    yield piece
                elif not chunk:
                    break
        except zlib.error as error:
            raise aiohttp.ClientPayloadError(f"an answer that is no {name}: {error}") from error

    return unpack


def _too_large(most_bytes: int) -> TooLargeError:
    return TooLargeError(f"an answer of more than {most_bytes >> 20:,} MB")


class RequestNames:
    """Names of requests, so that a server that repeats them shows which request it answers."""

    HEADER: Final = "X-Request-ID"

    def __init__(self) -> None:
        self._start = f"lec-{secrets.token_hex(6)}-"
        self._start_raw = self._start.encode()
        self._numbers = count()

    def draw(self, body: bytes) -> str:
        """A name that no other request has; its start is that of the body.

        A gateway that caches answers repeats the name of an earlier request for the same body.
        """
        return f"{self._start}{zlib.crc32(body):08x}-{next(self._numbers):x}"

    def is_of_another(self, name: str, response: aiohttp.ClientResponse, raw: bytes) -> bool:
        """Whether an answer repeats the name that a request for another body had."""
        header = response.headers.get(self.HEADER, "")
        if self._start_raw not in raw and self._start not in header:
            return False
        of_body = name[: name.rindex("-") + 1]
        return (self._start in header and of_body not in header) or (
            self._start_raw in raw and of_body.encode() not in raw
        )
