"""Intervals over videos, against other packages and a bootstrap written out."""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lmms_eval_captions.metrics.intervals import interval
from lmms_eval_captions.metrics.paired import paired_interval
from ratio_cells import ends, of, ratio

Counts = npt.NDArray[np.int64]


def drawn(n_videos: int, *, seed: int = 0, mean: float = 0.4) -> tuple[Counts, Counts]:
    """Right answers and questions of videos whose questions go together."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 30, n_videos)
    return rng.binomial(sizes, rng.beta(3 * mean, 3 * (1 - mean), n_videos)), sizes


def test_the_error_is_that_of_statsmodels_clustered_by_video() -> None:
    """Questions regressed on a constant, with errors robust to clusters, give the same error."""
    right, sizes = drawn(80)
    verdicts = np.concatenate(
        [np.repeat([1.0, 0.0], (r, m - r)) for r, m in zip(right, sizes, strict=True)]
    )
    videos = np.repeat(np.arange(80), sizes)
    fit = sm.OLS(verdicts, np.ones_like(verdicts)).fit(
        cov_type="cluster", cov_kwds={"groups": videos}
    )
    found = of(ratio(right, sizes))
    assert found.value == pytest.approx(100 * fit.params[0])
    assert found.standard_error == pytest.approx(100 * fit.bse[0])


def test_of_many_videos_it_is_the_interval_of_scipy() -> None:
    """With 1,000 videos it agrees with Student's t and with scipy's bootstrap (BCa)."""
    right, sizes = drawn(1000)
    shares = right / sizes
    low, high = ends(of(ratio(shares, np.ones(1000))))
    width = high - low
    t = stats.t.interval(0.95, 999, 100 * shares.mean(), 100 * stats.sem(shares))
    assert (low, high) == pytest.approx(t, abs=0.04 * width)
    low, high = ends(of(ratio(right, sizes)))
    bca = stats.bootstrap(
        (right, sizes),
        lambda r, m, axis=-1: 100 * r.sum(axis) / m.sum(axis),
        paired=True, vectorized=True, n_resamples=2999, rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert (low, high) == pytest.approx((bca.low, bca.high), abs=0.05 * (high - low))


@pytest.mark.parametrize("mean", [0.1, 0.4, 0.8])
def test_it_is_a_bootstrap_t_written_out(mean: float) -> None:
    """Thirty videos drawn anew 20,000 times in a plain loop end where it ends."""
    right, sizes = drawn(30, seed=3, mean=mean)
    rng = np.random.default_rng(7)

    def angle_and_error(r: Counts, m: Counts) -> tuple[float, float]:
        share = r.sum() / m.sum()
        error = sqrt(((r - share * m) ** 2).sum() * 30 / 29) / m.sum()
        return float(np.arcsin(np.sqrt(share))), float(error / (2 * np.sqrt(share * (1 - share))))

    angle, error = angle_and_error(right, sizes)
    distances = []
    for _ in range(20_000):
        taken = rng.integers(0, 30, 30)
        other, its_error = angle_and_error(right[taken], sizes[taken])
        distances.append((other - angle) / its_error)
    above, below = np.quantile(distances, [0.975, 0.025])
    expected = [100 * np.sin(angle - q * error) ** 2 for q in (above, below)]
    low, high = ends(of(ratio(right, sizes)))
    assert (low, high) == pytest.approx(expected, abs=0.06 * (high - low))


def test_the_order_of_videos_does_not_matter() -> None:
    """The same videos in another order, and videos without a part between them, change nothing."""
    right, sizes = drawn(50)
    order = np.random.default_rng(1).permutation(50)
    shuffled = ratio([*right[order], 0], [*sizes[order], 0])
    assert of(shuffled) == of(ratio(right, sizes))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=25),
    st.sampled_from([0.8, 0.95]),
)
@settings(max_examples=60, deadline=None)
def test_it_holds_the_value_and_keeps_within_bounds(
    videos: list[tuple[int, int]], level: float
) -> None:
    """Whatever was counted: ends around the value, between 0 and 100, or none and why."""
    found = of(ratio([min(pair) for pair in videos], [pair[1] for pair in videos]), level)
    if found.low is None or found.high is None:
        assert found.note.startswith("no interval")
        assert found.method == "none"
    else:
        assert 0.0 <= found.low <= found.value <= found.high <= 100.0
        assert found.low < found.high


@pytest.mark.parametrize(
    ("tops", "bottoms", "note"),
    [
        pytest.param([0] * 12, [4] * 12, "no interval: all 12 videos are alike", id="0 %"),
        pytest.param([4] * 12, [4] * 12, "no interval: all 12 videos are alike", id="100 %"),
        pytest.param([1] * 12, [3] * 12, "no interval: all 12 videos are alike", id="a third"),
        pytest.param([1], [3], "no interval: fewer than 2 videos count", id="one video"),
        pytest.param([0, 0], [0, 0], "no interval: fewer than 2 videos count", id="none"),
    ],
)
def test_no_false_interval(tops: list[int], bottoms: list[int], note: str) -> None:
    """Where videos do not differ, or there are none, the note says so and there are no ends."""
    found = of(ratio(tops, bottoms))
    assert (found.low, found.high, found.note) == (None, None, note)


def test_a_run_without_a_value_says_so() -> None:
    """Where one of two judge runs answers nothing, there is no mean over runs and no interval."""
    runs = np.concatenate([ratio([1, 2, 0], [2, 2, 2]), ratio([0, 0, 0], [0, 0, 0])])
    assert of(runs).note == "no interval: the metric has no value in some judge run"
    found = paired_interval(runs, runs, scale=100.0)
    assert found.note == "no interval: the metric has no value in some judge run"


def test_few_videos_say_so() -> None:
    """Nine videos give a rough guess, ten an interval."""
    assert of(ratio(range(9), [9] * 9)).note == "only 9 videos: a rough guess"
    assert of(ratio(range(10), [10] * 10)).note == ""


@pytest.mark.parametrize("bounds", [(-1.0, 5.0), (5.0, 1.0), (0.0, float("inf")), (0.0, 0.0)])
def test_bounds_are_a_lowest_and_a_highest_value(bounds: tuple[float, float]) -> None:
    """Other bounds are refused in words."""
    with pytest.raises(ValueError, match="expected finite bounds of at least 0"):
        interval(ratio([1, 2], [2, 3]), scale=1.0, bounds=bounds)
