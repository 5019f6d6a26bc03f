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

from lmms_eval_captions.metrics.interval import interval, intervals
from lmms_eval_captions.metrics.interval_ends import in_own_order, interval_ends
from lmms_eval_captions.metrics.paired_interval import paired_interval
from lmms_eval_captions.metrics.ratio_parts import merged_terms, values_of_runs
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


def test_judge_runs_without_an_unscored_question_are_as_their_mean() -> None:
    """Three runs over the same questions are one ratio, whose numerators are averaged."""
    _, sizes = drawn(40)
    rng = np.random.default_rng(2)
    runs = np.concatenate([ratio(rng.binomial(sizes, 0.4), sizes) for _ in range(3)])
    merged, scale = merged_terms(runs, scale=100.0)
    assert merged.shape == (40, 1, 1, 2)
    assert scale == pytest.approx(100 / 3)
    found, mean = of(runs), of(runs.mean(axis=0, keepdims=True))
    assert (found.value, *ends(found)) == pytest.approx((mean.value, *ends(mean)))


def test_terms_that_differ_in_their_denominators_stay_apart() -> None:
    """Runs that scored other questions are merged no further, and give the same value."""
    runs = np.concatenate([ratio([1, 2, 0], [2, 2, 2]), ratio([1, 2, 0], [2, 2, 1])])
    merged, scale = merged_terms(runs, scale=100.0)
    ratios = merged.sum(axis=0)
    value = scale * (ratios[..., 0] / ratios[..., 1]).prod(axis=-1).sum()
    assert merged.shape == (3, 2, 1, 2)
    assert value == pytest.approx(values_of_runs(runs, scale=100.0).mean())


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


def test_a_product_rests_on_the_factor_with_fewest_videos() -> None:
    """Tokens of a hundred captions make an accuracy of three videos no surer."""
    parts = np.zeros((1, 100, 1, 2, 2))
    parts[0, :3, 0, 0] = [(1, 4), (3, 4), (2, 4)]
    parts[0, :, 0, 1] = np.stack([np.ones(100), np.arange(50, 150)], axis=-1)
    found = interval(parts, scale=10_000.0, bounds=(0.0, 10_000.0))
    assert found.n_videos == 3
    assert found.note == "only 3 videos: a rough guess"


def test_many_cells_at_once_are_each_alone() -> None:
    """Cells of all sizes come back in their order, as if each were asked for alone."""
    cells = [ratio(*drawn(n, seed=n)) for n in (30, 4, 12, 30, 2)]
    assert intervals(cells, scale=100.0, bounds=(0.0, 100.0)) == [of(cell) for cell in cells]


def test_samples_at_once_are_each_alone() -> None:
    """What the campaign measures, many samples at once, is what an interval is made of."""
    samples = np.concatenate([ratio(*drawn(20, seed=seed)) for seed in range(5)])
    samples = np.stack([in_own_order(sample) for sample in samples])
    found = interval_ends(samples, scale=1.0, n_videos=20, level=0.95)
    for place, sample in enumerate(samples):
        alone = of(sample[None])
        assert (100 * found.lows[place], 100 * found.highs[place]) == pytest.approx(ends(alone))


@pytest.mark.parametrize("bounds", [(-1.0, 5.0), (5.0, 1.0), (0.0, float("inf")), (0.0, 0.0)])
def test_bounds_are_a_lowest_and_a_highest_value(bounds: tuple[float, float]) -> None:
    """Other bounds are refused in words."""
    with pytest.raises(ValueError, match="expected finite bounds of at least 0"):
        interval(ratio([1, 2], [2, 3]), scale=1.0, bounds=bounds)


@pytest.mark.parametrize("n_videos", [5, 40])
def test_ratings_from_1_are_as_sure_as_the_same_ratings_from_0(n_videos: int) -> None:
    """Where a scale begins moves the interval along with the value, and nothing else of it."""
    ratings = np.random.default_rng(0).integers(1, 6, n_videos)
    from_1 = interval(ratio(ratings, np.ones(n_videos)), scale=1.0, bounds=(1.0, 5.0))
    from_0 = interval(ratio(ratings - 1, np.ones(n_videos)), scale=1.0, bounds=(0.0, 4.0))
    assert from_1.value == pytest.approx(ratings.mean())
    assert ends(from_1) == pytest.approx([1 + end for end in ends(from_0)])
    assert from_1.standard_error == pytest.approx(stats.sem(ratings))
    assert (from_1.n_videos, from_1.method, from_1.note) == (
        from_0.n_videos, from_0.method, from_0.note
    )  # fmt: skip


def test_an_interval_near_the_lowest_rating_stays_above_it() -> None:
    """Captions that nearly all have a 1 are not said to be worth less."""
    found = interval(ratio([1] * 28 + [2, 3], [1] * 30), scale=1.0, bounds=(1.0, 5.0))
    low, high = ends(found)
    assert 1.0 < low < found.value < high < 2.0


def test_no_product_of_ratios_begins_above_0() -> None:
    """Taking the lowest value off has no meaning there."""
    parts = np.concatenate([ratio([1, 2], [2, 3])] * 2, axis=3)
    with pytest.raises(ValueError, match="expected a lowest value of 0 of a product"):
        interval(parts, scale=1.0, bounds=(1.0, 5.0))


@pytest.mark.parametrize("n_right", [1, 2])
@pytest.mark.parametrize("flip", [False, True], ids=["near 0", "near 100"])
def test_one_video_that_differs_gives_no_bound_for_an_end(n_right: int, *, flip: bool) -> None:
    """29 of 30 videos at 0 % do not make 100 % likely; the note says that it is a guess."""
    tops = [4] * n_right + [0] * (30 - n_right)
    found = of(ratio([8 - top if flip else top for top in tops], [8] * 30))
    low, high = ends(found)
    assert found.note == "few of the 30 videos differ: a rough guess"
    assert high - low < 30.0
    # Clopper and Pearson's ends for as many videos of 30 that are all right.
    most = 100 * stats.beta.ppf(0.975, n_right + 1, 30 - n_right)
    reach = 100 - low if flip else high
    assert reach == pytest.approx(most, rel=0.25)


def test_a_guess_knows_no_unit() -> None:
    """Grades of 0 to 100, and five tasks in three equal judge runs, give the guess of shares."""
    tops, sizes = np.array([0.0, *[1.0] * 29]), np.ones(30)
    shares = of(ratio(tops, sizes))
    grades = interval(ratio(100 * tops, sizes), scale=1.0, bounds=(0.0, 100.0))
    runs = of(np.tile(ratio(tops, sizes), (3, 1, 5, 1, 1)))
    assert shares.note == "few of the 30 videos differ: a rough guess"
    assert ends(grades) == pytest.approx(ends(shares))
    assert ends(runs) == pytest.approx(ends(shares))


def test_a_rough_guess_of_a_product_takes_its_first_ratio_as_a_share() -> None:
    """VidCapBench's con: one video of 30 that is right does not make 100 times as much likely."""
    right = ratio([1] + [0] * 29, [1] * 30)
    lengths = ratio([1] * 30, [100] * 30)
    found = interval(np.concatenate([right, lengths], axis=3), scale=100.0, bounds=(0.0, 10_000.0))
    _, high = ends(found)
    assert found.note == "few of the 30 videos differ: a rough guess"
    assert high < 0.3
