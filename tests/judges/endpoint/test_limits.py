"""Requests in flight and per second, by what the server takes and says."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from math import inf, isfinite
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from anthropic_server import KEY, AnthropicServer, error, message
from chains import chain
from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.failures import Quota, quotas_in, retry_after_s
from lmms_eval_captions.judges.endpoint.limits import AddressLimits, Pace
from lmms_eval_captions.judges.endpoint.request import Asked
from simulated_limits import Endpoint, Headers, Limit, Simulation, Span


def _noise(share: float) -> Callable[[float], float]:
    return lambda _: share


def _at_limit(rate: float, share: float = 0.0, *, seed: int = 0) -> Span:
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
    for headers, is_refused, after_s, elapsed_s in answers:
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
        elif not limits.hear_refusal(headers, number, now_s, after_s):
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
    # All that is in flight at the end of each of the first two windows.
    assert state["refused"] <= 2 * 16


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


FORMS = {
    "openai-requests": ("requests", "x-ratelimit-{}-requests"),
    "openai-tokens": ("tokens", "x-ratelimit-{}-tokens"),
    "anthropic-requests": ("requests", "anthropic-ratelimit-requests-{}"),
    "anthropic-tokens": ("tokens", "anthropic-ratelimit-tokens-{}"),
    "anthropic-input-tokens": ("input-tokens", "anthropic-ratelimit-input-tokens-{}"),
    "anthropic-output-tokens": ("output-tokens", "anthropic-ratelimit-output-tokens-{}"),
    "draft": ("requests", "ratelimit-{}"),
    "draft-x": ("requests", "x-ratelimit-{}"),
}
ODD = (
    "", " ", "-1", "-0.5", "nan", "NaN", "inf", "-inf", "1e99", "1e3", "1_000", "0x10", "9" * 40,
    "9" * 5000, "many", "100, 100", "100, 100;w=60", "[1]", "{}", "null", "None", "½", "１０",
    "\udcff", "1 2", "+5", "5.", ".5", "1,5",
)  # fmt: skip
ODD_RESETS = (
    *ODD, "6m0", "0m-6s", "-1s", "1e9s", "1w", "ms", "s", "1s1", "999999999d", "32d",
    "2015-10-21T07:28:00Z", "9999-10-21T07:28:00Z", "0001-01-01T00:00:00+23:00",
    "2026-13-01T00:00Z", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 9999 07:28:00 GMT",
    "1400000000", "99999999999999",
)  # fmt: skip


def _headers(form: str, **values: str) -> dict[str, str]:
    name = FORMS[form][1]
    return {name.format(what): value for what, value in values.items()}


@pytest.mark.parametrize("form", FORMS)
def test_every_provider_says_what_is_left_and_until_when(form: str) -> None:
    headers = CIMultiDict(_headers(form, limit="500", remaining="499", reset="12"))
    assert quotas_in(headers) == (Quota(FORMS[form][0], 500.0, 499.0, 12.0),)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("7.66s", 7.66),
        ("2m59.56s", 179.56),
        ("1h30m12.5s", 5412.5),
        ("1d2h", 93600.0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("900ns", 9e-7),
        ("0s", 0.0),
        ("30", 30.0),
        ("0.5", 0.5),
        (" 30 ", 30.0),
    ],
)
def test_a_duration_is_read(reset: str, seconds: float) -> None:
    """OpenAI's durations, and plain seconds."""
    [quota] = quotas_in(_headers("openai-requests", remaining="1", reset=reset))
    assert quota.reset_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("2026-11-24T05:44:19Z", 60.0),
        ("2026-11-24T05:43:19.500Z", 0.5),
        ("2026-11-24T07:43:29+02:00", 10.0),
        ("2026-11-24t05:43:19z", 0.0),
        ("2026-11-24T05:43:17Z", 0.0),
        ("Tue, 24 Nov 2026 05:44:19 GMT", 60.0),
    ],
)
def test_a_moment_counts_by_the_clock_that_wrote_it(reset: str, seconds: float) -> None:
    """The answer's own date is what it is compared with; one just over is one of now."""
    headers = _headers("anthropic-requests", limit="50", remaining="1", reset=reset)
    [quota] = quotas_in({**headers, "Date": "Tue, 24 Nov 2026 05:43:19 GMT"})
    assert quota.reset_s == pytest.approx(seconds)


@pytest.mark.parametrize("date", ["", "soon", "9" * 100])
def test_a_moment_without_a_date_counts_by_our_clock(date: str) -> None:
    """Not every server says when it answered."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=30)
    headers = _headers("anthropic-tokens", remaining="1", reset=moment.isoformat())
    [quota] = quotas_in({**headers, "Date": date} if date else headers)
    assert quota.reset_s == pytest.approx(30.0, abs=2.0)


def test_a_number_of_seconds_since_1970_is_a_moment() -> None:
    """Some gateways write seconds, some milliseconds."""
    for scale in (1, 1000):
        reset = str(round((time.time() + 60.0) * scale))
        [quota] = quotas_in(_headers("draft-x", remaining="0", reset=reset))
        assert quota.reset_s == pytest.approx(60.0, abs=2.0)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_count_is_as_if_it_were_not_there(odd: str) -> None:
    assert quotas_in(_headers("draft", limit="9", remaining=odd, reset="1")) == ()
    [quota] = quotas_in(_headers("draft", limit=odd, remaining="3", reset="1"))
    assert quota == Quota("requests", None, 3.0, 1.0)


@pytest.mark.parametrize("odd", ODD_RESETS)
def test_an_odd_reset_is_as_if_it_were_not_there(odd: str) -> None:
    """Negative ones, words, lists, and dates of another age among them."""
    [quota] = quotas_in(_headers("draft", limit="9", remaining="3", reset=odd))
    assert quota == Quota("requests", 9.0, 3.0, None)


def test_more_left_than_there_can_be_is_no_count() -> None:
    """A quota that contradicts itself is left aside, the others are read."""
    headers = {
        **_headers("openai-requests", limit="10", remaining="11", reset="1s"),
        **_headers("openai-tokens", limit="10", remaining="9", reset="1s"),
    }
    assert [quota.resource for quota in quotas_in(headers)] == ["tokens"]


def test_a_limit_of_nothing_is_no_limit() -> None:
    """A gateway that writes 0 into every field says nothing of what there can be."""
    [quota] = quotas_in(_headers("openai-requests", limit="0", remaining="0", reset="0s"))
    assert quota == Quota("requests", None, 0.0, 0.0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "Retry-After": "60"}, 1.5),
        ({"retry-after-ms": "0"}, 0.0),
        ({"retry-after-ms": "-5", "Retry-After": "60"}, 60.0),
        ({"retry-after-ms": "1e9", "Retry-After": "60"}, 60.0),
        ({"retry-after-ms": "soon"}, None),
        ({"retry-after-ms": "99999999999"}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_the_finer_wait_is_believed_first(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds before seconds; an odd one leaves the other."""
    assert retry_after_s(CIMultiDict(headers)) == seconds


@given(
    st.dictionaries(
        st.sampled_from(
            [
                name.format(what)
                for _, name in FORMS.values()
                for what in ("limit", "remaining", "reset")
            ]
            + ["ratelimit", "ratelimit-policy", "Date", "retry-after-ms", "Retry-After"]
        ),
        st.text(max_size=80)
        | st.from_regex(r"[0-9.]{1,20}(ms|s|m|h|d)?[0-9.]{0,9}(s|ms)?", fullmatch=True)
        | st.from_regex(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{5,8}(Z|[+-][0-9:]{4,6})", fullmatch=True
        )
        | st.sampled_from([*ODD_RESETS, "10", "0", "60", "1s", '"a";r=1;t=2']),
    )
)
def test_no_header_is_an_error_of_ours(headers: dict[str, str]) -> None:
    """Whatever stands in them, what is read is finite and not negative."""
    for quota in quotas_in(headers):
        numbers = [quota.remaining, quota.limit or 1.0, quota.reset_s or 0.0]
        assert all(isfinite(number) and number >= 0.0 for number in numbers)
    wait_s = retry_after_s(headers)
    assert wait_s is None or 0.0 <= wait_s <= 24 * 3600.0
