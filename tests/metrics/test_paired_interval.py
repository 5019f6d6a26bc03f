"""Differences of captioners on the same videos, against other packages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmms_eval_captions.metrics.paired import paired_interval
from ratio_cells import ratio

Counts = npt.NDArray[np.int64]


def two(n_videos: int, seed: int = 0) -> tuple[Counts, Counts, Counts]:
    """Right answers of two captioners to the same questions, and how many these are."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 30, n_videos)
    shares = rng.beta(1, 2, n_videos)
    first = rng.binomial(sizes, shares)
    return first, rng.binomial(sizes, np.clip(shares + 0.03, 0, 1)), sizes


def test_of_means_it_is_the_paired_t_test_of_scipy() -> None:
    """A mean over videos: difference, ends and p-value of ``ttest_rel``."""
    first, second, sizes = two(60)
    a, b = first / sizes, second / sizes
    found = paired_interval(ratio(a, np.ones(60)), ratio(b, np.ones(60)), scale=100.0)
    test = stats.ttest_rel(a, b)
    ends = test.confidence_interval(0.95)
    assert found.difference == pytest.approx(100 * (a - b).mean())
    assert (found.low, found.high) == pytest.approx((100 * ends.low, 100 * ends.high))
    assert found.p_value == pytest.approx(test.pvalue)


def test_of_ratios_it_is_the_clustered_regression_of_statsmodels() -> None:
    """All verdicts regressed on the captioner, errors clustered by video, up to its correction."""
    first, second, sizes = two(60)
    verdicts, captioner, videos = [], [], []
    for place, counts in enumerate(zip(first, second, sizes, strict=True)):
        for who, right in ((1.0, counts[0]), (0.0, counts[1])):
            verdicts += [1.0] * right + [0.0] * (counts[2] - right)
            captioner += [who] * counts[2]
            videos += [place] * counts[2]
    fit = sm.OLS(verdicts, sm.add_constant(captioner)).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(videos)}
    )
    n = len(verdicts)
    found = paired_interval(ratio(first, sizes), ratio(second, sizes), scale=100.0)
    assert found.difference == pytest.approx(100 * fit.params[1])
    assert found.standard_error == pytest.approx(100 * fit.bse[1] * np.sqrt((n - 2) / (n - 1)))


@given(st.integers(0, 10_000), st.integers(10, 40), st.sampled_from([0.8, 0.95]))
@settings(max_examples=60, deadline=None)
def test_the_p_value_and_the_interval_agree(seed: int, n_videos: int, level: float) -> None:
    """0 is outside the interval exactly where the p-value is below 1 - level; swapping mirrors."""
    first, second, sizes = two(n_videos, seed)
    found = paired_interval(ratio(first, sizes), ratio(second, sizes), scale=100.0, level=level)
    back = paired_interval(ratio(second, sizes), ratio(first, sizes), scale=100.0, level=level)
    assert found.low is not None
    assert found.high is not None
    assert found.p_value is not None
    assert (found.p_value < 1 - level) == (found.low > 0 or found.high < 0)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    assert back.p_value == pytest.approx(found.p_value)


def test_equal_captioners_are_identical() -> None:
    """The same verdicts throughout: no difference, p = 1, and no interval of width 0."""
    first, _, sizes = two(20)
    found = paired_interval(ratio(first, sizes), ratio(first, sizes), scale=100.0)
    assert (found.difference, found.p_value, found.n_moved) == (0.0, 1.0, 0)
    assert (found.low, found.high, found.note) == (None, None, "identical on all 20 videos")


def test_few_videos_and_few_that_differ_say_so() -> None:
    """Nine videos, or five of thirty that differ, are a rough guess."""
    few = paired_interval(ratio(range(9), [9] * 9), ratio([4] * 9, [9] * 9), scale=100.0)
    assert few.note == "only 9 videos: a rough guess"
    first = np.arange(30) % 7
    second = first + (np.arange(30) < 5)
    found = paired_interval(ratio(second, [9] * 30), ratio(first, [9] * 30), scale=100.0)
    assert found.n_moved == 5
    assert found.note == "only 5 of 30 videos differ: a rough guess"


@pytest.mark.parametrize("n_videos", [0, 1])
def test_no_difference_of_one_video(n_videos: int) -> None:
    """One video, or none, gives no interval, and the note says so."""
    parts = ratio([1] * n_videos, [2] * n_videos)
    found = paired_interval(parts, parts, scale=100.0)
    assert (found.low, found.p_value) == (None, None)
    assert found.note == "no interval: fewer than 2 videos count"
