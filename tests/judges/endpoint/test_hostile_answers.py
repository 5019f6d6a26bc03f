"""Hostile answers over HTTP are bounded, in step and from the judge's own address."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import traceback
import tracemalloc
import zlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import pytest

from chains import request_of
from lmms_eval_captions.judges.endpoint.batch_api import BatchApi, read_results
from lmms_eval_captions.judges.endpoint.client import ChatClient, listed_models
from lmms_eval_captions.judges.endpoint.failures import Source
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)
from raw_server import Answer, Asked, RawServer, completion, http

REQUEST = request_of("a question", model="m", params={})
MB = 2**20
_TIMEOUT_S = 1.0


def _ask(url: str, *, timeout_s: float = 20.0, key: str | None = None) -> Reply:
    async def run() -> Reply:
        client = ChatClient((url,), key)
        try:
            return await client.complete(REQUEST, 0, timeout_s=timeout_s)
        finally:
            await client.close()

    return asyncio.run(run())


def _refused(url: str, **settings: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        _ask(url, **settings)
    return caught.value


def _write(*pieces: bytes, then_close: bool = True) -> Answer:
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then_close:
            writer.close()
        else:
            await asyncio.sleep(60.0)

    return answer


def _for_ever(
    start: bytes, piece: Callable[[int], bytes], *, pause_s: float = 0.0, most: int = 10**9
) -> Answer:
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        for number in range(most):
            writer.write(piece(number))
            await writer.drain()
            await asyncio.sleep(pause_s)

    return answer


@contextmanager
def _at_most(most_bytes: int) -> Iterator[None]:
    """Checks the memory that Python objects take within, those of the server included."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most_bytes
    finally:
        tracemalloc.stop()


def _bomb(n_megabytes: int) -> bytes:
    """So many megabytes of blanks, packed into some kilobytes."""
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(b" " * MB) for _ in range(n_megabytes)) + packer.flush()
    return http(packed, headers="Content-Encoding: gzip\r\n")


_CHUNK = b"10000\r\n" + b" " * 2**16 + b"\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            _for_ever(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                lambda _: _CHUNK,
                most=3200,
            ),
            id="chunked",
        ),
        pytest.param(_write(_bomb(200)), id="gzip-bomb"),
    ],
)
def test_an_answer_is_read_to_16_mb_and_no_further(answer: Answer) -> None:
    """200 MB, as they come or packed, take less than 64 MB of memory, and the reason says so."""
    with RawServer(answer) as server, _at_most(64 * MB):
        error = _refused(server.url)
    assert isinstance(error, JudgeUnavailableError)
    assert "an answer of more than 16 MB" in str(error)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, JudgeStoppedError), (400, JudgeRequestError), (500, JudgeUnavailableError)],
)
def test_an_endless_error_is_what_its_status_says(status: int, kind: type[JudgeError]) -> None:
    start = http(b"no, because ", status, n_bytes=10**12)
    with RawServer(_for_ever(start, lambda _: b"of this " * 8192)) as server, _at_most(16 * MB):
        error = _refused(server.url)
    assert type(error) is kind
    assert f"answered {status}: no, because of this" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(http(b"abc", 401, "Content-Encoding: gzip\r\n"), id="no-gzip"),
        pytest.param(http(b"no key", 401, n_bytes=99), id="cut"),
    ],
)
def test_an_error_that_cannot_be_read_is_what_its_status_says(answer: bytes) -> None:
    """A wrong key is one, whatever becomes of the words around it."""
    with RawServer(_write(answer)) as server:
        error = _refused(server.url)
    assert isinstance(error, JudgeStoppedError)
    assert "answered 401" in str(error)


_HEAD = b"HTTP/1.1 200 OK\r\n"
_GARBAGE = bytes(range(256)) * 64


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_for_ever(_HEAD + b"X: ", lambda _: b"y" * 4096), id="endless-header"),
        pytest.param(_for_ever(http(b"", n_bytes=10**6), lambda _: b" ", pause_s=0.02), id="slow"),
        pytest.param(_write(http(completion("yes"), n_bytes=10**6)), id="length-too-long"),
        pytest.param(
            _write(http(completion("yes"), n_bytes=10**6), then_close=False), id="and-kept-open"
        ),
        pytest.param(_write(_GARBAGE), id="garbage"),
        pytest.param(_write(b""), id="early-close"),
        pytest.param(_write(b"", then_close=False), id="nothing"),
        pytest.param(
            _write(
                http(
                    gzip.compress(completion("x" * 999))[:60], headers="Content-Encoding: gzip\r\n"
                )
            ),
            id="gzip-cut",
        ),
        pytest.param(_write(http('{"choices": "Käse"}'.encode("latin-1"))), id="latin-1"),
        pytest.param(_write(http(b"[" * 10**6)), id="nested"),
        pytest.param(_write(http(b"")), id="empty"),
    ],
)
def test_nonsense_on_the_wire_can_pass_and_hangs_nothing(answer: Answer) -> None:
    """It ends within the time-out, in an error that is tried again, and takes little memory."""
    with RawServer(answer) as server, _at_most(64 * MB):
        worked_s = time.thread_time()
        error = asyncio.run(_refused_in_time(server.url))
        worked_s = time.thread_time() - worked_s
    assert isinstance(error, JudgeUnavailableError)
    assert worked_s < _TIMEOUT_S + 2.0
    assert len(str(error)) < 1000


async def _refused_in_time(url: str) -> BaseException | None:

    async def ask() -> None:
        client = ChatClient((url,), None)
        try:
            await client.complete(REQUEST, 0, timeout_s=_TIMEOUT_S)
        finally:
            await client.close()

    asking = asyncio.ensure_future(ask())
    await asyncio.wait({asking}, timeout=_TIMEOUT_S)
    for _ in range(200):
        if asking.done():
            return asking.exception()
        await asyncio.sleep(0.01)
    asking.cancel()
    pytest.fail("the request had not ended long after its time-out")


def test_no_traceback_tells_a_key_that_the_wire_echoes() -> None:
    """Not even where a log cannot be written, which shows all errors that are being handled."""
    key = "sk-a1b2c3d4e5f6"
    with RawServer(_write(f"HTTP/9 Bearer {key}\r\n\r\n".encode())) as server:
        error = _refused(server.url, key=key)
        with pytest.raises(JudgeUnavailableError) as caught:
            asyncio.run(listed_models(server.url, key))
    for shown in (error, caught.value):
        assert "[key]" in str(shown)
        assert key not in "".join(traceback.format_exception(shown))


def test_plain_text_where_tls_is_expected_can_pass() -> None:
    """A wrong scheme is said in words, within the time-out."""
    with RawServer(_write(http(completion("yes")))) as server:
        error = _refused(server.url.replace("http:", "https:"), timeout_s=_TIMEOUT_S)
    assert isinstance(error, JudgeUnavailableError)


_KEY = "sk-a-key-of-some-length-0123456789"


@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize("place", ["other-port", "same-host", "relative"])
def test_a_redirect_is_not_followed(status: int, place: str) -> None:
    """It names where it points to, without secrets, and nothing is sent there."""
    n_there = 0

    async def there(_: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal n_there
        n_there += 1
        writer.write(http(completion("yes")))

    with RawServer(there) as other:

        async def here(asked: Asked, writer: asyncio.StreamWriter) -> None:
            start = {
                "other-port": f"http://me:S3CRET@127.0.0.1:{other.port}",
                "same-host": f"http://127.0.0.1:{server.port}",
                "relative": "",
            }[place]
            if asked.path.startswith("/v2"):
                await there(asked, writer)
                return
            goal = f"{start}/v2/chat/completions?key={_KEY}"
            writer.write(http(b"moved", status, headers=f"Location: {goal}\r\n"))

        with RawServer(here) as server:
            error = _refused(server.url, key=_KEY)
            port = other.port if place == "other-port" else server.port
    assert isinstance(error, JudgeStoppedError)
    assert f"answered {status}, a redirect to 'http://127.0.0.1:{port}/v2'" in str(error)
    assert "LMMS_CAPTIONS_JUDGE_URL" in str(error)
    assert "S3CRET" not in str(error)
    assert _KEY not in str(error)
    assert n_there == 0


def _use_api(url: str, use: Callable[[BatchApi], Coroutine[Any, Any, object]]) -> object:
    async def run() -> object:
        api = BatchApi(url, _KEY)
        try:
            return await use(api)
        finally:
            await api.close()

    return asyncio.run(run())


def test_the_batch_api_follows_no_redirect() -> None:
    """Files go to the provider's own address, and so does the key."""
    headers = "Location: http://127.0.0.1:9/files\r\n"
    answer = _write(http(b"moved", 307, headers=headers))
    with RawServer(answer) as server, pytest.raises(JudgeStoppedError, match="a redirect to"):
        _use_api(server.url, lambda api: api.upload(b"{}", "requests.jsonl"))


def test_a_large_file_of_a_batch_is_read_line_by_line() -> None:
    """100 MB of replies take little memory; a line larger than an answer may be has no reply."""
    body = json.loads(completion("yes"))
    lines = [
        json.dumps({"custom_id": f"r{n}", "response": {"status_code": 200, "body": body}}).encode()
        for n in range(3)
    ]
    content = (
        *(lines[0], b"\n", *(b" " * MB for _ in range(80)), b"\n"),
        *(lines[1], b"\n", *(b"x" * MB for _ in range(20)), b"\n", lines[2]),
    )
    n_bytes = sum(map(len, content))

    async def use(api: BatchApi) -> object:
        with TemporaryFile() as file:
            await api.download("file-1", file)
            assert file.seek(0, 2) == n_bytes
            file.seek(0)
            return read_results([file], Source("http://host/v1"))

    with RawServer(_write(http(b"", n_bytes=n_bytes), *content)) as server, _at_most(150 * MB):
        outcomes = _use_api(server.url, use)
    assert isinstance(outcomes, dict)
    assert {name: outcome.text for name, outcome in outcomes.items()} == {
        "r0": "yes",
        "r1": "yes",
        "r2": "yes",
    }
