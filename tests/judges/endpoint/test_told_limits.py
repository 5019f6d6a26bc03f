"""Limits that headers tell of, on a simulated clock and over the wire: used, and not passed."""

from __future__ import annotations

import random
import time
from math import isnan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_server import KEY, AnthropicServer, error, message
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.address_limits import AddressLimits
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.pacing import Pacing
from lmms_eval_captions.judges.endpoint.request import Request
from simulated_limits import Endpoint, Headers, Limit, Simulation

HEADERS: tuple[Headers, ...] = ("openai", "anthropic", "seconds")


def _sizes(rng: random.Random) -> float:
    """Tokens of a request: some 900, from 50 to 20,000."""
    return min(20_000.0, max(50.0, rng.lognormvariate(6.5, 0.8)))


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("window_s", [0.0, 60.0], ids=["bucket", "window"])
@pytest.mark.parametrize("rate", [100.0, 500 / 60, 1.0, 10 / 60])
def test_a_limit_that_is_told_is_used_and_not_passed(
    headers: Headers, window_s: float, rate: float
) -> None:
    """After a minute at most 1 in 100 is refused, and 95 in 100 of the limit are used."""
    for seed in range(1 if rate > 50.0 else 3):
        limit = Limit(rate, 60 * rate, window_s)
        simulation = Simulation(Endpoint(limit, headers=headers), seed=seed)
        simulation.run(60.0)
        span = simulation.run(min(1800.0, max(60.0, 1200.0 / rate)))
        assert span.refused <= 0.01
        assert 0.95 * rate <= span.rate <= 1.05 * rate


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("window_s", [0.0, 60.0], ids=["bucket", "window"])
def test_noise_beside_a_limit_that_is_told_costs_what_it_repeats(
    headers: Headers, window_s: float
) -> None:
    """A wait of 20 s that every refusal asks for is that request's alone."""
    endpoint = Endpoint(
        Limit(500 / 60, 500, window_s), headers=headers, noise=lambda _: 0.1, retry_after_s=20.0
    )
    simulation = Simulation(endpoint)
    simulation.run(60.0)
    span = simulation.run(240.0)
    assert span.refused <= 0.1 + 0.03
    assert span.rate >= 0.93 * 0.9 * 500 / 60


@pytest.mark.parametrize("headers", ["openai", "anthropic"])
@pytest.mark.parametrize("window_s", [0.0, 60.0], ids=["bucket", "window"])
@pytest.mark.parametrize("latency_s", [0.2, 5.0])
def test_processes_that_share_an_account_share_its_limit(
    headers: Headers, window_s: float, latency_s: float
) -> None:
    """Four that know nothing of each other use 95 in 100 of it, and next to nothing is refused."""
    endpoint = Endpoint(Limit(30, 1800, window_s), headers=headers, latency_s=latency_s)
    simulation = Simulation(endpoint, n_askers=4)
    simulation.run(60.0)
    span = simulation.run(120.0)
    assert span.refused <= 0.01
    assert span.rate >= 0.95 * 30


@pytest.mark.parametrize("headers", ["openai", "anthropic"])
@pytest.mark.parametrize("window_s", [0.0, 60.0], ids=["bucket", "window"])
def test_a_limit_of_tokens_is_kept_to_whatever_requests_take(
    headers: Headers, window_s: float
) -> None:
    """Requests of 50 to 20,000 tokens: what they take on average is learnt."""
    limit = Limit(200_000 / 60, 200_000, window_s)
    endpoint = Endpoint(Limit(1000 / 60, 1000), limit, headers=headers)
    simulation = Simulation(endpoint, sizes=_sizes)
    simulation.run(60.0)
    span = simulation.run(300.0)
    assert span.refused <= 0.01
    assert span.n_tokens / span.seconds >= 0.95 * limit.rate


def test_no_trial_is_held_at_a_limit_that_is_told() -> None:
    """There is nothing to try out: the rate of the machinery for noise stays infinite."""
    simulation = Simulation(Endpoint(Limit(10, 600), headers="openai"))
    for _ in range(60):
        simulation.run(2.0)
        assert simulation.askers[0].pacing.rate > 1e9


def test_what_is_refused_though_plenty_is_left_is_tried_out() -> None:
    """Headers that tell of another limit do not hide the one that refuses."""
    endpoint = Endpoint(Limit(50, 5), Limit(1e6, 6e7), headers="none")
    simulation = Simulation(endpoint)
    admit = simulation.server.admit

    def admit_with_tokens(now_s: float, n_tokens: float) -> tuple[bool, dict[str, str]]:
        is_taken, _ = admit(now_s, n_tokens)
        told = {"limit": "60000000", "remaining": "59990000", "reset": "10ms"}
        return is_taken, {f"x-ratelimit-{what}-tokens": value for what, value in told.items()}

    simulation.server.admit = admit_with_tokens  # type: ignore[method-assign]  # a stand-in
    simulation.run(60.0)
    span = simulation.run(120.0)
    assert span.rate == pytest.approx(50.0, rel=0.1)
    assert span.refused <= 0.05


@pytest.mark.parametrize("headers", ["none", "openai"])
def test_a_window_that_asks_to_wait_is_waited_for(headers: Headers) -> None:
    """Where all are refused, nothing goes out until the wait that is asked for is over."""
    endpoint = Endpoint(Limit(5, window_s=60), headers=headers, retry_after_s=30.0)
    simulation = Simulation(endpoint)
    simulation.run(600.0)
    sent = simulation.askers[0].sent
    assert len(sent) <= 1.1 * 600 * 5
    assert simulation.run(300.0).refused <= (0.05 if headers == "openai" else 0.15)


_TEXTS = st.sampled_from(
    ["", "0", "1", "5", "100", "1e99", "nan", "-1", "0s", "1ms", "6m0s", "86400s", "720h", "many",
     "2026-11-24T05:44:19Z", "9999-01-01T00:00:00Z", "1999-01-01T00:00:00Z"]
)  # fmt: skip
_NAMES = st.sampled_from(
    [
        f"x-ratelimit-{what}-{of}"
        for what in ("limit", "remaining", "reset")
        for of in ("requests", "tokens")
    ]
    + [f"anthropic-ratelimit-input-tokens-{what}" for what in ("limit", "remaining", "reset")]
    + ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(_NAMES, _TEXTS, max_size=6),
            st.booleans(),
            st.sampled_from([None, 0.0, 1.0, 3600.0, 86400.0]),
            st.floats(0.0, 30.0),
        ),
        max_size=40,
    )
)
def test_no_header_stops_requests_for_longer_than_patience(
    answers: list[tuple[dict[str, str], bool, float | None, float]],
) -> None:
    """Whatever is said, a rate is a number >= 0, and one more request goes out in time."""
    limits = AddressLimits(patience_s=100.0)
    pacing = Pacing([limits])
    now_s = 0.0
    for headers, is_refused, retry_after_s, elapsed_s in answers:
        now_s += elapsed_s
        since_s = now_s
        while not pacing.take(now_s):
            wait_s = pacing.wait_s()
            assert 0.0 < wait_s <= 100.0
            now_s += wait_s
            assert now_s - since_s <= 102.0
        number = limits.send(now_s)
        if not is_refused:
            limits.hear_answer(headers, number, now_s, n_tokens=100)
        elif not limits.hear_refusal(
            headers, number, now_s, now_s=now_s + 0.01, retry_after_s=retry_after_s
        ):
            pacing.on_rate_limit(now_s + 0.01, now_s)
        rate = limits.rate(now_s)
        assert rate >= 0.0
        assert not isnan(rate)


def _chain(index: int, model: str = "judge") -> Chain[Asked[str]]:
    async def run(ask: Ask) -> Asked[str]:
        request = Request(
            protocol="told:1",
            model=model,
            messages=[{"role": "user", "content": f"Question {index}"}],
            params={"temperature": 0.0, "max_tokens": 8},
            seed=0,
            timeout_s=10.0,
            stand_in=lambda: "",
        )
        return await ask(request, lambda reply: reply.text or None)

    return run


def _ask(engine: Engine, n: int) -> list[Asked[str]]:
    return engine.submit([_chain(index) for index in range(n)]).result(timeout=60)


@pytest.mark.parametrize("headers", HEADERS)
def test_a_told_limit_is_kept_to_over_the_wire(
    headers: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Three hundred questions at 60 a second: all are answered, next to none was refused."""
    server = serve(rate=60.0, burst_s=2.0, limit_headers=headers, latency_s=0.02)
    asked = _ask(make_engine(server.url, concurrency=32), 300)
    assert all(outcome.reason is None for outcome in asked)
    assert server.counts.n_rate_limited <= 30


def test_two_addresses_with_limits_of_their_own_are_used_together(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """What they allow adds up, and each is asked no more than it allows."""
    servers = [
        serve(rate=rate, burst_s=1.0, limit_headers="openai", latency_s=0.02)
        for rate in (60.0, 20.0)
    ]
    started_s = time.monotonic()
    asked = _ask(make_engine(*(server.url for server in servers), concurrency=32), 400)
    assert all(outcome.reason is None for outcome in asked)
    assert time.monotonic() - started_s < 1.5 * 400 / 80
    assert sum(server.counts.n_rate_limited for server in servers) <= 60


def test_hostile_headers_cost_no_reply(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """A server that says on every answer that nothing is left is asked on, as it answers."""
    server = serve(latency_s=0.01)
    server.limit_headers = lambda: (  # type: ignore[method-assign]  # a hostile one
        "x-ratelimit-limit-requests: 1e99\r\nx-ratelimit-remaining-requests: 0\r\n"
        "x-ratelimit-reset-requests: 23h\r\nretry-after: 999999\r\nratelimit: ;;;r=\r\n"
    )
    started_s = time.monotonic()
    asked = _ask(make_engine(server.url, concurrency=8), 200)
    assert all(outcome.reason is None for outcome in asked)
    assert time.monotonic() - started_s < 10.0


def test_anthropics_limit_is_kept_to_in_its_own_dialect(make_engine: EngineFactory) -> None:
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
        asked = _ask(engine, 100)
        assert all(outcome.reason is None for outcome in asked)
    assert state["refused"] <= 16
