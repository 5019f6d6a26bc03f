"""What is said of an endpoint that answers nothing any more is true."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from conftest import EngineFactory, ServerFactory
from judge_server import Refuse
from lmms_eval_captions.judges import stragglers
from lmms_eval_captions.judges.engine import Ask, Chain
from lmms_eval_captions.judges.request import Request
from lmms_eval_captions.judges.verdict import Asked

SILENCE = r"the judge gave no reply to any request for (\d+) s \((.*?)\), judging stopped: .*503"


def _asks(text: str) -> Chain[Asked[str]]:
    messages: list[dict[str, object]] = [{"role": "user", "content": text}]
    params = {"temperature": 0.0, "max_tokens": 8}
    request = Request("test:1", "judge", messages, params, 0, 5.0, lambda: "")

    async def chain(ask: Ask) -> Asked[str]:
        return await ask(request, lambda reply: reply.text or None)

    return chain


def test_an_endpoint_that_never_answered_is_said_to_have_given_no_reply_yet(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """It is tried a few times, and there is no last reply to speak of."""
    server = serve(status=503)
    engine = make_engine(server.url, n_attempts=3)
    reason = str(engine.submit([_asks("a")]).result(timeout=30)[0].reason)
    found = re.match(SILENCE, reason)
    assert found, reason
    assert found[2] == "it has given none yet"


def test_an_endpoint_that_answered_before_is_said_to_have(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The time of its last reply is told, and the silence is not longer than that is ago."""
    server = serve()
    engine = make_engine(server.url, n_attempts=3, outage_patience_s=1.2)
    before_s = time.time()
    assert engine.submit([_asks("a")]).result(timeout=30)[0].reason is None
    after_s = time.time()
    time.sleep(2.0)
    server.behaviour.status = 503
    began_s = time.monotonic()
    reason = str(engine.submit([_asks("b")]).result(timeout=30)[0].reason)
    took_s = time.monotonic() - began_s
    found = re.match(SILENCE, reason)
    assert found, reason
    clocks = {
        time.strftime("%H:%M:%S", time.localtime(second))
        for second in range(int(before_s), int(after_s) + 2)
    }
    assert found[2].removeprefix("the last one came at ") in clocks
    # Nothing was asked in the two seconds before: they are no silence.
    assert 1 <= int(found[1]) <= took_s + 1


def test_while_others_are_answered_nothing_is_said_of_silence(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A request that fails for ever among others that do not is given up on by itself."""
    server = serve(latency_s=0.02)

    def script(payload: dict[str, Any]) -> Refuse | None:
        return Refuse(500, "odd") if payload["messages"][0]["content"] == "bad" else None

    server.script = script
    engine = make_engine(server.url, concurrency=2, n_attempts=3, outage_patience_s=30.0)
    chains = [_asks("bad"), *(_asks(f"prompt {i}") for i in range(300))]
    asked = engine.submit(chains).result(timeout=60)
    assert str(asked[0].reason).startswith("gave up on this request: ")
    assert all(one.reason is None for one in asked[1:])


def test_a_second_copy_does_not_put_off_when_a_request_is_due(
    serve: ServerFactory, make_engine: EngineFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said of the first request's time is when it is asked again, copied or not."""
    monkeypatch.setattr(stragglers, "_LEAST_S", 0.3)
    server = serve()
    engine = make_engine(server.url)
    engine.submit([_asks(str(index)) for index in range(100)]).result(timeout=30)
    server.script = lambda _: "hang"
    began_s = time.monotonic()
    engine.submit([_asks("late")])
    while not engine.meter.n_copies and time.monotonic() < began_s + 4.0:
        time.sleep(0.02)
    assert engine.meter.n_copies == 1
    assert engine._sender.first_due_s() < began_s + 5.2
