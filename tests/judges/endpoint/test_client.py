"""The client itself: through the environment's proxy, and past what else the environment holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from chains import request_of
from judge_server import JudgeServer
from lmms_eval_captions.judges.endpoint.batch_api import BatchApi
from lmms_eval_captions.judges.endpoint.client import ChatClient
from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.failures import Source, failure
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.endpoint.urls import proxy_of
from lmms_eval_captions.judges.errors import (
    JudgeStoppedError,
    JudgeUnavailableError,
    SettingsError,
)
from lmms_eval_captions.judges.settings import read_settings

T = TypeVar("T")
C = TypeVar("C", ChatClient, BatchApi)

REQUEST = request_of("a \n\nPredicted Answer: b", model="m", params={})


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names no proxy, whatever this machine's does."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_the_outside_world_is_reached_through_the_proxy(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests go to the proxy, whole URL and key."""
    # Nothing but the proxy, which is the server itself here, can resolve this name.
    proxy = serve(key="secret")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    reply = _with(lambda: ChatClient(("http://judge.example.org/v1",), "secret"), _ask)
    assert reply.text.startswith("{'pred': ")
    assert proxy.counts.n_answered == 1


def test_this_machine_is_reached_without_the_proxy(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge on loopback is no business of a proxy."""
    server, proxy = serve(), serve()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    _with(lambda: ChatClient((server.url,), None), _ask)
    assert (server.counts.n_answered, proxy.counts.n_requests) == (1, 0)


def test_a_netrc_entry_of_the_host_does_not_get_in_the_keys_way(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A password in a .netrc is not sent in place of the key, nor an error."""
    proxy = serve(key="secret")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine judge.invalid login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    _with(lambda: ChatClient(("http://judge.example.org/v1",), "secret"), _ask)
    assert proxy.counts.n_answered == 1


def test_the_batch_api_is_reached_through_the_proxy(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads take the same way as questions."""
    proxy = serve()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")

    def open_api() -> BatchApi:
        return BatchApi("http://judge.example.org/v1", None)

    with pytest.raises(
        JudgeStoppedError, match=r"no such path: http://judge\.example\.org/v1/files"
    ):
        _with(open_api, lambda api: api.upload(b"{}", "requests.jsonl"))


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://api.example.org/v1", "http://user:word@proxy.example.org:3128"),
        ("http://api.example.org/v1", None),
        ("https://inside.example.com/v1", None),
        ("https://127.0.0.1:8000/v1", None),
    ],
)
def test_which_proxy(monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None) -> None:
    """The scheme chooses, ``NO_PROXY`` and loopback take out."""
    monkeypatch.setenv("https_proxy", "http://user:word@proxy.example.org:3128")
    monkeypatch.setenv("no_proxy", "example.com")
    assert proxy_of(url) == proxy


@pytest.mark.parametrize(
    "value", ["me:S3/CRET@proxy:31", "http://me:S3CRET@proxy:port", "socks5://me:S3CRET@proxy:1080"]
)
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Before anything is asked, the variable is named and its value is not."""
    monkeypatch.setenv("https_proxy", value)
    settings = read_settings({"OPENAI_API_KEY": "key"})
    with pytest.raises(SettingsError, match="https_proxy: expected") as error:
        settings.require_judge_access()
    assert "CRET" not in str(error.value)


def test_a_proxy_without_a_scheme_is_an_http_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example.org:3128")
    assert proxy_of("https://api.example.org/v1") == "http://proxy.example.org:3128"


def test_a_proxy_that_refuses_the_password_stops_judging_and_does_not_tell_it(
    serve: Callable[..., JudgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a tunnel, where aiohttp's own text holds the proxy's URL with the password."""
    proxy = serve(connect_status=407)
    monkeypatch.setenv("https_proxy", f"http://me:S3CRET@127.0.0.1:{proxy.port}")
    with pytest.raises(JudgeStoppedError, match="the proxy answered 407") as error:
        _with(lambda: ChatClient(("https://judge.invalid/v1",), "secret"), _ask)
    assert "S3CRET" not in str(error.value)


def test_half_a_key_is_not_told_either(serve: Callable[..., JudgeServer]) -> None:
    """A server's long text is cut after the key was taken out of it."""
    key = "sk-" + 60 * "a"
    server = serve(status=500, message=f"{280 * 'x'} {key}")
    with pytest.raises(JudgeUnavailableError, match=r"\[key") as error:
        _with(lambda: ChatClient((server.url,), key), _ask)
    assert "sk-a" not in str(error.value)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("[" * 100_000 + "]" * 100_000, id="deep"),
        pytest.param('{"choices":[{"message":{"content":"a"},"logprobs":{"content":'
                     + "[" * 100_000, id="deep-and-cut"),
    ],
)  # fmt: skip
def test_a_body_of_another_shape_can_pass(raw: str) -> None:
    """Whatever a body does to its reader, it is one more garbled answer, which is asked again."""
    with pytest.raises(JudgeUnavailableError, match="expected a chat completion"):
        OPENAI.read_reply(raw.encode(), Source("http://127.0.0.1/v1", None))


@pytest.mark.parametrize(
    "header", ["Wed, 21 Oct 99999999999999999999 07:28:00 GMT", "nan", "-1", "soon", "inf"]
)
def test_a_wild_retry_after_is_no_error_of_ours(header: str) -> None:
    """A refusal stays one that can pass, whatever date or number comes with it."""
    raw = ("[" * 100_000).encode()
    error = failure(429, raw, Source("http://127.0.0.1/v1"), headers={"Retry-After": header})
    assert isinstance(error, JudgeUnavailableError)
    assert error.retry_after_s is None or error.retry_after_s >= 0.0


async def _ask(client: ChatClient) -> Reply:
    return await client.complete(REQUEST, 0, timeout_s=10.0)


def _with(open_client: Callable[[], C], use: Callable[[C], Awaitable[T]]) -> T:
    async def run() -> T:
        client = open_client()
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(run())
