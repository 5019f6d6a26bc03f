"""The ``openai`` package sends what is ours to send, and writes down nothing that is secret."""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
import ssl
import subprocess
import tempfile
from contextlib import nullcontext
from pathlib import Path

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


def test_the_environment_of_the_package_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another key nor an organisation, as single requests send none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-somebody")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-something")
    custom = "Authorization: Bearer sk-third\nX-Gateway: org-password"
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", custom)
    sent = _listed("http://127.0.0.1:{port}/v1", KEY)
    assert sent["authorization"] == f"Bearer {KEY}"
    assert not [value for value in sent.values() if "org-" in value or "proj-" in value]
    assert "authorization" not in _listed("http://127.0.0.1:{port}/v1", None)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate with openssl")
def test_a_certificate_of_ones_own_is_trusted_as_for_single_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that ``SSL_CERT_FILE`` names, and the system's: a company's gateway has such."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate}"
    names = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert _listed("https://localhost:{port}/v1", KEY, tls=tls)["authorization"] == f"Bearer {KEY}"


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


def test_a_user_in_the_url_is_sent_as_one() -> None:
    """As single requests send it."""
    sent = _listed("http://me:p%40ss@127.0.0.1:{port}/v1", None)
    assert sent["authorization"] == "Basic bWU6cEBzcw=="


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
