"""What two judges' numbers have in common, and how their difference grows with a caption."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from lmms_eval_captions.metrics.clustered_slope import clustered_slope
from lmms_eval_captions.metrics.pearson_interval import pearson_interval

numbers = st.floats(-100, 100)
pairs = st.lists(st.tuples(numbers, numbers), min_size=3, max_size=30)


@given(pairs)
def test_the_correlation_is_that_of_scipy(values: list[tuple[float, float]]) -> None:
    """Whatever the numbers are."""
    x, y = np.array(values).T
    assume(x.std() > 1e-3)
    assume(y.std() > 1e-3)
    found = pearson_interval(x.tolist(), y.tolist(), np.arange(len(x)))
    assert found.value == pytest.approx(pearsonr(x, y).statistic, abs=1e-6)


def test_the_interval_of_a_correlation_covers() -> None:
    """Of 300 samples of 60 videos with 3 captions, about 95 % hold the true correlation."""
    rng = np.random.default_rng(3)
    videos = np.repeat(np.arange(60), 3)
    covered = []
    for _ in range(300):
        of_video = np.repeat(rng.normal(size=60), 3)
        truth = of_video + rng.normal(size=180)
        first, second = truth + rng.normal(size=180), truth + rng.normal(size=180)
        found = pearson_interval(first.tolist(), second.tolist(), videos)
        covered.append(found.low <= 2 / 3 <= found.high)  # type: ignore[operator] # has one
    assert 0.92 <= np.mean(covered) <= 0.98


def test_the_same_number_everywhere_has_no_correlation() -> None:
    """It says so, as nothing does."""
    for first in ([0.1] * 3, []):
        found = pearson_interval(first, [1.0, 2.0, 3.0][: len(first)], np.arange(len(first)))
        assert isnan(found.value)
        assert "no value" in found.note


def test_slope_and_error_are_those_of_statsmodels() -> None:
    """Least squares with its error clustered by video."""
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(25), 4)
    x = rng.integers(5, 200, 100).astype(np.float64)
    y = 0.03 * x + np.repeat(rng.normal(size=25), 4) + rng.normal(size=100)
    fit = sm.OLS(y, sm.add_constant(x)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    found = clustered_slope(x.tolist(), y.tolist(), clusters)
    assert found.slope == pytest.approx(fit.params[1])
    assert (found.low, found.high) == pytest.approx(tuple(fit.conf_int()[1]))
    assert found.p_value == pytest.approx(fit.pvalues[1])


@pytest.mark.parametrize(
    ("x", "y", "clusters"),
    [
        pytest.param([3.0, 3.0], [1.0, 2.0], [0, 1], id="one length"),
        pytest.param([], [], [], id="nothing"),
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.0, 9.0], [0, 0, 0], id="one video"),
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0, 1, 2], id="a straight line"),
    ],
)
def test_no_false_interval_of_a_slope(x: list[float], y: list[float], clusters: list[int]) -> None:
    """Where the videos cannot tell how sure it is."""
    found = clustered_slope(x, y, np.array(clusters, dtype=np.intp))
    assert (found.low, found.high, found.p_value) == (None, None, None)
