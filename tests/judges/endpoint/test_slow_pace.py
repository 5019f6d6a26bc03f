"""The pace of few requests a second, told what an endpoint does by hand."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import pytest

from lmms_eval_captions.judges.endpoint.slow_pace import SlowPace


def _run(pace: SlowPace, is_refused: Callable[[float], bool], *, n: int, from_s: float) -> float:
    """Send ``n`` requests at the pace's own rate; the time afterwards, in seconds."""
    now_s = from_s
    for _ in range(n):
        now_s += 1.0 / pace.rate
        rate = pace.rate
        pace.send(now_s, rate)
        if is_refused(rate):
            pace.refuse(now_s, now_s)
    return now_s


def test_it_falls_and_rises_step_by_step() -> None:
    """Where one in eight is answered the rate falls far, never at once; then it rises as far."""
    pace = SlowPace(20.0, random.Random(0))
    rates, now_s = [pace.rate], 0.0
    for number in range(400):
        now_s = _run(pace, lambda _, number=number: number % 8 > 0, n=1, from_s=now_s)  # type: ignore[misc]  # its own number
        rates.append(pace.rate)
    assert min(rates) < 1.0
    _run(pace, lambda _: False, n=400, from_s=now_s)
    assert pace.is_over
    steps = [after / before for before, after in pairwise(rates)]
    assert min(steps) >= 1.5**-2 - 1e-9


def test_a_window_that_is_used_up_is_no_limit_of_a_second() -> None:
    """Where nothing is taken any more, one goes out now and then; where some is, all goes on."""
    pace = SlowPace(20.0, random.Random(0))
    now_s = _run(pace, lambda _: False, n=30, from_s=0.0)
    rate = pace.rate
    now_s = _run(pace, lambda _: True, n=40, from_s=now_s)
    assert rate / 10.0 - 1e-9 <= pace.rate <= rate / 5.0
    now_s = _run(pace, lambda _: False, n=2, from_s=now_s)
    assert pace.rate >= rate / 1.5


@pytest.mark.parametrize("delay_s", [0.0, 1.0, 3.0])
def test_a_refusal_that_is_under_way_is_no_answer(delay_s: float) -> None:
    """However long refusals take, a limit of one a second is found, and not left."""
    pace, refusals, now_s, open_s = SlowPace(20.0, random.Random(0)), deque[float](), 0.0, 0.0
    n_refused = 0
    for _ in range(1500):
        now_s += 1.0 / pace.rate
        while refusals and refusals[0] + delay_s <= now_s:
            pace.refuse(refusals.popleft(), now_s)
        pace.send(now_s, pace.rate)
        if now_s < open_s:
            refusals.append(now_s)
            n_refused += now_s > 300.0
        else:
            open_s = now_s + 1.0
    assert not pace.is_over
    assert pace.rate == pytest.approx(1.0, rel=0.3)
    assert n_refused <= 100


def test_a_refusal_that_nothing_is_known_of_changes_nothing() -> None:
    """One of a request that went out before the first that is remembered."""
    pace = SlowPace(5.0, random.Random(0))
    pace.send(10.0, 5.0)
    rate, noise = pace.rate, pace.noise
    pace.refuse(9.0, 10.0)
    assert (pace.rate, pace.noise) == (rate, noise)


def test_the_rate_that_is_seen_is_what_counts() -> None:
    """Where one request a second goes out though five may, nothing is learnt of five a second."""
    rng = random.Random(0)
    pace = SlowPace(5.0, random.Random(0))
    for second in range(300):
        pace.send(float(second), pace.rate)
        if rng.random() < 0.2:
            pace.refuse(float(second), float(second))
    assert pace.noise == pytest.approx(0.2, abs=0.08)
    assert not pace.is_over


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_an_endpoint_that_has_changed_is_learnt_anew(noise: float) -> None:
    """A limit that falls to a quarter, and one that rises to four times as much, are followed."""
    rng = random.Random(2)
    pace = SlowPace(4.0, random.Random(0))

    def of_limit(limit: float) -> Callable[[float], bool]:
        return lambda rate: rng.random() >= (1.0 - noise) * min(1.0, limit / rate)

    now_s = _run(pace, of_limit(4.0), n=1500, from_s=0.0)
    assert pace.rate == pytest.approx(4.0, rel=0.2)
    now_s = _run(pace, of_limit(1.0), n=300, from_s=now_s)
    assert pace.rate == pytest.approx(1.0, rel=0.3)
    _run(pace, of_limit(4.0), n=1500, from_s=now_s)
    assert pace.rate == pytest.approx(4.0, rel=0.3)
