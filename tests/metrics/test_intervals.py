"""Intervals of scores and of their differences."""

from __future__ import annotations

from math import sqrt
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lmms_eval_captions.metrics.intervals import interval
from lmms_eval_captions.metrics.paired import (
    Difference,
    holm,
    noise_floor,
    paired_interval,
    videos_to_settle,
)
from lmms_eval_captions.metrics.parts import judge_variances
from ratio_cells import Floats, ends, of, ratio

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


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=25))
@settings(max_examples=60, deadline=None)
def test_it_holds_the_value_and_keeps_within_bounds(videos: list[tuple[int, int]]) -> None:
    """Whatever was counted: ends around the value, between 0 and 100, or none and why."""
    found = of(ratio([min(pair) for pair in videos], [pair[1] for pair in videos]))
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
    found = of(ratio(tops, bottoms))
    assert (found.low, found.high, found.note) == (None, None, note)


def test_a_run_without_a_value_says_so() -> None:
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


@given(st.integers(0, 10_000), st.integers(10, 40))
@settings(max_examples=60, deadline=None)
def test_the_p_value_and_the_interval_agree(seed: int, n_videos: int) -> None:
    """0 is outside the interval exactly if the p-value is below 0.05; swapping mirrors."""
    first, second, sizes = two(n_videos, seed)
    found = paired_interval(ratio(first, sizes), ratio(second, sizes), scale=100.0)
    back = paired_interval(ratio(second, sizes), ratio(first, sizes), scale=100.0)
    assert found.low is not None
    assert found.high is not None
    assert found.p_value is not None
    assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)
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


def runs_of(
    n_runs: int, *, flips: float, spread: float, n_videos: int = 3000, seed: int = 0
) -> Floats:
    """Videos of eight questions whose truth spreads, judged several times with flips."""
    rng = np.random.default_rng(seed)
    truth = rng.binomial(8, np.clip(rng.normal(0.5, spread, n_videos), 0, 1))
    right = rng.binomial(truth, 1 - flips, (n_runs, n_videos)) + rng.binomial(
        8 - truth, flips, (n_runs, n_videos)
    )
    return np.stack([right, np.full_like(right, 8)], axis=-1)[:, :, None, None].astype(float)


@pytest.mark.parametrize("flips", [0.05, 0.15])
@pytest.mark.parametrize("n_runs", [2, 3, 8])
def test_the_judges_part_is_the_planted_one(n_runs: int, flips: float) -> None:
    """Flips of independent questions: their variance over runs, and its share of the interval's."""
    parts = runs_of(n_runs, flips=flips, spread=0.1)
    judge_error = np.sqrt(judge_variances(parts, scale=100.0).sum() / n_runs)
    expected = 100 * np.sqrt(flips * (1 - flips) / 8 / n_runs / 3000)
    found = of(parts)
    assert found.standard_error is not None
    assert judge_error == pytest.approx(expected, rel=0.06)
    assert found.judge_share == pytest.approx((expected / found.standard_error) ** 2, rel=0.12)
    floor = noise_floor([parts], scale=100.0, n_runs=n_runs)
    assert floor == pytest.approx(1.96 * np.sqrt(2) * expected, rel=0.06)


def test_a_judge_that_never_moves_has_no_part() -> None:
    """Equal runs have none of the variance and no noise."""
    parts = np.repeat(runs_of(1, flips=0.1, spread=0.2), 3, axis=0)
    assert of(parts).judge_share == 0.0
    assert noise_floor([parts], scale=100.0, n_runs=1) == 0.0


def test_with_one_run_the_judges_part_is_unknown() -> None:
    """One judge run says nothing of the judge."""
    assert of(runs_of(1, flips=0.1, spread=0.2)).judge_share is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    """Adjusted p-values are those of ``multipletests``, which collects garbage at every call."""
    with mock.patch("gc.collect"):
        expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected)


@pytest.mark.parametrize("margin", [0.0, -0.5])
def test_so_many_videos_settle_it(margin: float) -> None:
    """At the number that is named, the power to tell the difference from the margin is 80 %."""
    found = Difference(
        difference=0.4, low=-1.0, high=1.8, standard_error=0.7, p_value=0.6, n_videos=200, method=""
    )
    n = videos_to_settle(found, margin=margin)
    assert n is not None
    error = 0.7 * np.sqrt(200 / n)
    # Two-sided test at 5% by Student's t with n - 1 degrees of freedom.
    far = (0.4 - margin) / error
    power = 1 - stats.nct.cdf(stats.t.ppf(0.975, n - 1), n - 1, far)
    assert power == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(("difference", "error"), [(0.0, 1.0), (1.0, 0.0), (1.0, None)])
def test_what_no_number_settles_says_so(difference: float, error: float | None) -> None:
    """A difference of 0, or one without an error, names no number."""
    found = Difference(
        difference=difference, low=None, high=None, standard_error=error, p_value=None,
        n_videos=9, method="none",
    )  # fmt: skip
    assert videos_to_settle(found) is None
