"""Agreement of raters against reference implementations, and stability over judge runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import isnan, nan
from typing import Literal, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from lmms_eval_captions.metrics.agreement import (
    Coefficient,
    Rating,
    Ratings,
    agreement_interval,
    consistent_times,
    ratings_of,
    unstable_that_pass,
)

FOUR_CODERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
"""Krippendorff (2011), section C; also Gwet's example of four raters in irrCAC."""
UNITS = [
    [None if mark == "." else int(mark) for mark in unit] for unit in zip(*FOUR_CODERS, strict=True)
]
labels = st.sampled_from(["a", "b", "c", None])
numbers = st.one_of(st.none(), st.integers(0, 5))


def units_of(rating: st.SearchStrategy[object]) -> st.SearchStrategy[list[tuple[object, ...]]]:
    """Three raters' ratings of up to 30 units."""
    return st.lists(st.tuples(rating, rating, rating), min_size=1, max_size=30)


def agreement(
    units: Sequence[Sequence[Rating | None]],
    coefficient: Coefficient,
    *,
    categories: Sequence[Rating] = (),
) -> float:
    """A coefficient of units, each a video of its own."""
    ratings = ratings_of(units, categories) if units else Ratings(np.empty((0, 2), np.intp), ())
    return agreement_interval(ratings, np.arange(len(units)), coefficient=coefficient).value


def pairs_of(table: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Two raters' labels of units, as many of each pair as a table has."""
    return [
        (i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("table", "kappa", "ac1"),
    [
        pytest.param([[75, 1, 4], [5, 4, 1], [0, 0, 10]], 0.6765, 0.8676, id="Fleiss 18.1"),
        pytest.param([[118, 5], [2, 0]], -0.0234, 0.9408, id="Gwet 2002, the paradox"),
        pytest.param([[20, 5], [10, 15]], 0.4, 0.4059, id="a half each"),
        pytest.param([[0, 5], [5, 0]], -1.0, -1.0, id="never"),
        pytest.param([[5, 0], [0, 5]], 1.0, 1.0, id="always"),
        pytest.param([[9]], nan, 1.0, id="one category"),
        pytest.param([[0]], nan, nan, id="nothing"),
    ],
)
def test_published_tables(table: list[list[int]], kappa: float, ac1: float) -> None:
    """Two raters' tables from the literature give the printed kappa and AC1."""
    pairs = pairs_of(table)
    assert agreement(pairs, "kappa") == pytest.approx(kappa, abs=6e-5, nan_ok=True)
    assert agreement(pairs, "ac1") == pytest.approx(ac1, abs=6e-5, nan_ok=True)


def test_four_coders_with_missing_ratings() -> None:
    """Krippendorff's example gives his alphas, and the AC1 that irrCAC prints for it."""
    assert agreement(UNITS, "nominal") == pytest.approx(0.743, abs=6e-4)
    assert agreement(UNITS, "interval") == pytest.approx(0.849, abs=6e-4)
    assert agreement(UNITS, "ac1") == pytest.approx(0.77544, abs=6e-6)


@given(units_of(labels))
def test_kappa_is_that_of_scikit_learn(units: list[tuple[Rating | None, ...]]) -> None:
    """On units that both raters labelled, whatever the labels."""
    both = [unit for unit in units if unit[0] is not None and unit[1] is not None]
    kappa = agreement([unit[:2] for unit in units], "kappa")
    if len({label for unit in both for label in unit[:2]}) < 2:
        assert isnan(kappa)
    else:
        first, second = [unit[0] for unit in both], [unit[1] for unit in both]
        assert kappa == pytest.approx(cohen_kappa_score(first, second))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the package needs Python 3.11")
@pytest.mark.parametrize("level", ["nominal", "interval"])
@given(units=units_of(numbers))
def test_alpha_is_that_of_the_package_krippendorff(
    level: Literal["nominal", "interval"], units: list[tuple[int | None, ...]]
) -> None:
    import krippendorff

    alpha = agreement(units, level)
    rated = [unit for unit in units if sum(each is not None for each in unit) > 1]
    if len({each for unit in rated for each in unit if each is not None}) < 2:
        assert isnan(alpha)
    else:
        table = [[nan if each is None else float(each) for each in unit] for unit in units]
        expected = krippendorff.alpha(np.array(table).T, level_of_measurement=level)
        assert alpha == pytest.approx(expected, abs=1e-9)


@given(units_of(labels))
def test_ac1_worked_the_long_way(units: list[tuple[Rating | None, ...]]) -> None:
    """Gwet's definition, unit by unit and category by category."""
    given_labels = [[each for each in unit if each is not None] for unit in units]
    categories = ["a", "b", "c", "d"]
    agreeing = [
        sum(unit[i] == unit[j] for i in range(len(unit)) for j in range(len(unit)) if i != j)
        / (len(unit) * (len(unit) - 1))
        for unit in given_labels
        if len(unit) > 1
    ]
    rated = [unit for unit in given_labels if unit]
    ac1 = agreement(units, "ac1", categories=categories)
    if not agreeing:
        assert isnan(ac1)
        return
    shares = [sum(unit.count(each) / len(unit) for unit in rated) / len(rated) for each in "abcd"]
    chance = sum(share * (1 - share) for share in shares) / 3
    assert ac1 == pytest.approx((sum(agreeing) / len(agreeing) - chance) / (1 - chance))


@pytest.mark.parametrize("coefficient", get_args(Coefficient))
def test_the_error_is_that_of_leaving_out_videos(coefficient: Coefficient) -> None:
    """Each video is left out in turn, all its questions at once."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, 60)
    second = np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), first)
    videos = np.repeat(np.arange(15), 4)
    rows = [[int(a), int(b)] for a, b in zip(first, second, strict=True)]
    left_out = [
        agreement(
            [row for row, video in zip(rows, videos, strict=True) if video != each],
            coefficient,
            categories=(0, 1, 2),
        )
        for each in range(15)
    ]
    found = agreement_interval(ratings_of(rows), videos, coefficient=coefficient)
    assert found.value == pytest.approx(agreement(rows, coefficient))
    assert found.standard_error == pytest.approx(np.std(left_out) * np.sqrt(14))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high < 1
    assert found.n_videos == 15


@pytest.mark.parametrize("coefficient", ["kappa", "ac1", "nominal"])
def test_intervals_cover(coefficient: Coefficient) -> None:
    rng = np.random.default_rng(2)
    flips = 0.15
    covered = []
    for _ in range(400):
        shares = rng.beta(1, 1, (40, 1))
        flip = rng.beta(flips * 4, (1 - flips) * 4, (40, 1))
        first = rng.random((40, 5)) < shares
        second = first ^ (rng.random((40, 5)) < flip)
        ratings = ratings_of(np.stack([first.ravel(), second.ravel()], axis=1).tolist())
        found = agreement_interval(ratings, np.repeat(np.arange(40), 5), coefficient=coefficient)
        covered.append(found.low <= 1 - 2 * flips <= found.high)  # type: ignore[operator] # has one
    assert 0.93 <= np.mean(covered) <= 0.98


TABLE_8 = {5: 39_897, 4: 27_046, 3: 17_479, 2: 8_735, 1: 3_038, 0: 630}


def test_the_papers_table() -> None:
    columns = [[1] * times + [0] * (5 - times) for times, n in TABLE_8.items() for _ in range(n)]
    same = np.random.default_rng(0).permuted(np.array(columns, np.int8), axis=1).T
    same = same[:, np.random.default_rng(1).permutation(same.shape[1])]
    assert consistent_times(same) == list(TABLE_8.values())


def test_what_is_unknown_for_one_captioner_is_in_no_count() -> None:
    """It is neither stable nor unstable for all of them."""
    assert consistent_times(np.array([[1, -1, 0], [1, 0, 0]], np.int8)) == [1, 0, 1]
    assert consistent_times(np.array([[-1]], np.int8)) == [0, 0]


@pytest.mark.parametrize(("n_runs", "n_captioners"), [(2, 1), (3, 1), (3, 5)])
def test_unstable_questions_pass_as_often_as_in_a_simulation(
    n_runs: int, n_captioners: int
) -> None:
    """Verdicts drawn one by one."""
    draws = np.random.default_rng(0).random((50_000, n_captioners, n_runs))
    n_flips = np.sum(draws < 0.2, axis=2)
    passes = np.mean(np.all((n_flips == 0) | (n_flips == n_runs), axis=1))
    expected = unstable_that_pass(0.2, n_runs=n_runs, n_captioners=n_captioners)
    assert passes == pytest.approx(expected, abs=0.01)
