"""Limits: how many requests are in flight and go out a second, simulated and over the wire."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_server import KEY, AnthropicServer, error, message
from chains import chain
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.limits import AddressLimits, Pace
from lmms_eval_captions.judges.endpoint.request import Asked
from simulated_limits import Endpoint, Headers, Limit, Simulation, Span


def _noise(share: float) -> Callable[[float], float]:
    return lambda _: share


def _at_limit(rate: float, share: float = 0.0, *, seed: int = 0) -> Span:
    """What is answered after the first minute at a limit with refusals by chance."""
    simulation = Simulation(
        Endpoint(Limit(rate, max(1.0, rate / 10)), noise=_noise(share)), seed=seed
    )
    simulation.run(60.0)
    return simulation.run(300.0 if rate > 5.0 else 3600.0)


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("rate", [100.0, 10.0, 1.0])
def test_a_fixed_limit_is_used_and_not_hammered(rate: float, share: float) -> None:
    """80% of what a limit allows is answered, and at most 35% of the requests are refused."""
    spans = [_at_limit(rate, share, seed=seed) for seed in range(3)]
    assert min(span.rate for span in spans) >= 0.8 * rate * (1.0 - share) - 0.02
    assert max(span.refused for span in spans) <= 0.35


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_refusals_by_chance_cost_what_they_repeat(share: float) -> None:
    """20,000 calls of 200 ms take no longer than their repetitions explain."""
    n, latency_s = 20_000, 0.2
    alone = Simulation(Endpoint(latency_s=latency_s, refusal_s=latency_s / 2), n_calls=n).run()
    endpoint = Endpoint(latency_s=latency_s, refusal_s=latency_s / 2, noise=_noise(share))
    noisy = Simulation(endpoint, n_calls=n).run()
    assert noisy.seconds <= 1.05 * alone.seconds * (1.0 + share / (1.0 - share) / 2)


@pytest.mark.parametrize("headers", ["openai", "anthropic", "seconds"])
@pytest.mark.parametrize("rate", [500 / 60, 10 / 60])
def test_a_limit_that_headers_tell_is_kept_to(headers: Headers, rate: float) -> None:
    """From the second window on nothing is refused and all is used."""
    simulation = Simulation(Endpoint(Limit(rate, 60.0 * rate, 60.0), headers=headers))
    simulation.run(60.0)
    span = simulation.run(600.0)
    assert span.refused <= 0.01
    assert span.rate >= 0.95 * rate


def test_a_limit_that_changes_is_followed() -> None:
    """Down to a tenth, and back up."""
    simulation = Simulation(Endpoint(Limit(50.0, 5.0)))
    simulation.run(60.0)
    simulation.turn(requests=Limit(5.0, 1.0))
    simulation.run(60.0)
    assert simulation.run(120.0).rate >= 0.8 * 5.0
    simulation.turn(requests=Limit(50.0, 5.0))
    simulation.run(120.0)
    assert simulation.run(60.0).rate >= 0.8 * 50.0


@pytest.mark.parametrize("rate", [0.5, 20.0, 300.0])
def test_the_user_s_own_rate_is_never_passed(rate: float) -> None:
    """In no second go out more than it allows, and nearly as many."""
    simulation = Simulation(Endpoint(), max_rate=rate)
    simulation.run(60.0)
    sent = simulation.askers[0].sent
    for start_s in range(60):
        n = sum(start_s <= sent_s < start_s + 1 for sent_s in sent)
        assert n <= 1 + rate * 1.05
    assert len(sent) >= 0.95 * rate * 60


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(
                st.sampled_from(
                    [f"x-ratelimit-{what}-requests" for what in ("limit", "remaining", "reset")]
                ),
                st.sampled_from(["0", "-1", "1e99", "nan", "5", "23h", "12ms", "", ",", "9" * 40]),
            ),
            st.booleans(),
            st.sampled_from([None, 0.0, 1.0, 86400.0]),
            st.floats(0.0, 30.0),
        ),
        max_size=40,
    )
)
def test_no_header_holds_requests_back_for_longer_than_patience(
    answers: list[tuple[dict[str, str], bool, float | None, float]],
) -> None:
    """Whatever an endpoint says, one more request goes out in time."""
    limits = AddressLimits(patience_s=100.0)
    pace, now_s = Pace([limits]), 0.0
    for headers, is_refused, retry_after_s, elapsed_s in answers:
        now_s += elapsed_s
        since_s = now_s
        while not pace.take(now_s):
            assert 0.0 < pace.wait_s() <= 1.0
            now_s += pace.wait_s()
            assert now_s - since_s <= 105.0
        number = limits.send()
        if not is_refused:
            limits.hear_answer(headers, number, now_s)
            pace.on_answer()
        elif not limits.hear_refusal(headers, number, now_s, retry_after_s):
            pace.on_refused(now_s, now_s)
        assert 0.0 < pace.rate <= inf


def _ask(engine: Engine, n: int, timeout_s: float = 10.0) -> list[Asked[Any]]:
    chains = [chain(f"question {index}", timeout_s=timeout_s) for index in range(n)]
    return list(engine.submit(chains).result(timeout=60))


def test_two_addresses_with_limits_of_their_own_are_used_together(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Both answer, and all is answered."""
    servers = [
        serve(rate=rate, burst_s=1.0, limit_headers="openai", latency_s=0.02)
        for rate in (60.0, 20.0)
    ]
    asked = _ask(make_engine(*(server.url for server in servers), concurrency=32), 300)
    assert all(outcome.reason is None for outcome in asked)
    assert min(server.counts.n_answered for server in servers) >= 30


def test_headers_that_lie_cost_no_reply(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """A server that says on every answer that nothing is left is asked on, as it answers."""
    server = serve(latency_s=0.01)
    server.limit_headers = lambda: (  # type: ignore[method-assign]  # a hostile one
        "x-ratelimit-limit-requests: 1e99\r\nx-ratelimit-remaining-requests: 0\r\n"
        "x-ratelimit-reset-requests: 23h\r\nretry-after: 999999\r\nratelimit: ;;;r=\r\n"
    )
    asked = _ask(make_engine(server.url, concurrency=64, patience_s=2.0), 200)
    assert all(outcome.reason is None for outcome in asked)


def test_anthropic_s_limit_is_kept_to_in_its_own_dialect(make_engine: EngineFactory) -> None:
    """Forty in a window of 4 s, told on answers and refusals: the rest waits for the next."""
    window_s, most = 4.0, 40
    state = {"window": 0.0, "left": most, "refused": 0}

    def script(_: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        now_s = time.time()
        window = now_s - now_s % window_s
        if window != state["window"]:
            state["window"], state["left"] = window, most
        is_taken = state["left"] > 0
        state["left"] -= is_taken
        state["refused"] += not is_taken
        reset = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(window + window_s))
        told = {"limit": str(most), "remaining": str(int(state["left"])), "reset": reset}
        headers = {f"anthropic-ratelimit-requests-{what}": value for what, value in told.items()}
        if is_taken:
            status, body, _ = message("yes")
            return status, body, headers
        wait_s = window + window_s - now_s
        return error(429, "rate_limit_error", "slow down", **headers, retry_after=f"{wait_s:.2f}")

    with AnthropicServer(script) as server:
        engine = make_engine(server.url, api="anthropic", api_key=KEY, concurrency=16)
        assert all(outcome.reason is None for outcome in _ask(engine, 100))
    assert state["refused"] <= 16


@pytest.mark.parametrize("slots", [1, 4])
def test_a_server_with_few_slots_answers_all(
    serve: ServerFactory, make_engine: EngineFactory, slots: int
) -> None:
    """64 may be in flight, of which all but a few would time out: hardly any does."""
    server = serve(latency_s=0.05, slots=slots)
    asked = _ask(make_engine(server.url, concurrency=64), 40 * slots, timeout_s=1.0)
    assert all(outcome.reason is None for outcome in asked)
    assert server.counts.n_requests <= 1.5 * 40 * slots


def test_a_judge_slower_than_its_time_out_answers_all(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A request that timed out is given more time."""
    server = serve(latency_s=0.6)
    asked = _ask(make_engine(server.url, concurrency=4), 16, timeout_s=0.4)
    assert all(outcome.reason is None for outcome in asked)
    assert server.counts.n_late <= 8


def test_a_server_that_never_answers_is_given_up_on(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """After one, two and four times the time-out, which is seven."""
    server = serve(latency_s=30.0)
    [asked] = _ask(make_engine(server.url), 1, timeout_s=0.1)
    assert "gave up on this request" in (asked.reason or "")
    assert "within 0.4 s" in (asked.reason or "")
    assert server.counts.n_requests == 3
