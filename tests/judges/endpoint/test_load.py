"""The number in flight: it grows where that gains something, and no queue makes it time out."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains import chain
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.chain import Ask
from lmms_eval_captions.judges.endpoint.load import MOST_TIME, Flight, Load

KIND, TIMEOUT_S = "vdc_answer:1", 120.0


def flight(n: int, *, sent_s: float = 0.0, kind: str = KIND, given_s: float = TIMEOUT_S) -> Flight:
    """A request that was sent with so many in flight."""
    return Flight(kind, TIMEOUT_S, given_s, sent_s, n)


def climb(
    load: Load, latencies_s: dict[int, float], *, kind: str = KIND, apart_s: float = 10.0
) -> None:
    """Replies to ten requests at each of some numbers in flight, one number after the other."""
    for step, (n, latency_s) in enumerate(latencies_s.items(), 1):
        for _ in range(10):
            sent_s = apart_s * step
            load.on_reply(flight(n, sent_s=sent_s, kind=kind), sent_s + latency_s)


def test_it_starts_small_and_grows_fourfold_each_round_trip() -> None:
    """A fast endpoint has all in flight after three round trips."""
    load = Load(256)
    seen = [load.limit]
    while load.limit < 256:
        sent = [flight(load.limit)] * load.limit
        for one in sent:
            load.on_reply(one, 0.2)
        seen.append(load.limit)
    assert seen == [4, 16, 64, 256]


@pytest.mark.parametrize(
    ("latencies_s", "expected"),
    [
        pytest.param((1.0,) * 4, 16, id="fourfold, a queue would take 4 s"),
        pytest.param((20.0,) * 4, 12, id="threefold, a queue would take 60 s"),
        pytest.param((50.0,) * 4, 5, id="by a quarter, a queue would take 63 s"),
        pytest.param((80.0,) * 4, 4, id="not at all, two thirds of the time are gone"),
        pytest.param((1.0, 1.0, 20.0, 20.0), 12, id="the first to come are the short ones"),
    ],
)
def test_growth_is_bounded_by_what_a_queue_would_take(
    latencies_s: tuple[float, ...], expected: int
) -> None:
    """Were the server to answer one after the other, what is let in would still be in time."""
    load = Load(64)
    for latency_s in latencies_s:
        load.on_reply(flight(4), latency_s)
    assert load.limit == expected


def test_latency_that_grows_with_the_number_in_flight_is_a_queue() -> None:
    """Four times as many took four times as long: it goes back to where that began."""
    load = Load(64)
    climb(load, {4: 2.0, 8: 4.0, 16: 8.0})
    assert load.limit == 6


def test_latency_that_does_not_grow_is_none() -> None:
    """A server that takes everything is sent everything."""
    load = Load(64)
    climb(load, {4: 2.0, 16: 2.1, 64: 2.0})
    assert load.limit == 64


def test_latency_that_grows_less_than_the_number_gains_something() -> None:
    """A batching server is slower with more in flight, and answers more a second all the same."""
    load = Load(64)
    climb(load, {4: 2.0, 16: 4.0, 64: 8.0})
    assert load.limit == 64


def test_kinds_of_requests_are_not_compared() -> None:
    """Second steps that take longer, and come when more is in flight, are no queue."""
    load = Load(64)
    climb(load, {4: 2.0})
    climb(load, {16: 8.0, 64: 8.0}, kind="vdc_match:1")
    assert load.limit == 64


def test_a_number_that_was_found_is_kept_and_tried_higher_later() -> None:
    """Ten seconds and twenty latencies on, it doubles; where that is a queue again it goes back."""
    load = Load(64)
    climb(load, {4: 0.5, 8: 1.0}, apart_s=1.0)
    found, start_s = load.limit, 21.0
    load.on_reply(flight(found, sent_s=start_s + 1.0), start_s + 1.5)
    assert load.limit == found == 6
    now_s = start_s + 45.0
    for _ in range(20):
        load.on_reply(flight(found, sent_s=now_s), now_s + 0.5)
    assert load.limit == 2 * found
    for factor in (2, 4):
        for _ in range(20):
            load.on_reply(flight(factor * found, sent_s=now_s + 1.0), now_s + 1.0 + 0.5 * factor)
    assert load.limit <= 2 * found


@pytest.mark.parametrize(("n_late", "expected"), [(1, 63), (32, 38), (64, 23)])
def test_a_timeout_takes_one_away(n_late: int, expected: int) -> None:
    """One by chance changes little; where half or all time out, about half or two thirds go."""
    load = Load(64, start=64)
    for _ in range(n_late):
        load.on_timeout(flight(64), 120.0)
    assert load.limit == expected


def test_timeouts_leave_four_in_flight_unless_they_had_all_the_time() -> None:
    """Four that are answered in turn, each in time, are answered in four times it."""
    load = Load(64)
    load.on_timeout(flight(4), 120.0)
    assert load.limit == 4
    load.on_timeout(flight(4, sent_s=200.0, given_s=MOST_TIME * TIMEOUT_S), 680.0)
    assert load.limit == 3


def test_a_request_that_timed_out_is_given_more_time() -> None:
    """Twice, then four times the time-out, and no more."""
    load = Load(64)
    assert [load.time_for(KIND, TIMEOUT_S, n) / TIMEOUT_S for n in range(5)] == [1, 2, 4, 4, 4]


def test_a_request_of_a_fast_kind_is_not() -> None:
    """Where replies take a second, one that did not come in 120 was lost."""
    load = Load(64)
    load.on_reply(flight(4), 1.0)
    assert load.time_for(KIND, TIMEOUT_S, 2) == TIMEOUT_S


def test_a_fast_kind_that_has_become_slow_is() -> None:
    """Where nothing that was sent later was answered, the request may need longer than it had."""
    load = Load(64)
    load.on_reply(flight(4), 1.0)
    load.on_timeout(flight(4, sent_s=10.0), 130.0)
    assert load.time_for(KIND, TIMEOUT_S, 1) == 2 * TIMEOUT_S


def test_one_that_was_lost_among_answered_ones_gives_no_more_time() -> None:
    """What was sent after it was answered within a second."""
    load = Load(64)
    load.on_reply(flight(4, sent_s=20.0), 21.0)
    load.on_timeout(flight(4, sent_s=10.0), 130.0)
    assert load.time_for(KIND, TIMEOUT_S, 1) == TIMEOUT_S


def test_requests_of_a_slow_kind_are_given_more_time_at_once() -> None:
    """Where replies take 100 of 120 seconds, the next have 200; those of another kind 120."""
    load = Load(64)
    load.on_reply(flight(4), 100.0)
    assert load.time_for(KIND, TIMEOUT_S, 0) == 200.0
    assert load.time_for("vdc_match:1", TIMEOUT_S, 0) == TIMEOUT_S


@given(
    st.integers(1, 300),
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 300), st.floats(0.0, 1e5), st.floats(0.0, 1e4))
    ),
)
def test_the_number_stays_in_bounds(
    most: int, events: list[tuple[bool, int, float, float]]
) -> None:
    """Whatever comes, in whatever order, at least one request may be in flight."""
    load = Load(most)
    for is_answered, n, sent_s, latency_s in events:
        tell = load.on_reply if is_answered else load.on_timeout
        tell(flight(n, sent_s=sent_s), sent_s + latency_s)
        assert 1 <= load.limit <= most
        assert TIMEOUT_S <= load.time_for(KIND, TIMEOUT_S, 1) <= MOST_TIME * TIMEOUT_S


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


def test_new_places_are_taken_before_the_first_questions_end(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The first four questions ask on, for long; others are asked meanwhile."""
    server = serve()
    server.script = lambda payload: "hang" if "more" in payload["messages"][0]["content"] else None
    engine = make_engine(server.url)

    async def twice(index: int, ask: Ask) -> None:
        await chain(f"question {index}", timeout_s=30.0)(ask)
        await chain(f"more {index}", timeout_s=30.0)(ask)

    engine.submit([partial(twice, index) for index in range(100, 120)])
    until_s = time.monotonic() + 5.0
    while time.monotonic() < until_s and server.counts.n_answered < 16:
        time.sleep(0.02)
    assert server.counts.n_answered >= 16


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
