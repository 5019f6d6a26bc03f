"""What a process and its decoders say to each other: a header of JSON, and raw bytes."""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

_LENGTHS: Final = struct.Struct(">II")
"""Bytes of the header and of what follows it."""


def send(channel: socket.socket, header: Mapping[str, object], payload: bytes = b"") -> None:
    """Write one message.

    Raises:
        OSError: If nobody listens any more.
    """
    text = json.dumps(header).encode("ascii")
    channel.sendall(_LENGTHS.pack(len(text), len(payload)) + text + payload)


def receive(
    channel: socket.socket, *, until_s: float | None = None
) -> tuple[dict[str, object], bytearray]:
    """Read one message.

    Args:
        channel: The stream.
        until_s: Moment of the monotonic clock at which to stop waiting; by default never.

    Raises:
        EOFError: If the other side is gone.
        TimeoutError: If the moment has come.
    """
    n_header, n_payload = _LENGTHS.unpack(_exactly(channel, _LENGTHS.size, until_s))
    header = json.loads(_exactly(channel, n_header, until_s))
    return header, _exactly(channel, n_payload, until_s)


def _exactly(channel: socket.socket, n_bytes: int, until_s: float | None) -> bytearray:
    data = bytearray(n_bytes)
    view = memoryview(data)
    while view:
        channel.settimeout(None if until_s is None else max(1e-3, until_s - time.monotonic()))
        try:
            n_read = channel.recv_into(view)
        except ConnectionResetError:
            n_read = 0
        if not n_read:
            raise EOFError("the other side is gone")
        view = view[n_read:]
    return data
