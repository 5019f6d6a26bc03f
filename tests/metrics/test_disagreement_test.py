"""The sequential test of two judges who should be the same."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from lmms_eval_captions.metrics.disagreement_test import DISAGREEMENT_TEST, DisagreementTest

TEST = DISAGREEMENT_TEST


@pytest.mark.parametrize(
    ("n_items", "n_different", "state"),
    [
        pytest.param(0, 0, "open", id="nothing was asked"),
        pytest.param(2, 2, "open", id="two of two may be chance"),
        pytest.param(3, 3, "flagged", id="three of three are not"),
        pytest.param(86, 0, "open", id="not yet enough"),
        pytest.param(87, 0, "passed", id="enough without a difference"),
        pytest.param(199, 4, "open", id="one item before the end"),
        pytest.param(200, 4, "passed", id="four of all"),
        pytest.param(200, 5, "flagged", id="five of all"),
    ],
)
def test_states_that_were_worked_out_by_hand(n_items: int, n_different: int, state: str) -> None:
    """By the log-likelihood ratio, 2.303 for a difference and -0.0463 for none."""
    assert TEST.state(n_items, n_different) == state


@pytest.mark.parametrize("rate", [0.0, 0.005, 0.05, 0.3, 1.0])
def test_its_odds_are_those_of_all_paths_of_a_short_test(rate: float) -> None:
    """Each of 2 to the power of 10 paths is walked, and weighed by its probability."""
    short = DisagreementTest(most_items=10, cut=2, least_differences=2, log_flagged=4.0)
    flagged = passed = items = 0.0
    for path in product((False, True), repeat=10):
        state, n_items, _ = short.of(path)
        n = sum(path)
        weight = rate**n * (1 - rate) ** (10 - n)
        flagged += weight * (state == "flagged")
        passed += weight * (state == "passed")
        items += weight * n_items
    odds = short.odds(rate)
    assert (odds.flagged, odds.passed, odds.items) == pytest.approx((flagged, passed, items))


@pytest.mark.parametrize("rate", [0.001, 0.005, 0.01, 0.05, 0.1])
def test_it_flags_no_more_often_than_both_of_its_bounds_allow(rate: float) -> None:
    """At the end it counts to five: by scipy's binomial, early decisions move that by little."""
    odds = TEST.odds(rate)
    at_the_end = float(binom.sf(TEST.cut - 1, TEST.most_items, rate))
    assert odds.flagged + odds.passed == pytest.approx(1)
    assert odds.flagged == pytest.approx(at_the_end, abs=0.02)


def test_it_promises_power_and_few_false_alarms() -> None:
    """5% is flagged in 95 of 100 cases within 200 items, 0.5% in at most 1."""
    assert TEST.most_items <= 200
    assert TEST.odds(0.05).flagged >= 0.95
    assert TEST.odds(0.005).flagged <= 0.01
    assert TEST.odds(0.0).passed == 1


def test_drawn_judges_come_to_what_it_promises() -> None:
    """20,000 judges of each kind, and such as differ on exactly 10 of 200 in any order."""
    rng = np.random.default_rng(0)

    def share_flagged(draws: np.ndarray) -> float:
        return float(np.mean([TEST.of(row)[0] == "flagged" for row in draws.tolist()]))

    assert share_flagged(rng.random((20_000, 200)) < 0.05) == pytest.approx(
        TEST.odds(0.05).flagged, abs=0.006
    )
    assert share_flagged(rng.random((20_000, 200)) < 0.005) <= 0.01
    ten = rng.permuted(np.tile(np.arange(200) < 10, (5_000, 1)), axis=1)
    assert share_flagged(ten) >= 0.98


@given(st.lists(st.booleans(), max_size=220))
def test_nothing_is_looked_at_after_the_decision(differs: list[bool]) -> None:
    """The state is that of the items up to it, and no earlier one had decided."""
    state, n_items, n_different = TEST.of(differs)
    assert n_different == sum(differs[:n_items])
    assert state == TEST.state(n_items, n_different)
    earlier = [TEST.state(n, sum(differs[:n])) for n in range(1, n_items)]
    assert set(earlier) <= {"open"}
    assert state != "open" or n_items == len(differs)


@pytest.mark.parametrize(
    "wrong", [{"same": 0.0}, {"same": 0.1, "different": 0.05}, {"most_items": 0}, {"cut": 0}]
)
def test_hypotheses_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    """An honest judge differs less often than another one, and something is asked."""
    with pytest.raises(ValueError, match="expected 0 < same"):
        DisagreementTest(**wrong)  # type: ignore[arg-type]  # that is the point
