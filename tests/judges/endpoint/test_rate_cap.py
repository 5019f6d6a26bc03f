"""The user's own limit of requests a second: on a simulated clock, beside pacing, over the wire."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import pairwise
from math import inf
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import JudgeServer, Refuse, Say, Script
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.pacing import Pacing
from lmms_eval_captions.judges.endpoint.rate_cap import RateCap
from simulated_limits import Endpoint, Limit, Simulation

RATES = [0.5, 10.0, 100.0, 2000.0]


def _most_beyond(sent_s: list[float], rate: float) -> float:
    """Requests beyond ``rate`` a second, within the time where these are most."""
    beyond = [1.0]
    for before_s, after_s in pairwise(sent_s):
        beyond.append(max(0.0, beyond[-1] - (after_s - before_s) * rate) + 1.0)
    return max(beyond)


def _sent(pacing: Pacing, seconds: float, late_s: Callable[[], float] = lambda: 0.0) -> list[float]:
    """When requests go out of which there are more than enough, by timers that may be late."""
    now_s, sent_s = 0.0, list[float]()
    while now_s < seconds:
        while pacing.take(now_s):
            sent_s.append(now_s)
        now_s += pacing.wait_s() + late_s()
    return sent_s


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("late_s", [0.0, 0.01, 0.045])
def test_as_many_go_out_as_are_allowed(rate: float, late_s: float) -> None:
    """Over ten seconds, and longer, within 3%, though each timer may run out late."""
    rng = random.Random(0)
    pacing, seconds = Pacing(cap=RateCap(rate)), max(10.0, 50.0 / rate)
    sent_s = _sent(pacing, seconds, lambda: rng.uniform(0.0, late_s))
    assert len(sent_s) == pytest.approx(rate * seconds, rel=0.03, abs=1.0)


@pytest.mark.parametrize("rate", RATES)
def test_never_more_go_out_in_any_time(rate: float) -> None:
    """A twentieth of a second's worth, and one, beyond the rate; the more so after a pause."""
    rng = random.Random(1)
    pauses_s = [0.0] * 50 + [0.03, 0.3, 30.0]
    sent_s = _sent(Pacing(cap=RateCap(rate)), 3000.0 / rate, lambda: rng.choice(pauses_s))
    assert len(sent_s) >= 20
    assert _most_beyond(sent_s, rate) <= 1.0 + rate / 20 + 1e-6


@pytest.mark.parametrize("rate", [0.5, 10.0, 19.0])
def test_few_a_second_never_go_out_together(rate: float) -> None:
    """At less than 20 a second there is one at a time, a twentieth of a second early at most."""
    sent_s = _sent(Pacing(cap=RateCap(rate)), 40.0 / rate)
    gaps_s = [after_s - before_s for before_s, after_s in pairwise(sent_s)]
    assert min(gaps_s) >= 1.0 / rate - 0.05 - 1e-9
    assert max(gaps_s) == pytest.approx(1.0 / rate)


@given(
    st.floats(0.1, 5000.0),
    st.lists(st.tuples(st.floats(0.0, 0.5), st.booleans()), max_size=300),
)
def test_whatever_is_asked_when_the_cap_holds(rate: float, asks: list[tuple[float, bool]]) -> None:
    """Requests that are sent once more in another form are counted, and wait for their time."""
    pacing, now_s, sent_s = Pacing(cap=RateCap(rate)), 0.0, list[float]()
    for pause_s, is_again in asks:
        now_s += pause_s
        if is_again:
            sent_s.append(now_s + pacing.send_again(now_s))
        elif pacing.take(now_s):
            sent_s.append(now_s)
        else:
            assert pacing.wait_s() > 0.0
    assert sorted(sent_s) == sent_s
    assert not sent_s or _most_beyond(sent_s, rate) <= 1.0 + rate / 20 + 1e-6


def test_without_a_cap_nothing_is_held_back() -> None:
    """A thousand at one moment."""
    pacing = Pacing()
    assert all(pacing.take(0.0) for _ in range(1000))
    assert pacing.send_again(0.0) == 0.0


@pytest.mark.parametrize("rate", [100.0, 10.0, 0.5])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3])
def test_a_cap_is_no_limit_of_the_endpoint(rate: float, share: float) -> None:
    """What is refused by chance, below the cap, stays noise: the cap is made use of."""
    seconds = max(120.0, 600.0 / rate)
    spans = []
    for seed in range(3):
        simulation = Simulation(Endpoint(noise=lambda _: share), seed=seed, max_rate=rate)
        simulation.run(seconds)
        spans.append(simulation.run(seconds))
        if share == 0.0:
            assert simulation.askers[0].pacing.rate == inf
            assert simulation.askers[0].pacing.is_noise
        assert _most_beyond(simulation.askers[0].sent, rate) <= 1.0 + rate / 20 + 1e-6
    assert median(span.n_sent / seconds for span in spans) >= 0.9 * rate


@pytest.mark.parametrize(("cap", "limit"), [(100.0, 40.0), (100.0, 95.0), (10.0, 4.0), (2.0, 1.0)])
def test_a_limit_below_the_cap_is_found_as_without_one(cap: float, limit: float) -> None:
    """The smaller rate counts; hardly anything is refused."""
    for seed in range(2):
        endpoint = Endpoint(Limit(limit, max(1.0, limit / 10)))
        simulation = Simulation(endpoint, seed=seed, max_rate=cap)
        simulation.run(120.0)
        span = simulation.run(600.0)
        assert span.rate == pytest.approx(limit, rel=0.1)
        assert span.refused <= 0.05


@pytest.mark.parametrize(("cap", "limit"), [(80.0, 100.0), (8.0, 10.0), (0.8, 1.0)])
def test_a_limit_above_the_cap_never_shows(cap: float, limit: float) -> None:
    """As nothing is refused, nothing is tried out."""
    endpoint = Endpoint(Limit(limit, max(2.0, limit / 10)))
    simulation = Simulation(endpoint, max_rate=cap)
    span = simulation.run(max(60.0, 200.0 / cap))
    assert span.n_refused == 0
    assert span.n_sent / span.seconds == pytest.approx(cap, rel=0.03)
    assert simulation.askers[0].pacing.rate == inf


def test_a_limit_that_is_lifted_is_left_though_the_cap_holds() -> None:
    """From then on the cap alone counts."""
    simulation = Simulation(Endpoint(Limit(50.0, 5.0)), max_rate=100.0)
    simulation.run(60.0)
    simulation.turn(requests=None)
    simulation.run(60.0)
    span = simulation.run(30.0)
    assert span.rate == pytest.approx(100.0, rel=0.03)
    assert simulation.askers[0].pacing.rate == inf
    assert simulation.askers[0].pacing.is_noise


@pytest.mark.parametrize("headers", ["openai", "anthropic", "seconds"])
@pytest.mark.parametrize(("cap", "limit"), [(50.0, 20.0), (20.0, 50.0)])
def test_a_limit_that_is_told_and_a_cap_are_both_kept_to(
    headers: Any, cap: float, limit: float
) -> None:
    """The smaller of the two is used, and next to nothing refused."""
    simulation = Simulation(Endpoint(Limit(limit, 60 * limit), headers=headers), max_rate=cap)
    simulation.run(120.0)
    span = simulation.run(60.0)
    assert span.refused <= 0.01
    assert span.rate == pytest.approx(min(cap, limit), rel=0.05)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("limit", [None, Limit(100.0, 10.0), Limit(10.0)])
def test_a_cap_out_of_reach_changes_nothing(share: float, limit: Limit | None) -> None:
    """Requests go out at the same moments, and as much is believed of limit and noise."""
    endpoint = Endpoint(limit, noise=lambda _: share)
    plain, capped = Simulation(endpoint), Simulation(endpoint, max_rate=1e12)
    assert plain.run(40.0) == capped.run(40.0)
    (one,), (other,) = plain.askers, capped.askers
    assert one.sent == other.sent
    assert (one.pacing.rate, one.pacing.base) == (other.pacing.rate, other.pacing.base)
    assert one.pacing.is_noise == other.pacing.is_noise


def _arrivals(server: JudgeServer, script: Script = lambda _: None) -> list[float]:
    """When each request came, from now on; what it gets says the script."""
    came_s = list[float]()

    def counted(payload: dict[str, Any]) -> Say | Refuse | str | None:
        came_s.append(time.monotonic())
        return script(payload)

    server.script = counted
    return came_s


def _n_within(came_s: list[float], seconds: float) -> int:
    """Requests so long from the first one on."""
    return sum(at_s - came_s[0] < seconds for at_s in came_s)


def test_two_engines_with_half_of_it_each_keep_the_rate(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """For three seconds, with more to ask than may be sent, as many come as are allowed."""
    server, rate, seconds = serve(latency_s=0.02), 100.0, 3.0
    came_s = _arrivals(server)
    futures: list[Future[list[Asked[str]]]] = [
        make_engine(server.url, max_rate=rate / 2).submit(
            [chain(f"Question {name} {index}") for index in range(300)]
        )
        for name in "ab"
    ]
    time.sleep(seconds + 0.3)
    assert _n_within(came_s, seconds) == pytest.approx(rate * seconds, rel=0.1)
    assert not any(future.done() for future in futures)


def _failing() -> Script:
    """Half of all fail, or are refused."""
    rng = random.Random(0)
    return lambda _: rng.choice([None, None, "429", "500"])


def _choosing() -> Script:
    """No model takes a temperature."""
    refusal = Refuse(400, "Unsupported value: 'temperature' does not support 0 with this model.")
    return lambda payload: refusal if "temperature" in payload else None


@pytest.mark.parametrize("answers", [_failing, _choosing], ids=["failed", "in another form"])
def test_what_is_sent_again_counts(
    answers: Callable[[], Script], serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Failures, and parameters that models refuse, make nothing go out faster."""
    server, rate = serve(), 40.0
    came_s = _arrivals(server, answers())
    chains = [chain(f"Question {index}", model=f"judge-{index % 20}") for index in range(60)]
    asked = make_engine(server.url, max_rate=rate).submit(chains).result(timeout=60)
    assert all(outcome.reason is None for outcome in asked)
    assert len(came_s) >= 80
    seconds = came_s[-1] - came_s[0]
    assert len(came_s) <= 1 + rate * (seconds + 0.05) + 1
