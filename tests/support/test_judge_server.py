"""The scripted judge server ends cleanly."""

from __future__ import annotations

import gc
import socket
import threading
import warnings

from judge_server import JudgeServer


def test_connections_that_open_while_it_ends_are_closed() -> None:
    """No socket is left to the garbage collector, whose warning fails a later test."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            _end_amid_connections()
            gc.collect()
    assert [str(warning.message) for warning in caught] == []


def _end_amid_connections() -> None:
    clients: list[socket.socket] = []
    connected = threading.Event()

    def connect(port: int) -> None:
        try:
            while len(clients) < 200:
                clients.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                connected.set()
        except OSError:
            pass

    with JudgeServer() as server:
        thread = threading.Thread(target=connect, args=(server.port,))
        thread.start()
        connected.wait()
    thread.join()
    for client in clients:
        client.close()
