"""What is believed of a limit and of noise, against endpoints whose limit and noise are known."""

from __future__ import annotations

import random
from math import ceil

import pytest

from lmms_eval_captions.judges.endpoint.limit_belief import LEAST_RATE, MOST_RATE, LimitBelief

LIMIT = 5.0
RATES = (3.0, 4.0, 4.5, 5.5, 6.0, 8.0)


def _told(noise: float, *, limit: float = LIMIT, is_of_one: bool = False) -> LimitBelief:
    """A belief that was told of 150 requests at each rate."""
    belief, rng = LimitBelief(), random.Random(0)
    for number in range(150 * len(RATES)):
        rate = RATES[number // 25 % len(RATES)]
        taken = 1.0 / ceil(rate / limit) if is_of_one else min(1.0, limit / rate)
        belief.send(rate)
        if rng.random() >= taken * (1.0 - noise):
            belief.refuse(rate)
    return belief


@pytest.mark.parametrize("is_of_one", [True, False], ids=["a bucket of one", "a larger bucket"])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_limit_and_noise_are_told_apart(noise: float, *, is_of_one: bool) -> None:
    """Both come out near what they are, and the best rate is beneath the limit or at it."""
    belief = _told(noise, is_of_one=is_of_one)
    assert belief.noise() == pytest.approx(noise, abs=0.04)
    assert belief.limit_at(0.5) == pytest.approx(LIMIT, rel=0.12)
    assert 0.85 * LIMIT <= belief.best_rate() <= 1.1 * LIMIT
    assert belief.limit_at(0.05) <= belief.limit_at(0.5) <= belief.limit_at(0.95)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_what_is_refused_at_any_rate_is_no_limit(noise: float) -> None:
    """The limit is beyond all rates that were tried, as far as is known."""
    belief = _told(noise, limit=1e9)
    assert belief.noise() == pytest.approx(noise, abs=0.04)
    assert belief.limit_at(0.1) >= RATES[-2]
    assert belief.refused_at(RATES[0]) == pytest.approx(noise, abs=0.05)


def test_what_is_expected_depends_on_the_rate() -> None:
    """Beneath the limit it is the noise, above it that and what goes beyond."""
    belief = _told(0.1)
    assert belief.refused_at(3.0) == pytest.approx(0.1, abs=0.05)
    assert belief.refused_at(10.0) == pytest.approx(1.0 - 0.9 / 2, abs=0.07)


def test_nothing_told_is_no_certainty() -> None:
    """Anything is possible, and whatever is drawn is on the grid."""
    belief = LimitBelief()
    assert belief.limit_at(0.0) == pytest.approx(LEAST_RATE)
    assert belief.limit_at(1.0) == pytest.approx(MOST_RATE, rel=0.03)


def test_what_is_long_ago_counts_less() -> None:
    """Where a limit has fallen to a half, some thousand requests later it is known as that."""
    belief, rng = _told(0.0, limit=8.0), random.Random(1)
    for _ in range(3000):
        rate = rng.choice((3.0, 3.5, 4.5, 5.0))
        belief.send(rate)
        if rng.random() >= min(1.0, 4.0 / rate):
            belief.refuse(rate)
    assert belief.limit_at(0.5) == pytest.approx(4.0, rel=0.12)
