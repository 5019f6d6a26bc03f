"""The ``openai`` package sends what is ours to send, and writes down nothing that is secret."""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import tempfile
from contextlib import nullcontext

import pytest

from lmms_eval_captions.judges.endpoint.batch.api import BatchApi
from lmms_eval_captions.judges.errors import JudgeError
from raw_server import Asked, RawServer, http

KEY = "sk-a-key-of-some-length-0123456789"


def _listed(
    url: str,
    key: str | None,
    headers: str = "",
    status: int = 200,
    tls: ssl.SSLContext | None = None,
) -> dict[str, str]:
    """Headers of a request for the list of batches."""
    seen: dict[str, str] = {}

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.update(asked.headers)
        writer.write(http(b'{"data": []}', status, headers))

    async def run(address: str) -> None:
        api = BatchApi(address, key, patience_s=0.0, backoff_s=0.01)
        try:
            assert await api.find("nobody") is None
        finally:
            await api.close()

    with RawServer(answer, tls) as server:
        asyncio.run(run(url.format(port=server.port)))
    return seen


def test_a_disk_that_is_full_for_a_moment_loses_no_download(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a batch gave is downloaded again, for as long as a provider is waited for."""
    answers = [OSError(errno.ENOSPC, "No space left on device"), None]

    class FullFile(tempfile.SpooledTemporaryFile[bytes]):
        def write(self, raw: bytes) -> int:  # type: ignore[override]  # one kind of bytes
            error = answers.pop(0)
            if error is not None:
                raise error
            return super().write(raw)

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(http(b"the replies"))

    async def run(url: str) -> bytes:
        api = BatchApi(url, KEY, patience_s=5.0, backoff_s=0.01)
        try:
            with await api.content("file-1") as file:
                return file.read()
        finally:
            await api.close()

    monkeypatch.setattr(
        "lmms_eval_captions.judges.endpoint.batch.api.SpooledTemporaryFile", FullFile
    )
    with RawServer(answer) as server:
        assert asyncio.run(run(server.url)) == b"the replies"
    assert not answers


@pytest.mark.parametrize("status", [200, 500])
def test_the_finest_logs_hold_no_key(status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Where a server echoes it in a header, and nobody asked for so fine logs of ours."""
    caplog.set_level(logging.DEBUG)
    _listed("http://me:S3CRET-1234567@127.0.0.1:{port}/v1", None, "X-Echo: S3CRET-1234567\r\n")
    fails = pytest.raises(JudgeError) if status == 500 else nullcontext()
    with fails as error:
        _listed("http://127.0.0.1:{port}/v1", KEY, f"X-Echo: {KEY}\r\n", status)
    assert KEY not in str(error)
    assert KEY not in caplog.text
    assert "S3CRET" not in caplog.text
