"""Scores that labels of a sample correct."""

from __future__ import annotations

import importlib
import sys
from math import isnan
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from lmms_eval_captions.metrics.ppi import Corrected, Pairs, ppi_mean

Floats = NDArray[np.float64]


@pytest.fixture
def ppi_py(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The authors' package."""
    # Its numba looks for the package "coverage", and would take benchmarks/coverage.py for it.
    monkeypatch.setitem(sys.modules, "coverage", None)
    return importlib.import_module("ppi_py")


def pairs_of(
    judge: Floats,
    people: Floats,
    is_labelled: NDArray[np.bool_],
    *,
    videos: NDArray[np.intp] | None = None,
    strata: NDArray[np.intp] | None = None,
    weights: Floats | None = None,
) -> Pairs:
    """Pairs of a metric that is a mean, each its own video where nothing else is said."""
    n = len(judge)
    one = np.ones(n)
    return Pairs(
        judge=np.column_stack([judge, one]),
        people=np.column_stack([people, one]),
        is_labelled=is_labelled,
        videos=np.arange(n) if videos is None else videos,
        strata=np.zeros(n, dtype=np.intp) if strata is None else strata,
        weights=one if weights is None else weights,
    )


def drawn(n: int, n_labels: int, *, seed: int = 0) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Verdicts of a judge that errs on a fifth, people's, and which are labelled."""
    rng = np.random.default_rng(seed)
    people = (rng.random(n) < 0.4).astype(np.float64)
    judge = np.where(rng.random(n) < 0.2, 1.0, people)
    is_labelled = np.zeros(n, dtype=bool)
    is_labelled[rng.choice(n, n_labels, replace=False)] = True
    return judge, people, is_labelled


def corrected(pairs: Pairs, *, lam: float | None = None) -> Corrected:
    """A share in percent."""
    return ppi_mean(pairs, scale=100.0, bounds=(0.0, 100.0), lam=lam)


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.8])
def test_the_authors_package_agrees(lam: float, ppi_py: ModuleType) -> None:
    """Without clusters, the estimate is theirs and the interval theirs but for t and n - 1."""
    n, n_labels = 4000, 300
    judge, people, has = drawn(n, n_labels)
    arguments = (people[has], judge[has], judge[~has])
    theirs = lam * (n - n_labels) / n
    low, high = ppi_py.ppi_mean_ci(*arguments, alpha=0.05, lam=theirs)
    ours = corrected(pairs_of(judge, people, has), lam=lam)
    point = ppi_py.ppi_mean_pointestimate(*arguments, lam=theirs)
    assert ours.value == pytest.approx(100 * float(np.squeeze(point)), abs=1e-9)
    assert (ours.low, ours.high) == pytest.approx((100 * low[0], 100 * high[0]), abs=0.08)


def test_the_tuned_lambda_is_the_authors(ppi_py: ModuleType) -> None:
    """Both minimise the same variance; they differ by how much of the sample estimates it."""
    n, n_labels = 20_000, 2_000
    judge, people, has = drawn(n, n_labels)
    low, high = ppi_py.ppi_mean_ci(people[has], judge[has], judge[~has], alpha=0.05)
    ours = corrected(pairs_of(judge, people, has))
    assert 0.6 < ours.lam < 0.9
    assert (ours.low, ours.high) == pytest.approx((100 * low[0], 100 * high[0]), abs=0.1)


def test_with_all_labels_the_judge_does_not_count() -> None:
    judge, people, _ = drawn(500, 1)
    everything = np.ones(500, dtype=bool)
    alone = corrected(pairs_of(judge, people, everything), lam=0.0)
    for lam in (0.3, 1.0):
        found = corrected(pairs_of(judge, people, everything), lam=lam)
        assert found.value == pytest.approx(100 * people.mean())
        assert (found.low, found.high) == pytest.approx((alone.low, alone.high))


def test_a_ratio_is_corrected_on_both_sides() -> None:
    """A precision whose denominator the judge gets wrong is that of people."""
    judge = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]] * 50)
    people = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]] * 50)
    pairs = Pairs(
        judge=judge, people=people, is_labelled=np.ones(200, dtype=bool),
        videos=np.arange(200), strata=np.zeros(200, dtype=np.intp), weights=np.ones(200),
    )  # fmt: skip
    assert ppi_mean(pairs, scale=100.0, bounds=(0.0, 100.0)).value == pytest.approx(100 / 3)


def test_a_judge_that_says_the_same_of_all_is_not_trusted() -> None:
    """It tells nothing: labels alone are left, and nothing is divided by 0."""
    _, people, has = drawn(500, 100)
    found = corrected(pairs_of(np.ones(500), people, has))
    assert found.lam == 0
    assert found.value == pytest.approx(100 * people[has].mean())


@pytest.mark.parametrize(
    ("labelled", "strata", "note"),
    [
        pytest.param([], [0, 0, 0], "there is no label", id="none"),
        pytest.param([0], [0, 0, 1], "a stratum has no label", id="a stratum without"),
        pytest.param([0], [0, 0, 0], "fewer than 2 videos", id="one"),
        pytest.param([0, 1], [0, 0, 0], "only 2 videos", id="two"),
    ],
)
def test_too_few_labels_say_so(labelled: list[int], strata: list[int], note: str) -> None:
    """No interval is made up."""
    has = np.isin(np.arange(3), labelled)
    sides = np.array([1.0, 0.0, 1.0])
    found = corrected(pairs_of(sides, sides, has, strata=np.array(strata)))
    assert note in found.note
    assert (found.low is None) == (len(labelled) < 2)
    assert isnan(found.value) == ("given" in found.note)


def test_labels_that_all_say_the_same_give_no_interval() -> None:
    """An interval without width would claim that nothing else can be."""
    judge, _, has = drawn(500, 100)
    alone = corrected(pairs_of(judge, np.ones(500), has), lam=0.0)
    assert (alone.value, alone.low, alone.high) == (100, None, None)
    assert alone.note == "no interval: all labels say the same"
