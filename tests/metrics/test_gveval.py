"""G-VEval's expectation and means."""

from __future__ import annotations

from math import isnan, nan
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from lmms_eval_captions.metrics.correlation import Variant, kendall_interval, kendall_tau
from lmms_eval_captions.metrics.gveval import gveval_expectation, gveval_score, mean_rating


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        pytest.param([(85, 1.0)], 85.0, id="certain"),
        pytest.param([(80, 0.5), (90, 0.5)], 85.0, id="even"),
        pytest.param([(0, 0.9), (100, 0.1)], 10.0, id="both-ends"),
        pytest.param([(80, 0.3), (85, 0.6), (90, 0.1)], 84.0, id="three"),
        pytest.param([(80, 1.0), (90, 3.0)], 87.5, id="not-scaled"),
        pytest.param([(87.5, 1.0)], 87.5, id="fraction"),
    ],
)
def test_hand_worked_expectations(distribution: list[tuple[float, float]], expected: float) -> None:
    """The expected score is the mean of the numbers, weighted by their probabilities."""
    assert gveval_expectation(distribution) == pytest.approx(expected)


@pytest.mark.parametrize("broken", [[], [(80, 0.0)], [(80, 0.5), (90, -0.1)]])
def test_what_is_no_distribution_is_an_error(broken: list[tuple[float, float]]) -> None:
    """An empty or negative distribution has no expectation."""
    with pytest.raises(ValueError, match="probabilities"):
        gveval_expectation(broken)


@given(st.dictionaries(st.integers(0, 100), st.floats(1e-9, 1.0), min_size=1))
def test_an_expectation_is_within_its_numbers(shares: dict[int, float]) -> None:
    """Rounding never leads out of the range."""
    assert min(shares) <= gveval_expectation(list(shares.items())) <= max(shares)


@pytest.mark.parametrize(
    ("videos", "expected"),
    [
        pytest.param([[80.0], [60.0]], 70.0, id="one-dimension"),
        pytest.param([[80.0, 60.0, 100.0, 80.0], [60.0] * 4], 70.0, id="four-dimensions"),
        pytest.param([[80.0], [None]], 80.0, id="unscored-leaves-the-denominator"),
        pytest.param([[0.0], [100.0]], 50.0, id="0-counts"),
        pytest.param([[None]], nan, id="nothing-scored"),
        pytest.param([], nan, id="no-captions"),
    ],
)
def test_hand_worked_scores(videos: list[list[float | None]], expected: float) -> None:
    """The score is the mean over captions, unscored ones left out."""
    assert gveval_score(videos) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("scores", "ratings", "variant", "expected"),
    [
        pytest.param([1, 2, 3], [[1], [2], [3]], "b", 1.0, id="same-order"),
        pytest.param([3, 2, 1], [[1], [2], [3]], "b", -1.0, id="reversed"),
        # Pairs of 4: 4 concordant, 2 tied in the rating: 4 / sqrt(6 x 4).
        pytest.param([1, 2, 3, 4], [[1], [1], [2], [2]], "b", 4 / 24**0.5, id="ties-b"),
        # 2 (C - D) / (n^2 (m - 1) / m) = 8 / (16 / 2).
        pytest.param([1, 2, 3, 4], [[1], [1], [2], [2]], "c", 1.0, id="ties-c"),
        # Two annotators: (1,1) (1,2) (2,2) (2,1): C 1, D 1... 1-1, 2-2, and two ties per side.
        pytest.param([1, 2], [[1, 2], [2, 1]], "b", 0.0, id="annotators-who-disagree"),
        pytest.param([1, 1], [[1], [2]], "b", nan, id="all-scores-equal"),
        pytest.param([1, 2], [[3], [3]], "c", nan, id="all-ratings-equal"),
    ],
)
def test_hand_worked_correlations(
    scores: list[float], ratings: list[list[float]], variant: Variant, expected: float
) -> None:
    """Every score counts once for each annotator."""
    assert kendall_tau(scores, ratings, variant=variant) == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12))
def test_correlations_are_those_of_scipy(items: list[tuple[int, ...]]) -> None:
    scores, ratings = [item[0] for item in items], [item[1:] for item in items]
    if len(set(scores)) < 2 or len({one for row in ratings for one in row}) < 2:
        return
    flat = [one for row in ratings for one in row]
    for variant in ("b", "c"):
        expected = kendalltau(np.repeat(scores, 2), flat, variant=variant).statistic
        assert kendall_tau(scores, ratings, variant=variant) == pytest.approx(expected)


def test_intervals_are_the_same_for_the_same_seed_and_hold_the_correlation() -> None:
    """An interval is reproducible, and lies around what it is about."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=60)
    ratings = [[float(round(score)), float(round(score + rng.normal()))] for score in scores]
    one, two = (
        kendall_interval(
            list(scores), ratings, variant="b", rng=np.random.default_rng(0), n_resamples=200
        )
        for _ in range(2)
    )
    assert one == two
    assert one[0] < kendall_tau(list(scores), ratings, variant="b") < one[1]


def test_items_of_a_cluster_are_drawn_together() -> None:
    """All items in one cluster are drawn as they are, so that every draw has the same tau."""
    scores, ratings = [1, 2, 3, 4], [[1], [3], [2], [4]]
    rng = np.random.default_rng(0)
    ends = kendall_interval(scores, ratings, variant="b", rng=rng, n_resamples=5, clusters="aaaa")
    assert ends == pytest.approx([kendall_tau(scores, ratings, variant="b")] * 2)


def test_there_is_no_interval_where_all_are_equal() -> None:
    """Without a correlation there is no interval of one."""
    rng = np.random.default_rng(0)
    low, high = kendall_interval([1, 1], [[1], [2]], variant="c", rng=rng, n_resamples=5)
    assert isnan(low)
    assert isnan(high)


@pytest.mark.parametrize(
    ("videos", "expected"),
    [
        pytest.param([[5.0], [2.0]], 3.5, id="two"),
        pytest.param([[5.0], [None]], 5.0, id="unscored-leaves-the-denominator"),
        pytest.param([[1.0], [1.0]], 1.0, id="the-lowest-counts"),
        pytest.param([[None]], nan, id="nothing-scored"),
        pytest.param([], nan, id="no-captions"),
    ],
)
def test_hand_worked_ratings(videos: list[list[float | None]], expected: float) -> None:
    """The number is the mean over captions, unscored ones left out."""
    assert mean_rating(videos) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("rating", [0.0, 5.5, -1.0])
def test_a_rating_off_the_scale_is_an_error(rating: float) -> None:
    """A reader that lets one through is found out."""
    with pytest.raises(ValueError, match="between 1 and 5"):
        mean_rating([[rating]])


@given(st.lists(st.integers(1, 5), min_size=1))
def test_it_is_the_mean_and_stays_on_the_scale(ratings: list[int]) -> None:
    assert mean_rating([[float(rating)] for rating in ratings]) == pytest.approx(fmean(ratings))
