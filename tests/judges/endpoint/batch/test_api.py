"""The ``openai`` package sends what is ours to send, and writes down nothing that is secret."""

from __future__ import annotations

import asyncio
import logging
import ssl
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
        api = BatchApi(address, key)
        try:
            assert await api.find("nobody") is None
        finally:
            await api.close()

    with RawServer(answer, tls) as server:
        asyncio.run(run(url.format(port=server.port)))
    return seen


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
