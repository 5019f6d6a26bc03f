"""The error of a sample's score."""

from __future__ import annotations

from itertools import combinations, product
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmms_eval_captions.lmms_eval_tasks.sampling.sampling_error import (
    StratifiedError,
    stratified_error,
)


@pytest.mark.parametrize(
    ("values", "strata", "sizes", "variance", "freedom"),
    [
        pytest.param([1, 3, 5, 9], [0, 0, 1, 1], [4, 2], 8.0, 1.0, id="one stratum known whole"),
        pytest.param([1, 3, 5, 9], [0, 0, 1, 1], [4, 4], 40.0, 40**2 / (8**2 + 32**2), id="two"),
        pytest.param([2, 2, 2], [0, 0, 0], [9], 0.0, inf, id="all alike"),
        pytest.param([7], [0], [1], 0.0, inf, id="a single question"),
        pytest.param([], [], [], 0.0, inf, id="nothing"),
    ],
)  # fmt: skip
def test_worked_examples(
    values: list[float],
    strata: list[int],
    sizes: list[float],
    variance: float,
    freedom: float,
) -> None:
    """By hand: N^2 (1 - n / N) s^2 / n, added up over strata; Satterthwaite's freedom."""
    found = stratified_error(
        np.array(values, dtype=float), np.array(strata, dtype=np.intp), np.array(sizes, dtype=float)
    )
    assert found.standard_error == pytest.approx(sqrt(variance))
    assert found.freedom == pytest.approx(freedom)


def test_its_square_is_the_variance_over_all_samples() -> None:
    """Over every possible sample, its mean square is the variance of the estimates: unbiased."""
    whole = [np.array([1.0, 4.0, 2.0, 8.0]), np.array([3.0, 3.0, 9.0])]
    estimates, squares = [], []
    for chosen in product(combinations(range(4), 2), combinations(range(3), 2)):
        drawn = [values[list(places)] for values, places in zip(whole, chosen, strict=True)]
        estimates.append(
            sum(len(all_) * some.mean() for all_, some in zip(whole, drawn, strict=True))
        )
        found = stratified_error(
            np.concatenate(drawn), np.array([0, 0, 1, 1]), np.array([4.0, 3.0])
        )
        squares.append(found.standard_error**2)
    assert np.mean(estimates) == pytest.approx(sum(values.sum() for values in whole))
    assert np.mean(squares) == pytest.approx(np.var(estimates))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.integers(0, 50))
def test_more_of_the_whole_never_makes_it_less(values: list[float], n_more: int) -> None:
    """The larger a stratum of which the same is known, the larger the error."""
    strata = np.zeros(len(values), dtype=np.intp)
    sizes = [float(len(values) + n) for n in (n_more, n_more + 1)]
    errors = [stratified_error(np.array(values), strata, np.array([size])) for size in sizes]
    assert errors[0].standard_error <= errors[1].standard_error


def test_half_a_width_is_that_of_students_t() -> None:
    """With few degrees of freedom it is wider than a normal one; without an error it is 0."""
    assert StratifiedError(2.0, 3.0).half_width() == pytest.approx(2 * stats.t.ppf(0.975, 3))
    assert StratifiedError(2.0, 1e9).half_width() == pytest.approx(2 * stats.norm.ppf(0.975))
    assert StratifiedError(0.0, inf).half_width() == 0.0
