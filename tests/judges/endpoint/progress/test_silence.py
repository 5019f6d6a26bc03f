"""What is said of an endpoint that answers nothing any more is true."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import Refuse

SILENCE = r"the judge gave no reply to any request for (\d+) s \((.*?)\), judging stopped: .*503"


def test_an_endpoint_that_never_answered_is_said_to_have_given_no_reply_yet(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """It is tried a few times, and there is no last reply to speak of."""
    server = serve(status=503)
    engine = make_engine(server.url, n_attempts=3)
    reason = str(engine.submit([chain("a")]).result(timeout=30)[0].reason)
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
    assert engine.submit([chain("a")]).result(timeout=30)[0].reason is None
    after_s = time.time()
    time.sleep(2.0)
    server.behaviour.status = 503
    began_s = time.monotonic()
    reason = str(engine.submit([chain("b")]).result(timeout=30)[0].reason)
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
    chains = [chain("bad"), *(chain(f"prompt {i}") for i in range(300))]
    asked = engine.submit(chains).result(timeout=60)
    assert str(asked[0].reason).startswith("gave up on this request: ")
    assert all(one.reason is None for one in asked[1:])


@pytest.mark.parametrize(
    ("fault", "advised"), [("hang", True), ("504", False)], ids=["our time-out", "a gateway's"]
)
def test_more_time_is_advised_where_it_is_ours_to_give(
    fault: str, advised: bool, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """One request of many is given up on; the time of a gateway is set elsewhere."""
    server = serve(latency_s=0.05)
    server.script = lambda payload: fault if "lost" in str(payload["messages"]) else None
    engine = make_engine(server.url, concurrency=2, n_attempts=2)
    questions = [chain("lost", timeout_s=0.3), *(chain(f"q {n}") for n in range(200))]
    [lost, *others] = engine.submit(questions).result(30.0)
    assert all(one.reason is None for one in others)
    assert (lost.reason or "").startswith("gave up on this request: ")
    assert ("LMMS_CAPTIONS_JUDGE_TIMEOUT gives more time" in (lost.reason or "")) == advised
