"""What a process and its decoders say to each other."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from lmms_eval_captions.model_wrappers.video.decode_messages import receive, send


@pytest.mark.parametrize("n_bytes", [0, 1, 3_000_000])
def test_a_message_arrives_as_it_was_sent(n_bytes: int) -> None:
    """Names of any script, and more bytes than a socket takes at once."""
    header: dict[str, object] = {
        "path": "/clips/三 \udce9.mp4",
        "max_pixels": None,
        "timeout_s": 0.5,
    }
    payload = bytes(range(256)) * (n_bytes // 256) + b"!" * (n_bytes % 256)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send, args=(ours, header, payload))
        sender.start()
        assert receive(theirs) == (header, bytearray(payload))
        sender.join()


def test_a_side_that_is_gone_is_told_from_one_that_is_slow() -> None:
    """In the midst of a message, too."""
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(b"\0\0\0\x02\0\0\0\x09{")
            with pytest.raises(TimeoutError):
                receive(theirs, until_s=time.monotonic() + 0.05)
        with pytest.raises(EOFError):
            receive(theirs)
