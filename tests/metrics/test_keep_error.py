"""How many of the kept clips do not belong there, beside what is known of simulated ones."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import beta, betabinom, multivariate_normal, norm

from lmms_eval_captions.metrics.interval import Interval
from lmms_eval_captions.metrics.keep_error import KeepError, keep_error, model_error

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
    """What follows without a model; the ends are ``nan`` where the share is."""
    found = keep_error(np.array(scores), _reliability(reliability), keep=keep)
    assert found.share == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert isnan(found.low) == isnan(found.high) == isnan(expected)


def test_as_many_belong_among_the_dropped_as_are_wrongly_kept() -> None:
    """Of 80 kept 5 are wrong: 4; these are 4 of 20. Where none is dropped there is no share."""
    found = KeepError(share=0.05, low=0.0, high=0.1, n_kept=80, n_clips=100)
    assert found.dropped_share == pytest.approx(0.2)
    assert isnan(KeepError(share=0.0, low=0.0, high=0.0, n_kept=9, n_clips=9).dropped_share)


@pytest.mark.parametrize(
    ("scores", "keep", "message"),
    [
        pytest.param([0.5, 1.2], 0.5, r"scores in \[0, 1\], got 0.5 to 1.2", id="above 1"),
        pytest.param([-0.5, 1.0], 0.5, r"scores in \[0, 1\]", id="below 0"),
        pytest.param([0.5, 1.0], 0.0, "0 < keep <= 1", id="none is kept"),
        pytest.param([0.5, 1.0], 80, "0 < keep <= 1", id="percent"),
        pytest.param([0.5, 1.0], nan, "0 < keep <= 1", id="no number"),
    ],
)
def test_what_makes_no_sense_is_refused(scores: list[float], keep: float, message: str) -> None:
    """Scores out of range, and shares that are none."""
    with pytest.raises(ValueError, match=message):
        keep_error(np.array(scores), _reliability(0.5), keep=keep)


def _expected(a: float, b: float, n_questions: int, keep: float) -> float:
    """Of endlessly many clips whose true scores have a beta distribution, enumerated.

    Given k right of n the true score has the distribution beta(a + k, b + n - k).
    """
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
    assert found.share == pytest.approx(_expected(a, b, n_questions, keep), abs=0.004)


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
    assert found.share == pytest.approx(1 - both / keep, abs=0.004)


def _two_groups(rng: np.random.Generator, n_clips: int) -> Floats:
    """True scores of which a fifth is bad, the others are good: no beta distribution."""
    is_bad = rng.random(n_clips) < 0.2
    true: Floats = np.where(is_bad, rng.beta(3, 9, n_clips), rng.beta(18, 2, n_clips))
    return true


@pytest.mark.parametrize("n_questions", [10, 20])
@pytest.mark.parametrize("keep", [0.5, 0.8, 0.9])
def test_of_two_groups_it_is_near_the_known_truth(n_questions: int, keep: float) -> None:
    """Where a beta distribution alone would be off by up to 6 points."""
    rng = np.random.default_rng(n_questions)
    true = _two_groups(rng, 100_000)
    scores = rng.binomial(n_questions, true) / n_questions
    found = keep_error(scores, _reliability(true.var() / scores.var()), keep=keep)
    n_kept = round(keep * len(scores))
    kept = np.lexsort((rng.random(len(scores)), -scores))[:n_kept]
    actual = (true[kept] < np.sort(true)[-n_kept]).mean()
    assert found.share == pytest.approx(actual, abs=0.02)


def test_its_interval_has_all_that_is_not_known() -> None:
    """A reliability that is less known, fewer clips, or less kept: a wider interval."""
    scores = _beta_binomial(4.0, 1.0, 5, 100_000)
    known = keep_error(scores, _reliability(0.5), keep=0.8)
    assert known.high - known.share == pytest.approx(model_error(0.8), abs=0.001)
    vague = keep_error(scores, _reliability(0.5, 0.2, 0.7), keep=0.8)
    ends = [keep_error(scores, _reliability(each), keep=0.8).share for each in (0.7, 0.2)]
    assert vague.low < ends[0] < vague.share == known.share < ends[1] < vague.high
    few = keep_error(scores[::1000], _reliability(0.5), keep=0.8)
    assert few.high - few.low > 2 * (known.high - known.low)
    assert model_error(0.95) == model_error(0.8) < model_error(0.79) < model_error(0.2)


_scores = st.lists(
    st.one_of(st.integers(0, 5).map(lambda k: k / 5), st.floats(0, 1), st.just(nan)), max_size=60
)


@given(_scores, st.floats(0, 1), st.floats(0.01, 1))
def test_it_is_a_share_between_none_and_that_of_a_draw(
    values: list[float], reliability: float, keep: float
) -> None:
    """Scores that say something are never worse than a draw among all clips."""
    found = keep_error(np.array(values, dtype=float), _reliability(reliability), keep=keep)
    assert found.n_clips == sum(not isnan(value) for value in values)
    assert found.n_kept == round(keep * found.n_clips)
    if not isnan(found.share):
        assert 0 <= found.low <= found.share <= found.high <= 1
        assert found.share <= 1 - found.n_kept / found.n_clips + 1e-9


@given(_scores, st.floats(0, 1))
def test_the_order_of_the_clips_does_not_matter(values: list[float], reliability: float) -> None:
    """Nor do clips without a score."""
    shuffled = sorted(value for value in values if not isnan(value))
    first, second = (
        keep_error(np.array(each, dtype=float), _reliability(reliability), keep=0.8)
        for each in (values, shuffled)
    )
    assert first.share == pytest.approx(second.share, nan_ok=True, abs=1e-9)


@pytest.mark.parametrize("n_questions", [3, 7])
def test_more_reliable_scores_have_fewer_wrong(n_questions: int) -> None:
    """With the same scores, from none to all of their spread."""
    scores = _beta_binomial(4.0, 1.0, n_questions, 10_000)
    shares = [
        keep_error(scores, _reliability(each), keep=0.8).share for each in np.linspace(0, 1, 21)
    ]
    assert shares == sorted(shares, reverse=True)
