"""Pacing on a simulated clock: a limit is found, kept to, and left when it is lifted."""

from __future__ import annotations

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.endpoint.pacing import Pacing


class _Endpoint:
    """Takes ``rate`` requests a second, refuses the rest at once; replies after a round trip.

    At most ``most`` requests are in flight.

    It also refuses a share ``noise`` of all requests, however few there are.
    """

    def __init__(
        self, most: int, rate: float, latency_s: float = 0.2, *, noise: float = 0.0
    ) -> None:
        self.pacing = Pacing()
        self.most = most
        self.rate = rate
        self.noise = noise
        self.random = random.Random(0)
        self.latency_s = latency_s
        self.now_s = 0.0
        self.tokens = 0.0
        self.replies: list[float] = []
        self.n_sent = self.n_refused = 0

    def run(self, seconds: float, step_s: float = 0.002) -> tuple[float, float]:
        """Requests answered a second, and the share of requests refused."""
        n_answered, n_sent, n_refused = 0, self.n_sent, self.n_refused
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += step_s
            self.tokens = min(max(1.0, self.rate / 10), self.tokens + step_s * self.rate)
            while self.replies and self.replies[0] <= self.now_s:
                self.replies.pop(0)
                n_answered += 1
            self._send()
        share = (self.n_refused - n_refused) / max(1, self.n_sent - n_sent)
        return n_answered / seconds, share

    def _send(self) -> None:
        while len(self.replies) < self.most and self.pacing.take(self.now_s):
            self.n_sent += 1
            if self.tokens >= 1.0 and self.random.random() >= self.noise:
                self.tokens -= 1.0
                self.replies.append(self.now_s + self.latency_s)
            else:
                self.n_refused += 1
                self.pacing.on_rate_limit(self.now_s)


@pytest.mark.parametrize("rate", [10.0, 20.0, 100.0, 400.0])
@pytest.mark.parametrize("most", [64, 256])
def test_a_rate_limit_is_found_and_hardly_ever_passed(rate: float, most: int) -> None:
    """After ten seconds the endpoint is within a tenth of its limit, with few refusals."""
    endpoint = _Endpoint(most, rate)
    endpoint.run(10.0)
    answered, refused = endpoint.run(30.0)
    reachable = min(rate, most / endpoint.latency_s)
    assert answered == pytest.approx(reachable, rel=0.1)
    assert refused < 0.05
    assert endpoint.n_refused < 0.05 * endpoint.n_sent + 40


@pytest.mark.parametrize("rate", [0.2, 1.0, 3.0])
def test_a_few_requests_a_minute_are_kept_to(rate: float) -> None:
    """Free tiers take little. After some minutes they are asked within a sixth of it."""
    endpoint = _Endpoint(64, rate)
    endpoint.run(200.0, step_s=0.01)
    answered, refused = endpoint.run(300.0, step_s=0.01)
    assert answered == pytest.approx(rate, rel=0.15)
    assert refused < 0.1


def test_minutes_without_any_answer_are_recovered_from() -> None:
    """An endpoint that refused everything for five minutes is asked at full speed in ten."""
    endpoint = _Endpoint(64, 200.0)
    endpoint.run(10.0)
    endpoint.rate = endpoint.tokens = 0.0
    endpoint.run(300.0, step_s=0.01)
    endpoint.rate = 1e9
    endpoint.run(600.0, step_s=0.01)
    assert endpoint.run(5.0)[0] == pytest.approx(64 / 0.2, rel=0.1)


def test_a_limit_that_is_lifted_is_left() -> None:
    """Half a minute later requests go out as fast as places allow."""
    endpoint = _Endpoint(64, 50.0)
    endpoint.run(20.0)
    endpoint.rate = 1e9
    endpoint.run(30.0)
    assert endpoint.run(5.0)[0] == pytest.approx(64 / 0.2, rel=0.1)


def test_a_limit_that_is_lowered_is_followed() -> None:
    """A provider that takes less from now on gets less, within seconds."""
    endpoint = _Endpoint(256, 200.0)
    endpoint.run(15.0)
    endpoint.rate = 20.0
    endpoint.run(15.0)
    answered, refused = endpoint.run(20.0)
    assert answered == pytest.approx(20.0, rel=0.1)
    assert refused < 0.05


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.02])
def test_refusals_that_have_nothing_to_do_with_the_rate_slow_nothing_down(noise: float) -> None:
    """An endpoint that is overloaded now and then is asked as fast as places allow."""
    endpoint = _Endpoint(256, 1e9, noise=noise)
    endpoint.run(10.0)
    assert endpoint.run(60.0)[0] == pytest.approx(256 / 0.2, rel=0.1)


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("most", [64, 256])
def test_noise_costs_the_requests_it_repeats_and_no_more(noise: float, most: int) -> None:
    """However many are refused whatever their rate, the rest goes on at nearly full speed."""
    endpoint = _Endpoint(most, 1e9, noise=noise)
    assert endpoint.run(60.0)[0] > 0.8 * most / endpoint.latency_s
    assert endpoint.pacing.base == pytest.approx(noise, abs=0.06)


@pytest.mark.parametrize(("rate", "step_s"), [(100.0, 0.002), (10.0, 0.005), (1.0, 0.01)])
def test_after_a_minute_a_limit_is_kept_to(rate: float, step_s: float) -> None:
    """Within a tenth of the limit, and at most one request in twenty is refused."""
    endpoint = _Endpoint(64, rate)
    endpoint.run(60.0, step_s)
    answered, refused = endpoint.run(240.0, step_s)
    assert answered == pytest.approx(rate, rel=0.1)
    assert refused <= 0.05


def test_ten_a_minute_are_kept_to_after_ten_minutes() -> None:
    """The same, later, for a limit that tells little in a minute; never far too much is asked."""
    endpoint = _Endpoint(64, 10 / 60)
    endpoint.run(60.0, step_s=0.02)
    assert endpoint.run(540.0, step_s=0.02)[1] < 0.25
    answered, refused = endpoint.run(1800.0, step_s=0.02)
    assert answered == pytest.approx(10 / 60, rel=0.1)
    assert refused <= 0.05


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_a_limit_is_found_beneath_noise(noise: float) -> None:
    """With both at once, little more than the noise is refused, and the limit is made use of."""
    endpoint = _Endpoint(64, 100.0, noise=noise)
    endpoint.run(20.0)
    answered, refused = endpoint.run(60.0)
    assert answered == pytest.approx(100.0, rel=0.1)
    assert refused < noise + 0.08


def test_noise_that_begins_at_a_limit_is_noticed() -> None:
    """Refusals that come on top of a known limit cut the rate for a short time alone."""
    endpoint = _Endpoint(64, 100.0)
    endpoint.run(20.0)
    endpoint.noise = 0.1
    endpoint.run(30.0)
    assert endpoint.run(60.0)[0] == pytest.approx(100.0, rel=0.15)


def test_a_limit_that_takes_the_place_of_noise_is_noticed() -> None:
    """Refusals that were noise until now are a limit from now on."""
    endpoint = _Endpoint(64, 1e9, noise=0.2)
    endpoint.run(20.0)
    endpoint.noise, endpoint.rate, endpoint.tokens = 0.0, 50.0, 0.0
    endpoint.run(60.0)
    answered, refused = endpoint.run(60.0)
    assert answered == pytest.approx(50.0, rel=0.1)
    assert refused < 0.08


def test_a_refusal_of_what_went_out_before_a_cut_does_not_cut_again() -> None:
    """Refusals that come late tell nothing about the rate that was set meanwhile."""
    pacing = Pacing()
    for _ in range(32):
        pacing.take(0.0)
    for _ in range(32):
        pacing.on_rate_limit(0.1, 0.0)
    rate = pacing.rate
    for _ in range(32):
        pacing.on_rate_limit(2.0, 0.0)
    assert pacing.rate == rate < inf


@given(st.lists(st.booleans(), max_size=300))
def test_limits_stay_in_bounds(refusals: list[bool]) -> None:
    """Whatever comes, some rate above 0 is allowed."""
    pacing = Pacing()
    for number, is_refused in enumerate(refusals):
        now_s = number * 0.1
        pacing.take(now_s)
        if is_refused:
            pacing.on_rate_limit(now_s)
        assert pacing.rate > 0.0
        assert 0.0 <= pacing.base <= 0.4
        assert pacing.rate == inf or pacing.wait_s() > 0.0
