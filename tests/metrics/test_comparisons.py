"""The judge's part, several comparisons at once, and how many videos settle a question."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lmms_eval_captions.metrics.intervals import judge_runs
from lmms_eval_captions.metrics.paired import Difference, holm, videos_to_settle
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
