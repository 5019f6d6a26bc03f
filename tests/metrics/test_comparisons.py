"""The judge's part, several comparisons at once, power, and how many videos settle a question."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from lmms_eval_captions.metrics.holm import holm
from lmms_eval_captions.metrics.judge_runs import judge_runs
from lmms_eval_captions.metrics.paired_interval import Difference
from lmms_eval_captions.metrics.power import power, smallest_difference
from lmms_eval_captions.metrics.videos_to_settle import videos_to_settle
from ratio_cells import Floats, of


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
    found = judge_runs(parts, scale=100.0)
    expected = 100 * np.sqrt(flips * (1 - flips) / 8 / n_runs / 3000)
    error = of(parts).standard_error
    assert error is not None
    assert found.standard_error == pytest.approx(expected, rel=0.06)
    assert found.share == pytest.approx((expected / error) ** 2, rel=0.12)
    assert of(parts).judge_share == found.share


def test_a_judge_that_never_moves_has_no_part() -> None:
    """Equal runs deviate by nothing and have none of the variance."""
    found = judge_runs(np.repeat(runs_of(1, flips=0.1, spread=0.2), 3, axis=0), scale=100.0)
    assert (found.deviation, found.standard_error, found.share) == (0.0, 0.0, 0.0)


def test_where_only_the_judge_moves_the_variance_is_its_own() -> None:
    """Videos that are all alike but for flips leave the judge nearly all of the variance."""
    rng = np.random.default_rng(0)
    right = rng.binomial(8, 0.5, (3, 3000))
    parts = np.stack([right, np.full_like(right, 8)], axis=-1)[:, :, None, None].astype(float)
    assert judge_runs(parts, scale=100.0).share == pytest.approx(1.0, abs=0.06)


def test_with_one_run_the_judges_part_is_unknown() -> None:
    """One judge run gives a mean, and says that it tells no more."""
    parts = runs_of(1, flips=0.1, spread=0.2)
    found = judge_runs(parts, scale=100.0)
    assert (found.deviation, found.standard_error, found.share) == (None, None, None)
    assert found.note == "unknown with 1 judge run"
    assert of(parts).judge_share is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    """Adjusted p-values are those of ``multipletests``, which collects garbage at every call."""
    with mock.patch("gc.collect"):
        expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected)


def test_holm_leaves_out_what_was_not_compared() -> None:
    """A comparison without a p-value makes no other harder; a wrong one is refused."""
    assert holm([None, 0.02, None]) == [None, 0.02, None]
    assert holm([]) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.5])


@pytest.mark.parametrize(("true", "n"), [(0.2, 30), (0.5, 30), (0.1, 1027), (0.05, 300)])
def test_power_is_that_of_statsmodels(true: float, n: int) -> None:
    """One-sided power of a t-test at half the level, as the interval is beyond 0 on one side."""
    expected = TTestPower().power(true, nobs=n, alpha=0.025, alternative="larger")
    assert power(true, standard_error=1 / np.sqrt(n), n_videos=n) == pytest.approx(expected)


def test_the_smallest_difference_has_its_power() -> None:
    """What is found with 80 % power at 300 videos is found with 80 % power."""
    least = smallest_difference(standard_error=0.7, n_videos=300)
    assert power(least, standard_error=0.7, n_videos=300) == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("margin", [0.0, -0.5])
def test_so_many_videos_settle_it(margin: float) -> None:
    """At the number that is named, the power to tell the difference from the margin is 80 %."""
    found = Difference(
        difference=0.4, low=-1.0, high=1.8, standard_error=0.7, p_value=0.6, n_videos=200, method=""
    )
    n = videos_to_settle(found, margin=margin)
    assert n is not None
    error = 0.7 * np.sqrt(200 / n)
    assert power(0.4 - margin, standard_error=error, n_videos=n) == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(("difference", "error"), [(0.0, 1.0), (1.0, 0.0), (1.0, None)])
def test_what_no_number_settles_says_so(difference: float, error: float | None) -> None:
    """A difference of 0, or one without an error, names no number."""
    found = Difference(
        difference=difference, low=None, high=None, standard_error=error, p_value=None,
        n_videos=9, method="none",
    )  # fmt: skip
    assert videos_to_settle(found) is None
