"""The number in flight: it grows where that gains something, and no queue makes it time out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.load import Flight

KIND, TIMEOUT_S = "vdc_answer:1", 120.0


def flight(n: int, *, sent_s: float = 0.0, kind: str = KIND, given_s: float = TIMEOUT_S) -> Flight:
    """A request that was sent with so many in flight."""
    return Flight(kind, TIMEOUT_S, given_s, sent_s, n)


@pytest.mark.parametrize("slots", [1, 4])
def test_a_server_with_few_slots_answers_all(
    serve: ServerFactory, make_engine: EngineFactory, slots: int
) -> None:
    """With 64 allowed in flight, of which all but a few would time out, hardly any does."""
    server = serve(latency_s=0.05, slots=slots)
    engine = make_engine(server.url, concurrency=64)
    [*asked] = engine.submit(
        [chain(f"question {index}", timeout_s=1.0) for index in range(40 * slots)]
    ).result()
    assert all(one.reason is None for one in asked)
    assert server.counts.n_late <= 2 * slots
    assert server.counts.n_requests <= 42 * slots


def test_replies_that_need_more_than_the_timeout_come_all_the_same(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A judge that takes one and a half times its time is waited for, and later ones at once."""
    server = serve(latency_s=0.6)
    engine = make_engine(server.url, concurrency=4)
    [*asked] = engine.submit(
        [chain(f"question {index}", timeout_s=0.4) for index in range(16)]
    ).result()
    assert all(one.reason is None for one in asked)
    # The first four, and what a busy machine delays.
    assert 4 <= server.counts.n_late <= 8


def test_a_server_that_becomes_slower_than_the_timeout_answers_all(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """After many fast replies, each takes one and a half times its time from some moment on."""
    server = serve(latency_s=0.01)
    engine = make_engine(server.url, n_attempts=4)
    first = engine.submit([chain(f"question {index}", timeout_s=0.4) for index in range(100)])
    assert all(one.reason is None for one in first.result(20.0))
    server.behaviour = replace(server.behaviour, latency_s=0.6)
    later = engine.submit([chain(f"question {index}", timeout_s=0.4) for index in range(100, 200)])
    assert [one.reason for one in later.result(30.0)] == [None] * 100
    assert server.counts.n_late <= 64


def test_a_server_that_never_answers_is_given_up_on(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """After one, two and four times the time-out, which is seven."""
    server = serve(latency_s=30.0)
    engine = make_engine(server.url)
    [asked] = engine.submit([chain("question 0", timeout_s=0.1)]).result(20.0)
    assert "no reply to any request" in (asked.reason or "")
    assert "within 0.4 s" in (asked.reason or "")
    assert server.counts.n_requests == 3
