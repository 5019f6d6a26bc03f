"""How annotators agree among themselves, and metrics with them."""

from __future__ import annotations

import json
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from lmms_eval_captions.metrics.correlation import annotator_tau, clustered_tau

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
    """Of three annotators three correlations of scipy's; the order of the items does not matter."""
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


def test_scores_that_are_all_equal_correlate_with_nothing() -> None:
    """Neither a value nor an interval."""
    found = clustered_tau(
        [1, 1], [[1], [2]], "ab", variant="c", by_annotator=False, rng=np.random.default_rng(0),
        n_resamples=3,
    )  # fmt: skip
    assert all(map(isnan, found))
