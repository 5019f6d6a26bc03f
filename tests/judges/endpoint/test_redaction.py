"""Secrets out of texts, and placeholders left in."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from conftest import EngineFactory, ServerFactory
from echo_server import KEY, traces
from judge_server import Say
from lmms_eval_captions.judges.endpoint.client import ChatClient
from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.failures import Source, failure
from lmms_eval_captions.judges.endpoint.urls import Key, endpoint_name, scrub
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import read_settings

URL = "http://127.0.0.1:1/v1"
PLACEHOLDERS = ("EMPTY", "none", "x", "sk", "token", "test", "dummy", "not-needed", "unanswerable")


def _answer(text: str, reason: str = "stop") -> bytes:
    choice = {"message": {"content": text}, "finish_reason": reason}
    return json.dumps({"choices": [choice]}).encode("ascii")


@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_a_placeholder_for_a_key_changes_no_reply(key: str) -> None:
    text = f"The {key} shows {key.upper()} and {base64.b64encode(key.encode()).decode()}."
    assert OPENAI.read_reply(_answer(text, key), Source(URL, key)).text == text
    assert OPENAI.read_reply(_answer(text, key), Source(URL, key)).finish_reason == key


@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_the_words_of_errors_tell_no_key_however_short(key: str) -> None:
    """A refused key is not told; words that merely hold it are, as the reason must be read."""
    raw = json.dumps({"error": {"message": f"Incorrect key: {key} ({key}ish)"}}).encode()
    said = str(failure(401, raw, Source(URL, key), headers={}))
    assert f"Incorrect key: [key] ({key}ish)" in said


@pytest.mark.parametrize("key", ["token-abc123", "pass1234", "correct-horse-battery", KEY])
def test_what_may_be_a_secret_is_taken_out(key: str) -> None:
    """Eight characters of letters and digits, or sixteen of any kind, are no word of a reply."""
    assert scrub(f"so {key}, {json.dumps(key)}", key) == 'so [key], "[key]"'


def test_secrets_of_addresses_and_proxies_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords, keys in the query and keys in the path, which is part of an endpoint's name."""
    monkeypatch.setenv("http_proxy", "http://me:pr0xy-pass%2Bword@proxy.example.org:3128")
    monkeypatch.setenv("no_proxy", "")
    url = "http://user:p4ss-word%21x@judge.example.org/0a1b2c3d4e5f6a7b8c9d0e/v1?key=qu3ry-secret"
    words = ["p4ss-word!x", "pr0xy-pass+word", "0a1b2c3d4e5f6a7b8c9d0e", "qu3ry-secret"]
    raw = json.dumps({"error": {"message": " ".join(words)}}).encode()
    said = str(failure(400, raw, Source(url), headers={}))
    assert said.endswith("answered 400: [key] [key] [key] [key]")
    assert endpoint_name(url) == "http://judge.example.org/[key]/v1"


@pytest.mark.parametrize("key", ["sk-1234\n5678", "sk-1234\u20115678", "sk-\udcff12345678"])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key: str) -> None:
    """Python's error for a header that cannot be encoded holds the header: it never comes to it."""
    with pytest.raises(SettingsError, match="OPENAI_API_KEY: expected printable ASCII") as error:
        read_settings({"OPENAI_API_KEY": key})
    assert "1234" not in f"{error.value!r} {error.value}"


def test_nothing_that_holds_the_key_shows_it() -> None:
    """Records, clients, their headers and the errors that name a request print without it."""

    async def shown() -> str:
        client = ChatClient((URL,), endpoint.api_key)
        try:
            session = client._session
            headers = CIMultiDictProxy(CIMultiDict(session.headers))
            request = aiohttp.RequestInfo(client._replicas[0].url, "POST", headers)
            error = aiohttp.ClientResponseError(request, ())
            return f"{client!r} {session!r} {session.headers!r} {vars(client)!r} {error!r} {error}"
        finally:
            await client.close()

    settings = read_settings({"OPENAI_API_KEY": KEY})
    endpoint = settings.endpoint
    config = EngineConfig(urls=(URL,), store=Path(), api_key=endpoint.api_key)
    texts = [text for record in (settings, endpoint, config)
             for text in (repr(record), str(asdict(record)))]  # fmt: skip
    assert traces("\n".join([*texts, asyncio.run(shown())]).encode()) == []
    assert endpoint.api_key == KEY


def test_an_unexpected_error_of_the_engine_tells_no_key(
    serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of asyncio and aiohttp that reach the caller's hands hold no header."""
    server = serve()
    server.script = lambda _: Say(KEY)
    engine = make_engine(server.url, api_key=Key(KEY))

    async def chain(ask: Callable[..., object]) -> object:
        headers = {"Authorization": engine.config.api_key}
        raise RuntimeError(headers)

    error = engine.submit([chain]).exception(20)
    assert error is not None
    assert traces("".join(traceback.format_exception(error)).encode()) == []
    assert sys.exc_info() == (None, None, None)
