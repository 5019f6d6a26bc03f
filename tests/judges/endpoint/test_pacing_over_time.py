"""Noise and limits that begin, end and change, over several seeds, on a simulated clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import median

import pytest

from simulated_limits import Endpoint, Limit, Simulation, Span

MOST = 64
LATENCY_S = 0.2


def _spans(
    endpoint: Endpoint,
    *,
    first_s: float,
    seconds: float,
    n_seeds: int = 3,
    sizes: Callable[[random.Random], float] = lambda _: 1.0,
) -> list[Span]:
    """What each seed did after so many seconds."""
    spans = []
    for seed in range(n_seeds):
        simulation = Simulation(endpoint, seed=seed, sizes=sizes)
        simulation.run(first_s)
        spans.append(simulation.run(seconds))
    return spans


def _full_speed(share: float) -> float:
    """Answers a second where such a share is refused at random, each after 10 ms."""
    return MOST * (1.0 - share) / ((1.0 - share) * LATENCY_S + share * 0.01)


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.0, 0.1), (0.0, 0.3), (0.05, 0.3), (0.3, 0.05), (0.3, 0.0)],
    ids=["begins", "begins high", "grows", "falls", "ends"],
)
def test_noise_that_changes_is_paid_for_and_no_more(before: float, after: float) -> None:
    """A minute on, as many are answered as if it had always been so."""
    spans = _spans(
        Endpoint(noise=lambda now_s: before if now_s < 60.0 else after),
        first_s=70.0,
        seconds=60.0,
    )
    assert median(span.rate for span in spans) >= 0.93 * _full_speed(after)
    assert min(span.rate for span in spans) >= 0.8 * _full_speed(after)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.3])
def test_noise_costs_the_calls_it_repeats(share: float) -> None:
    """From the first call to the last one, 20,000 of them take a tenth longer at most."""
    for seed in range(3):
        endpoint = Endpoint(noise=lambda _: share)
        seconds = Simulation(endpoint, seed=seed, n_calls=20_000).run().seconds
        assert 20_000 / seconds >= 0.9 * _full_speed(share)


def test_noise_in_a_run_of_seconds_costs_less_than_a_third() -> None:
    """5,700 calls of 20 ms, which take less than two seconds, of which a tenth is refused."""
    for seed in range(5):
        quiet = Simulation(Endpoint(latency_s=0.02), seed=seed, n_calls=5700).run()
        noisy = Endpoint(latency_s=0.02, noise=lambda _: 0.1)
        span = Simulation(noisy, seed=seed, n_calls=5700).run()
        assert span.seconds <= quiet.seconds * (1.0 + 0.1 / 0.9 / 2) / 0.7


@pytest.mark.parametrize("rate", [100.0, 10.0, 1.0, 10 / 60])
def test_a_limit_without_a_word_is_found_in_a_minute(rate: float) -> None:
    """Within a tenth of it, with at most one request in twenty refused."""
    limit = Limit(rate, max(1.0, rate / 10))
    seconds = 240.0 if rate > 5.0 else 3600.0
    for span in _spans(Endpoint(limit), first_s=60.0, seconds=seconds, n_seeds=2):
        assert span.rate == pytest.approx(rate, rel=0.1)
        assert span.refused <= 0.05


@pytest.mark.parametrize("rate", [100.0, 10.0, 1.0])
def test_a_limit_and_noise_at_once_are_told_apart(rate: float) -> None:
    """Within a tenth of the limit, and at most one in twenty refused beyond the noise."""
    endpoint = Endpoint(Limit(rate, max(1.0, rate / 10)), noise=lambda _: 0.1)
    seconds = 300.0 if rate > 50.0 else 1200.0 if rate > 5.0 else 3600.0
    spans = _spans(endpoint, first_s=60.0, seconds=seconds, n_seeds=3 if rate > 50.0 else 7)
    assert median(span.rate for span in spans) >= 0.9 * 0.9 * rate
    assert median(span.refused for span in spans) <= 0.15


@pytest.mark.parametrize(
    ("rate", "n_right", "least", "most"),
    [(10.0, 34, 0.8, 0.05), (1.0, 38, 0.8, 0.05), (10 / 60, 22, 0.6, 0.1)],
    ids=["10 a second", "1 a second", "10 a minute"],
)
def test_chance_misleads_nobody_for_long(
    rate: float, n_right: int, least: float, most: float
) -> None:
    """Of 40 seeds of a limit and noise, most hold both targets, and none is far off."""
    endpoint = Endpoint(Limit(rate), noise=lambda _: 0.1)
    spans = _spans(endpoint, first_s=60.0, seconds=300.0 if rate > 5.0 else 3600.0, n_seeds=40)
    ends = [(span.rate / rate / 0.9, span.refused - 0.1) for span in spans]
    used, refused = sorted(used for used, _ in ends), sorted(refused for _, refused in ends)
    assert sum(used >= 0.9 and refused <= 0.05 for used, refused in ends) >= n_right
    assert median(used) >= 0.9
    assert used[3] >= least + 0.05
    assert used[0] >= least
    assert refused[-4] <= 0.8 * most
    assert refused[-1] <= most


@pytest.mark.parametrize("most", [10.0, 60.0])
def test_a_bucket_that_lets_a_burst_through_is_used_up(most: float) -> None:
    """However many come at once now and then, all that is allowed is used, noise or not."""
    for share in (0.0, 0.1):
        endpoint = Endpoint(Limit(1.0, most), noise=lambda _, share=share: share)  # type: ignore[misc]  # its own share
        for span in _spans(endpoint, first_s=300.0, seconds=1800.0):
            assert span.rate >= 0.97 * (1.0 - share)
            assert span.refused - share <= 0.1


@pytest.mark.parametrize(("latency_s", "most"), [(1.0, 8), (4.0, 8), (4.0, 64)])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_noise_of_an_endpoint_that_answers_few_a_second_is_no_limit(
    latency_s: float, most: int, share: float
) -> None:
    """It costs the calls that it repeats, and next to nothing else."""
    for seed in range(3):
        quiet = Endpoint(latency_s=latency_s, refusal_s=latency_s / 2)
        alone = Simulation(quiet, seed=seed, n_calls=2_000, most=most).run()
        noisy = Endpoint(latency_s=latency_s, refusal_s=latency_s / 2, noise=lambda _: share)
        span = Simulation(noisy, seed=seed, n_calls=2_000, most=most).run()
        # In so few requests, what it takes to find out that there is no limit shows.
        assert span.seconds <= alone.seconds * (1.0 + share / (1.0 - share) / 2) / 0.75


@pytest.mark.parametrize("refusal_s", [0.3, 0.8, 2.0])
@pytest.mark.parametrize("rate", [1.0, 5.0])
def test_a_slow_limit_is_kept_to_however_long_refusals_take(rate: float, refusal_s: float) -> None:
    """What is under way is not taken for answered."""
    endpoint = Endpoint(Limit(rate), latency_s=2.0, refusal_s=refusal_s)
    for span in _spans(endpoint, first_s=120.0, seconds=300.0):
        assert span.rate >= 0.7 * rate
        assert span.refused <= 0.1


@pytest.mark.parametrize(("rate", "window_s"), [(10.0, 5.0), (10.0, 60.0), (100.0, 10.0)])
def test_a_window_without_a_word_is_used(rate: float, window_s: float) -> None:
    """Where all is refused until the next one begins, the rate is soon what it was."""
    endpoint = Endpoint(Limit(rate, window_s=window_s))
    for span in _spans(endpoint, first_s=300.0, seconds=600.0):
        assert span.rate >= 0.7 * rate
        assert span.refused <= 0.5


@pytest.mark.parametrize(("before", "after"), [(8.0, 2.0), (2.0, 8.0), (10.0, 8.0), (5.0, 1e9)])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_slow_limit_that_changes_is_followed(before: float, after: float, share: float) -> None:
    """Some minutes on, as many are answered as if it had always been so."""
    for seed in range(3):
        simulation = Simulation(Endpoint(Limit(before), noise=lambda _: share), seed=seed)
        simulation.run(600.0)
        simulation.turn(requests=Limit(after) if after < 1e9 else None)
        simulation.run(300.0)
        span = simulation.run(300.0)
        assert span.rate >= 0.85 * min(after, MOST / LATENCY_S) * (1.0 - share)
        assert span.refused - share <= 0.08


def _sizes(rng: random.Random) -> float:
    """Tokens of a request: some 900, from 50 to 5,000."""
    return min(5_000.0, max(50.0, rng.lognormvariate(6.5, 0.8)))


def test_a_limit_of_tokens_without_a_word_is_found() -> None:
    """Larger requests are refused more often; most of what may be used is."""
    rate = 50_000.0
    endpoint = Endpoint(tokens=Limit(rate, rate))
    for span in _spans(endpoint, first_s=60.0, seconds=240.0, sizes=_sizes):
        assert span.n_tokens / span.seconds >= 0.9 * rate
        assert span.refused <= 0.12
