"""Rankings of captioners, and correlations with annotators."""

from __future__ import annotations

import json
from math import isnan, log, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import kendalltau

from lmms_eval_captions.metrics.correlation import annotator_tau, correlations
from lmms_eval_captions.metrics.ranking import bradley_terry, elo, play

TRUE = np.array([1240.0, 1060.0, 940.0, 760.0])
"""Strengths that are planted, of mean 1,000."""
TABLE_6 = (
    (41.73, 1171), (30.86, 859), (31.12, 944), (31.92, 890), (32.61, 1073), (32.80, 1007),
    (33.98, 825), (34.50, 969), (34.78, 943), (35.46, 1022), (35.70, 846), (35.85, 728),
    (36.17, 1102), (37.45, 1155), (37.72, 1081), (38.21, 1267),
)  # fmt: skip
"""VDCscore and Elo of AuroraCap's Table 6."""
IMAGE_MODELS = ((33.98, 825), (34.78, 943), (35.70, 846), (35.85, 728))
"""LLaVA-1.5 and 1.6."""


def planted(
    n: int, *, n_videos: int = 200, seed: int = 0
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Choices between captioners of these strengths."""
    rng = np.random.default_rng(seed)
    matches = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    odds = 10 ** ((TRUE[matches[:, 0]] - TRUE[matches[:, 1]]) / 400)
    scores = (rng.random(n) < odds / (1 + odds)).astype(np.float64)
    return matches, scores, rng.integers(n_videos, size=n)


def test_a_win_is_worth_what_was_not_expected() -> None:
    """By hand: 32 points times one less the expected score, which 400 points make 1 to 10."""
    start, matches = np.array([[1400.0, 1000.0]]), np.array([[0, 1], [0, 1], [0, 1]])
    for place, score in enumerate((1.0, 0.5, 0.0)):
        scores = np.array([1.0, 0.5, 0.0])
        ((first, second),) = play(matches, scores, start, orders=np.array([[place]]))
        assert first == pytest.approx(1400 + 32 * (score - 10 / 11))
        assert first + second == pytest.approx(2400)


def test_planted_strengths_come_out_as_elo() -> None:
    """In their order, and as far apart as the expected scores say; each interval holds its own."""
    found = elo(*planted(2000), n_captioners=4, rng=np.random.default_rng(1))
    assert np.diff(found.values) == pytest.approx(np.diff(TRUE), abs=45)
    assert found.low is not None
    assert found.high is not None
    assert ((found.low < found.values) & (found.values < found.high)).all()
    again = elo(*planted(2000), n_captioners=4, rng=np.random.default_rng(1))
    assert (again.values == found.values).all()


def test_bradley_terry_is_the_likeliest() -> None:
    """An optimiser that knows nothing of it finds the same strengths."""
    matches, scores, videos = planted(400)

    def unlikely(strengths: NDArray[np.float64]) -> float:
        ahead = strengths[matches[:, 0]] - strengths[matches[:, 1]]
        return float(
            np.logaddexp(0, -ahead)[scores == 1].sum() + np.logaddexp(0, ahead)[scores == 0].sum()
        )

    best = minimize(unlikely, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    found = bradley_terry(matches, scores, videos, n_captioners=4)
    assert found.values == pytest.approx(1000 + 400 / log(10) * (best - best.mean()), abs=0.01)


def test_rounding_does_not_shift_the_strengths() -> None:
    """They are known up to a constant, and their mean is 1,000."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        matches = np.array([rng.choice(3, 2, replace=False) for _ in range(120)])
        scores = rng.choice([0.0, 0.5, 1.0], 120)
        found = bradley_terry(matches, scores, np.arange(120) // 8, n_captioners=3)
        assert found.values is not None
        assert found.values.mean() == pytest.approx(1000)


def test_bradley_terry_intervals_cover() -> None:
    """About 95 % of them hold the planted strengths."""
    hits = np.zeros(4)
    for seed in range(200):
        found = bradley_terry(*planted(300, n_videos=100, seed=seed), n_captioners=4)
        hits += (found.low <= TRUE) & (found.high >= TRUE)
    assert 0.92 < hits.mean() / 200 < 0.98


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        pytest.param([1.0, 0.0], (1000, 1000), id="one each"),
        pytest.param([0.5, 0.5], (1000, 1000), id="ties"),
        pytest.param([1.0, 0.5], (1095.4, 904.6), id="a win and a tie are 3 to 1"),
        pytest.param([1.0, 1.0], None, id="never lost"),
    ],
)
def test_two_captioners(scores: list[float], values: tuple[float, float] | None) -> None:
    """Two strengths are the odds; where one never lost, there are none, and it is said."""
    found = bradley_terry(
        np.array([[0, 1], [0, 1]]), np.array(scores), np.array([0, 1]), n_captioners=2
    )
    if values is None:
        assert found.values is None
        assert "won or lost every choice" in found.note
    else:
        assert found.values == pytest.approx(values, abs=0.05)


def test_the_paper_s_table() -> None:
    """VDCscore goes with Elo at 0.83 over Table 6's video models, at 0.57 with its image models."""
    found = correlations(*zip(*TABLE_6, strict=True))
    assert found.n == 16
    assert (found.pearson, found.spearman, found.kendall) == pytest.approx(
        (0.568, 0.585, 0.417), abs=0.001
    )
    videos = [row for row in TABLE_6 if row not in IMAGE_MODELS]
    assert correlations(*zip(*videos, strict=True)).pearson == pytest.approx(0.831, abs=0.001)


rows = st.lists(st.tuples(*[st.integers(1, 5)] * 3), min_size=4, max_size=20)


def test_the_annotators_of_msvd_eval_agree_to_74_5(shared_data: Path) -> None:
    """On the average of the four dimensions; on single ones to 74.4, 62.0, 71.6 and 70.1."""
    videos = json.loads((shared_data / "msvd_eval" / "MSVD-Eval.json").read_text("utf-8")).values()
    taus = [
        annotator_tau([[rated[at] for rated in row["human_score"]] for row in videos], variant="b")
        for at in range(5)
    ]
    assert [round(100 * tau, 1) for tau in taus] == [74.4, 62.0, 71.6, 70.1, 74.5]


@given(rows)
def test_it_is_the_mean_over_pairs_of_annotators(ratings: list[tuple[int, ...]]) -> None:
    columns = list(zip(*ratings, strict=True))
    taus = [
        kendalltau(columns[a], columns[b]).statistic
        for a, b in ((0, 1), (0, 2), (1, 2))
        if len(set(columns[a])) > 1 and len(set(columns[b])) > 1
    ]
    expected = float(np.mean(taus)) if taus else nan
    assert annotator_tau(ratings, variant="b") == pytest.approx(expected, nan_ok=True)
    assert annotator_tau(ratings[::-1], variant="b") == pytest.approx(expected, nan_ok=True)


@given(rows)
def test_where_annotators_are_not_known_their_order_does_not_matter(
    ratings: list[tuple[int, ...]],
) -> None:
    """Sorted ratings, in which the first is always the lowest, agree as the unsorted ones do."""
    value = annotator_tau(ratings, variant="b", are_known=False)
    in_order = [tuple(sorted(row)) for row in ratings]
    assert annotator_tau(in_order, variant="b", are_known=False) == pytest.approx(
        value, nan_ok=True
    )


def test_ratings_that_are_not_there_are_no_part() -> None:
    """An item that one of a pair has not rated leaves that pair."""
    ratings: list[list[float]] = [[1, 1], [2, 3], [3, 2], [4, nan], [5]]
    assert annotator_tau(ratings, variant="b") == annotator_tau(ratings[:3], variant="b")
    assert isnan(annotator_tau([[1], [2]], variant="b"))
    assert isnan(annotator_tau([], variant="b"))
