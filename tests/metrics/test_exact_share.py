"""A share with its exact interval."""

from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from lmms_eval_captions.metrics.exact_share import ExactShare


@given(st.integers(1, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_its_ends_are_those_of_scipys_exact_binomial_test(pair: tuple[int, int]) -> None:
    """Clopper and Pearson's interval, as an independent implementation has it."""
    n, of = pair
    expected = binomtest(n, of).proportion_ci(confidence_level=0.95, method="exact")
    share = ExactShare(n, of)
    assert share.low == pytest.approx(expected.low, abs=1e-9)
    assert share.high == pytest.approx(expected.high, abs=1e-9)


@pytest.mark.parametrize("true", [0.02, 0.5, 0.985])
def test_it_covers_at_least_as_often_as_it_says(true: float) -> None:
    """Summed over all outcomes of 60 things, with their probabilities."""
    covered = [
        float(binom.pmf(n, 60, true))
        for n in range(61)
        if ExactShare(n, 60).low <= true <= ExactShare(n, 60).high
    ]
    assert sum(covered) >= 0.95


def test_of_nothing_there_is_no_share() -> None:
    """Its interval is everything."""
    nothing = ExactShare(0, 0)
    assert isnan(nothing.share)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


@pytest.mark.parametrize(("n", "of", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_what_is_no_share_is_refused(n: int, of: int, level: float) -> None:
    """More than all, fewer than none, and a level that no interval has."""
    with pytest.raises(ValueError, match="expected 0 <= n <= of"):
        ExactShare(n, of, level)
