"""Secrets out of texts, and placeholders left in."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from loguru import logger
from multidict import CIMultiDict, CIMultiDictProxy

import lmms_eval_captions.judges
from conftest import EngineFactory, ServerFactory
from echo_server import CODES, KEY, traces
from judge_server import Say
from lmms_eval_captions.judges.endpoint.chain import Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.endpoint import Key
from lmms_eval_captions.judges.endpoint.http.client import ChatClient
from lmms_eval_captions.judges.endpoint.redaction import redactor, scrub
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks import judge_run as judging
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC

ROOT = Path(lmms_eval_captions.judges.__path__[0]).parent
URL = "http://127.0.0.1:1/v1"
PLACEHOLDERS = ("EMPTY", "none", "x", "sk", "token", "test", "dummy", "not-needed", "unanswerable")


def _answer(text: str, reason: str = "stop") -> bytes:
    choice = {"message": {"content": text}, "finish_reason": reason}
    return json.dumps({"choices": [choice]}).encode("ascii")


@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_a_placeholder_for_a_key_changes_no_reply(key: str) -> None:
    """What servers without keys are given occurs in ordinary replies, which stay as they are."""
    text = f"The {key} shows {key.upper()} and {base64.b64encode(key.encode()).decode()}."
    assert OPENAI.read_reply(_answer(text, key), URL, key).text == text
    assert OPENAI.read_reply(_answer(text, key), URL, key).finish_reason == key


@pytest.mark.parametrize("key", PLACEHOLDERS)
def test_the_words_of_errors_tell_no_key_however_short(key: str) -> None:
    """A refused key is not told; words that merely hold it are, as the reason must be read."""
    raw = json.dumps({"error": {"message": f"Incorrect key: {key} ({key}ish)"}}).encode()
    said = str(OPENAI.failure(401, raw, URL, headers={}, api_key=key))
    assert f"Incorrect key: [key] ({key}ish)" in said


@pytest.mark.parametrize("key", ["token-abc123", "pass1234", "correct-horse-battery", KEY])
def test_what_may_be_a_secret_is_taken_out(key: str) -> None:
    """Eight characters of letters and digits, or sixteen of any kind, are no word of a reply."""
    assert scrub(f"so {key.upper()}, {key.encode().hex()}", key) == "so [key], [key]"


@pytest.mark.parametrize("code", CODES)
def test_the_rest_of_an_answer_is_unchanged(code: str) -> None:
    """What stands around the key, in escapes too, is read as it came."""
    around = 'a "quoted"\n\\ back/slash \u00e9 50% {sign}'
    raw = _answer(f"{around} <key> {around}").replace(b"<key>", CODES[code](KEY).encode())
    text = OPENAI.read_reply(raw, URL, KEY).text
    assert text.startswith(f"{around} ")
    assert text.endswith(f" {around}")
    assert "[key]" in text
    assert traces(text.encode()) == []


def test_an_answer_without_the_key_is_not_touched() -> None:
    """The bytes are the same object, however they are escaped."""
    raw = _answer("50%41 \\u0041 a/b\\/").replace(b"a/b", rb"a\/b\u003c")
    assert redactor(KEY, URL).body(raw) is raw


def test_what_cannot_be_taken_out_is_withheld() -> None:
    """A key spelt in codes of codes, or in an answer too long to be mended, takes it all along."""
    twice = "".join(f"%25{ord(one):02x}" for one in KEY).replace("%25", "%5cu00")
    assert traces(redactor(KEY).body(_answer(twice))) == []
    assert redactor(KEY).body(_answer(KEY + " " * 2**20)) == b"[key]"


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(b"\\" * 100_000, id="backslashes"),
        pytest.param(b"%73\\u006b" * 12_000, id="codes"),
        pytest.param(KEY[:-1].encode() * 3_000, id="almost the key"),
        pytest.param(b"\0" * 100_000, id="null bytes"),
    ],
)
def test_searching_takes_no_time(hostile: bytes) -> None:
    """An answer made to be slow to search is searched in time linear in its length."""

    def seconds(raw: bytes) -> float:
        started_s = time.process_time()
        redactor(KEY).body(raw)
        return time.process_time() - started_s

    redactor(KEY)
    once = min(seconds(hostile + KEY.encode()) for _ in range(3))
    assert once < 0.5, "some 20 ms on a quiet machine"


def test_passwords_in_urls_and_proxies_are_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server or proxy that echoes its ``Basic`` header tells nobody the password."""
    monkeypatch.setenv("http_proxy", "http://me:pr0xy-pass%2Bword@proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", "")
    url = "http://user:p4ss-word%21x@judge.invalid/v1"
    basic = [base64.b64encode(f"user:p4ss-word!x{n * 'y'}".encode()).decode() for n in range(3)]
    words = [*basic, "p4ss-word!x", "p4ss-word%21x", "pr0xy-pass+word", "PR0XY-PASS%2BWORD"]
    raw = json.dumps({"error": {"message": " ".join(words)}}).encode()
    said = str(OPENAI.failure(407, raw, url, headers={}, api_key=None))
    assert "p4ss" not in said
    assert not [one for one in basic if one[8:-6] in said]
    assert "pr0xy" not in said.lower()


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
            session = client._replicas[0].session
            headers = CIMultiDictProxy(CIMultiDict(session.headers))
            request = aiohttp.RequestInfo(client._replicas[0].parsed, "POST", headers)
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


def _raise_with_key(key: str) -> None:
    header = {"Authorization": f"Bearer {key}"}
    raise RuntimeError(f"cannot send {header}")


def test_a_traceback_of_ours_shows_no_values(
    bench: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An unexpected error deep inside, where the key is at hand, is logged without it."""
    lines: list[str] = []
    sink = logger.add(lambda line: lines.append(str(line)))  # as loguru has it by default
    bench.setenv("OPENAI_API_KEY", KEY)
    config = JudgeConfig.build(VDC.judge_defaults, JUDGE_RUN.settings())
    future: Future[list[Sequence[Judgement]]] = Future()
    try:
        _raise_with_key(KEY)
    except RuntimeError as error:
        future.set_exception(error)
    engine = SimpleNamespace(submit=lambda _chains, **_: future, close=lambda: None)
    bench.setattr(JUDGE_RUN, "engine", lambda: engine)
    chains: list[Chain[Sequence[Judgement]]] = []
    judged = judging._submit(chains, config, JUDGE_RUN.settings())()
    logger.remove(sink)
    text = "".join(lines)
    assert "in _raise_with_key" in text
    assert "RuntimeError: cannot send {'Authorization': 'Bearer [key]'}" in text
    assert judged.reason is not None
    assert judged.reason.startswith("internal error: RuntimeError(")
    assert traces(f"{text} {judged.reason} {capfd.readouterr()}".encode()) == []


def test_loguru_is_handed_no_exception() -> None:
    """It prints the values of variables: tracebacks are formatted before they are logged."""
    pattern = re.compile(
        r"opt\([^)]*exception|logger\.(exception|catch)|diagnose=|print_exc|log_exc"
    )
    folders = ("judges", "metrics", "lmms_eval_tasks", "model_wrappers")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 100
    assert [str(path) for path in paths if pattern.search(path.read_text())] == []


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
