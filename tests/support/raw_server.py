"""A server of raw bytes for loopback: each test or campaign writes what goes over the wire.

async def one_answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(http(completion("yes")))

with RawServer(one_answer) as server:
    ...  # server.url
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes
    connection: int
    """Number of its connection, counted from 0."""
    nth: int
    """Number of requests that its connection had before."""

    @property
    def payload(self) -> dict[str, Any]:
        """The body's JSON."""
        payload: dict[str, Any] = json.loads(self.body)
        return payload


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]
"""Writes what a request gets; a closed writer ends the connection."""


def completion(text: object, **fields: object) -> bytes:
    """A chat completion that says this, with an honest-looking ``usage`` unless fields say else."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 50, "completion_tokens": len(str(text)) // 4 + 1}
    return json.dumps({"choices": [choice], "usage": usage, **fields}).encode()


def http(body: bytes, status: int = 200, headers: str = "", *, n_bytes: int | None = None) -> bytes:
    """An HTTP/1.1 answer.

    Args:
        body: Its bytes.
        status: Its status.
        headers: Further lines, each with its end.
        n_bytes: What ``Content-Length`` says, where it is to be a lie.
    """
    length = len(body) if n_bytes is None else n_bytes
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length}\r\n{headers}\r\n".encode("latin-1") + body


class RawServer:
    """The server in a thread of its own; a context manager.

    Args:
        answer: Called for each request, one after the other on a connection.
        tls: What it speaks HTTPS with, where it does.
    """

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self._tls = tls
        self.n_connections = 0
        self.n_requests = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Base URL for ``LMMS_CAPTIONS_JUDGE_URL``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        make = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, ssl=self._tls)
        server = self._loop.run_until_complete(make)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, nth = self.n_connections, 0
        self.n_connections += 1
        try:
            while not writer.is_closing():
                asked = await _read(reader, connection, nth)
                nth += 1
                self.n_requests += 1
                await self.answer(asked, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # the client is gone, or does not speak HTTP
        except asyncio.CancelledError:
            pass  # the end
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, connection: int, nth: int) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = head[0].split(" ", 2)
    return Asked(method, path, headers, body, connection, nth)
