"""What captions add to a metric, and the standard error that follows."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, isnan, prod, sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.metrics.jackknife_influences import jackknife_influences
from lmms_eval_captions.metrics.ratio_influences import Parts, ratio_influences

numbers = st.floats(0, 100)
counts = st.tuples(numbers, st.floats(0.1, 100))


@pytest.mark.parametrize(
    ("captions", "influences"),
    [
        pytest.param([[(1, 1)], [(0, 1)]], [25.0, -25.0], id="a mean"),
        pytest.param([[(3, 4)], [(1, 1)], [(0, 5)]], [14.0, 6.0, -20.0], id="a ratio"),
        pytest.param([[(1, 2)], [(0, 0)], [(0, 2)]], [12.5, 0.0, -12.5], id="a silent caption"),
        pytest.param([[(1, 1), (1, 10)], [(1, 1), (1, 30)]], [1.25, -1.25], id="over a mean"),
        pytest.param([[(0, 2)], [(0, 3)]], [0.0, 0.0], id="nothing is right"),
    ],
)
def test_influences_are_those_worked_by_hand(
    captions: list[Parts], influences: list[float]
) -> None:
    """A caption's surplus over the ratio, of the whole denominator, in the value's unit."""
    assert ratio_influences(captions, scale=100.0) == pytest.approx(influences)


@given(st.lists(st.tuples(counts, counts), min_size=1, max_size=8))
def test_influences_are_slopes_of_the_value(captions: list[Parts]) -> None:
    """They sum to 0, and a little more of a caption moves the value by a little of them.

    What is compared with is exact, so that two errors are left, both in proportion to the value.
    Rounding: an influence is four products of at most the value's size, and some ten roundings of
    1.1e-16 go into each; over all captions that is less than 1e-14. The step: each sum grows by at
    most the step, in proportion, so that the slope is off by at most three steps.
    """
    influences = ratio_influences(captions, scale=100.0)
    ones = [Fraction(1)] * len(captions)
    value = _value(captions, ones)
    step, smallest = Fraction(1, 10**15), 1e-300
    rounding = 1e-14 * float(value) + smallest
    assert abs(fsum(influences)) <= rounding
    for place, influence in enumerate(influences):
        weights = [*ones[:place], 1 + step, *ones[place + 1 :]]
        slope = float((_value(captions, weights) - value) / step)
        assert abs(slope - influence) <= rounding + 4 * float(step * value)


def _value(captions: list[Parts], weights: list[Fraction]) -> Fraction:
    sums = [
        [
            sum(w * Fraction(parts[k][side]) for w, parts in zip(weights, captions, strict=True))
            for k in (0, 1)
        ]
        for side in (0, 1)
    ]
    return 100 * Fraction(prod(sums[0]), prod(sums[1]))


def test_a_ratio_of_nothing_has_no_influences() -> None:
    """Where a denominator is 0, there is no value to move; without captions, a mistake."""
    assert all(map(isnan, ratio_influences([[(0, 0)], [(0, 0)]], scale=1.0)))
    with pytest.raises(ValueError, match="at least 1 caption"):
        ratio_influences([], scale=1.0)


@given(st.lists(numbers, min_size=2, max_size=10))
def test_of_a_mean_all_ways_are_the_textbook(values: list[float]) -> None:
    """Linearised or by leaving out: the error is the deviation over the root of the number."""
    textbook = stdev(values) / sqrt(len(values))
    linear = ratio_influences([[(value, 1)] for value in values], scale=1.0)
    left_out = jackknife_influences(len(values), lambda places: fmean(values[i] for i in places))
    assert left_out == pytest.approx(linear, abs=1e-9)
    n = len(linear)
    error = sqrt(sum(influence**2 for influence in linear) * n / (n - 1))
    assert error == pytest.approx(textbook, abs=1e-9)
