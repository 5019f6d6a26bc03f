"""Share of wrongly kept clips, compared with simulated truth."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, betabinom, multivariate_normal, norm

from lmms_eval_captions.metrics.intervals import Interval
from lmms_eval_captions.scorer.keeping import keep_error

Floats = NDArray[np.float64]


def _reliability(value: float, low: float | None = None, high: float | None = None) -> Interval:
    return Interval(
        value=value, low=low, high=high, standard_error=None, n_videos=100, method="given"
    )


@pytest.mark.parametrize(
    ("scores", "reliability", "keep", "expected"),
    [
        pytest.param([0.2, 0.4, 0.6, 0.8], 1.0, 0.5, 0.0, id="without noise none is wrong"),
        pytest.param([0.2, 0.4, 0.6, 0.8], 0.0, 0.75, 0.25, id="all noise: those of a draw"),
        pytest.param([0.2, 0.4, 0.6, nan], 0.0, 0.67, 1 / 3, id="a clip without a score"),
        pytest.param([0.2, 0.4, 0.6, 0.8], 0.5, 1.0, 0.0, id="all are kept"),
        pytest.param([0.2, 0.4, 0.6, 0.8], 0.5, 0.1, nan, id="none is kept"),
        pytest.param([0.6, 0.6, 0.6, 0.6], 0.5, 0.5, nan, id="all scores are the same"),
        pytest.param([0.2, 0.4, 0.6, 0.8], nan, 0.5, nan, id="reliability is not known"),
        pytest.param([nan, nan], 0.5, 0.5, nan, id="no scores"),
        pytest.param([], 0.5, 0.5, nan, id="no clips"),
    ],
)
def test_worked_examples(
    scores: list[float], reliability: float, keep: float, expected: float
) -> None:
    found = keep_error(np.array(scores), _reliability(reliability), keep=keep)
    assert (nan if found is None else found[0]) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def _expected(a: float, b: float, n_questions: int, keep: float) -> float:
    k = np.arange(n_questions + 1)
    shares = betabinom.pmf(k, n_questions, a, b)
    above = np.cumsum(shares[::-1])[::-1] - shares
    kept = np.clip(keep - above, 0, shares)
    below = beta.cdf(beta.ppf(1 - keep, a, b), a + k, b + n_questions - k)
    return float((kept * below).sum() / keep)


def _beta_binomial(a: float, b: float, n_questions: int, n_clips: int) -> Floats:
    """Scores of so many clips, in the shares that are expected."""
    k = np.arange(n_questions + 1)
    counts = np.round(n_clips * betabinom.pmf(k, n_questions, a, b)).astype(np.intp)
    scores: Floats = np.repeat(k / n_questions, counts)
    return scores


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("n_questions", [2, 5, 10, 20])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(0.5, 0.5, id="U"),
        pytest.param(1.0, 1.0, id="flat"),
        pytest.param(6.0, 6.0, id="bell"),
        pytest.param(4.0, 1.0, id="mean of 0.8"),
        pytest.param(20.0, 5.0, id="narrow"),
    ],
)
def test_of_a_beta_binomial_it_is_the_enumerated_one(
    a: float, b: float, n_questions: int, keep: float
) -> None:
    """The effective number of questions, and the truth's shape, come of the scores alone."""
    scores = _beta_binomial(a, b, n_questions, 1_000_000)
    reliability = n_questions / (n_questions + a + b)
    found = keep_error(scores, _reliability(reliability), keep=keep)
    assert found is not None
    assert found[0] == pytest.approx(_expected(a, b, n_questions, keep), abs=0.004)


@pytest.mark.parametrize("keep", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("reliability", [0.3, 0.6, 0.9])
def test_far_from_both_ends_it_is_that_of_a_bivariate_normal(
    reliability: float, keep: float
) -> None:
    """Scores that are spread little around one half: the share follows from the correlation."""
    places = (np.arange(20_000) + 0.5) / 20_000
    found = keep_error(0.5 + 0.01 * norm.ppf(places), _reliability(reliability), keep=keep)
    r, cut = reliability**0.5, norm.ppf(keep)
    both = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([cut, cut])
    assert found is not None
    assert found[0] == pytest.approx(1 - both / keep, abs=0.004)
