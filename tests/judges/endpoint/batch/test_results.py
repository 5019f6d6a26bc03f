"""Results of a batch are read line by line, and the API never shows a key."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import ssl
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from batch_server import BatchServer
from conftest import EngineFactory
from lmms_eval_captions.judges.endpoint.batch import Ledger, SentBatch
from lmms_eval_captions.judges.endpoint.batch_api import BatchApi, Outcome, read_results
from lmms_eval_captions.judges.endpoint.endpoint import BatchPace
from lmms_eval_captions.judges.endpoint.failures import Source
from lmms_eval_captions.judges.endpoint.request import Asked, Chain, Message, Reply, Request
from lmms_eval_captions.judges.errors import JudgeError
from raw_server import Asked as Sent
from raw_server import RawServer, http

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

    async def answer(asked: Sent, writer: asyncio.StreamWriter) -> None:
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
    caplog.set_level(logging.DEBUG)
    _listed("http://me:S3CRET-1234567@127.0.0.1:{port}/v1", None, "X-Echo: S3CRET-1234567\r\n")
    fails = pytest.raises(JudgeError) if status == 500 else nullcontext()
    with fails as error:
        _listed("http://127.0.0.1:{port}/v1", KEY, f"X-Echo: {KEY}\r\n", status)
    assert KEY not in str(error)
    assert KEY not in caplog.text
    assert "S3CRET" not in caplog.text


URL = "http://127.0.0.1/v1"
PACE = BatchPace(quiet_s=0.05, first_poll_s=0.01, most_poll_s=0.02, patience_s=5.0)


def _line(custom_id: object, text: object = "fine", **changes: object) -> bytes:
    usage = {"prompt_tokens": 2, "completion_tokens": 1}
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}
    response = {"status_code": 200, "body": body}
    return json.dumps({"custom_id": custom_id, "response": response, **changes}).encode()


def _read(files: list[bytes]) -> dict[str, Outcome]:
    return read_results([io.BytesIO(raw) for raw in files], Source(URL))


BAD_LINES = {
    "no JSON": b"<html>bad gateway</html>",
    "cut": _line("bad")[:-20],
    "a number": b"5",
    "null": b"null",
    "a list": b'["bad"]',
    "no id": b'{"response": {"status_code": 200, "body": {}}}',
    "an id that is a list": _line(["bad"]),
    "an id that is null": _line(None),
    "no response and no error": b'{"custom_id": "bad"}',
    "a response that is text": _line("bad", response="fine"),
    "a status that is a list": _line("bad", response={"status_code": [200], "body": {}}),
    "an infinite status": b'{"custom_id": "bad", "response": {"status_code": 1e999, "body": {}}}',
    "a status of many digits": b'{"custom_id": "bad", "response": {"status_code": %s}}'
    % (b"9" * 5000),
    "an error that is text": b'{"custom_id": "bad", "response": null, "error": "odd"}',
    "nested deep": b'{"custom_id": "bad", "response": %s' % (b"[" * 200_000),
    "objects nested deep": b'{"a":' * 100_000,
    "no UTF-8": b'{"custom_id": "bad", "response": "\xff\xfe"}',
    "zeros": b"\x00" * 100,
    "blank": b" \t ",
}


@pytest.mark.parametrize("bad", BAD_LINES.values(), ids=BAD_LINES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_a_bad_line_costs_nothing_but_itself(bad: bytes, end: bytes) -> None:
    """Whatever a line holds, those around it are read, and it is left out or an error."""
    lines = [_line("first"), bad, _line("second"), bad]
    outcomes = _read([end.join(lines), b""])
    assert outcomes["first"] == outcomes["second"] == Reply("fine", "stop", 2, 1)
    replies = {name for name, outcome in outcomes.items() if isinstance(outcome, Reply)}
    assert replies == {"first", "second"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_of_several_lines_for_one_request_a_reply_counts(order: tuple[int, ...]) -> None:
    """An error beside a reply does not take it away, in whatever order they stand."""
    error = b'{"custom_id": "one", "response": null, "error": {"code": "x", "message": "y"}}'
    lines = [_line("one"), error, b'{"custom_id": "one"']
    assert isinstance(_read([b"\n".join(lines[i] for i in order)])["one"], Reply)


RECORD: dict[str, Any] = {
    "url": URL,
    "model": "judge",
    "batch_id": "batch-1",
    "created_s": time.time(),
    "ids": ["request"],
}
BAD_RECORDS = {
    "cut": json.dumps(RECORD)[:-9],
    "empty": "",
    "a list": "[1]",
    "nested deep": "[" * 100_000,
    "no UTF-8": "\udcff",
    "a model that is a list": json.dumps({**RECORD, "model": ["judge"]}),
    "ids that are a number": json.dumps({**RECORD, "ids": 5}),
    "ids that are lists": json.dumps({**RECORD, "ids": [["request"]]}),
    "an id that is a number": json.dumps({**RECORD, "batch_id": 5}),
    "made at no time": json.dumps({**RECORD, "created_s": float("nan")}),
    "made in the far future": json.dumps({**RECORD, "created_s": 1e300}),
    "made at an infinite time": json.dumps({**RECORD, "created_s": float("inf")}),
}


@pytest.mark.parametrize("text", BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_a_damaged_record_of_a_batch_is_passed_over(
    text: str, tmp_path: Path, logged: list[str]
) -> None:
    """The other records count, and the damaged one is named."""
    good = Ledger(tmp_path, URL)
    good.save(SentBatch("judge", {"kept": None}, batch_id="batch-2"))
    (tmp_path / "bad.json").write_text(text, encoding="utf-8", errors="surrogateescape")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere")
    ledger = Ledger(tmp_path, URL)
    assert ledger.batch_of("request") is None
    kept = ledger.batch_of("kept")
    assert kept is not None
    assert kept.batch_id == "batch-2"
    assert {"bad.json", "folder.json", "dangling.json"} <= {
        name
        for line in logged
        for name in ("bad.json", "folder.json", "dangling.json")
        if name in line
    }


def _chain(text: str) -> Chain[Asked[str]]:
    message: Message = {"role": "user", "content": text}
    request = Request("test:1", "judge", [message], {"max_tokens": 8}, 0, 5.0, lambda: "")
    return lambda ask: ask(request, lambda reply: reply.text or None)


@pytest.mark.parametrize(
    "odd",
    [
        {"request_counts": None},
        {"request_counts": "many"},
        {"request_counts": {"completed": None}},
        {"errors": {"data": ["odd"]}},
        {"metadata": None},
        {"id": None},
        {"output_file_id": ["file"]},
        {"output_file_id": None},
        {"status": "expired"},
    ],
    ids=str,
)
def test_a_state_with_odd_fields_ends_in_replies_or_reasons(
    odd: dict[str, object], make_engine: EngineFactory
) -> None:
    """A state that says too little is no end of judging: what has no reply is asked again."""
    with BatchServer() as server:
        server.end = lambda _: odd if len(server.sizes) == 1 else {}
        engine = make_engine(server.url, mode="batch", batch_pace=PACE, n_attempts=3)
        asked = engine.submit([_chain(f"prompt {i}") for i in range(3)]).result(timeout=20)
        assert [one.reason for one in asked] == [None] * 3
        is_lost = "output_file_id" in odd
        assert server.sizes == ([3, 3] if is_lost else [3])


@pytest.mark.parametrize("status", ["paused", None, ["completed"], {}])
def test_a_batch_that_never_ends_is_not_waited_for_for_ever(
    status: object, make_engine: EngineFactory
) -> None:
    """A status that nobody knows is waited on for two days, and then told."""
    pace = BatchPace(
        quiet_s=0.05, first_poll_s=0.01, most_poll_s=0.02, patience_s=5.0, most_wait_s=0.5
    )
    with BatchServer() as server:
        server.end = lambda _: {"status": status}
        engine = make_engine(server.url, mode="batch", batch_pace=pace)
        asked = engine.submit([_chain("prompt")]).result(timeout=20)
        assert "has not ended after" in str(asked[0].reason)


def test_a_page_in_the_place_of_a_state_is_asked_for_again(
    make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that answers a look with its own page, twice, costs nothing but time."""
    with BatchServer() as server:
        real, pages = server.answer, [b"<html>", b"[]"]

        def answer(method: str, path: str, body: bytes) -> tuple[int, bytes] | None:
            if method == "GET" and "/batches/" in path and pages:
                return 200, pages.pop()
            return real(method, path, body)

        monkeypatch.setattr(server, "answer", answer)
        engine = make_engine(server.url, mode="batch", batch_pace=PACE)
        assert engine.submit([_chain("prompt")]).result(timeout=20)[0].reason is None
        assert not pages
