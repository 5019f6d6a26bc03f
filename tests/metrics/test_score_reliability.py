"""The reliability of clips' scores, from two halves of their questions."""

from __future__ import annotations

from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lmms_eval_captions.metrics.score_reliability import score_reliability

Floats = NDArray[np.float64]


def _correlated(r: float, n: int) -> tuple[Floats, Floats]:
    """Two halves whose correlation is ``r`` to the last digits."""
    first = np.tile([1.0, 1.0, -1.0, -1.0], n // 4)
    other = np.tile([1.0, -1.0, 1.0, -1.0], n // 4)
    return first, r * first + sqrt(1 - r * r) * other


@pytest.mark.parametrize(
    ("r", "first_share", "expected"),
    [
        pytest.param(0.5, 0.5, 2 / 3, id="Spearman and Brown: 2 r / (1 + r)"),
        pytest.param(0.6, 0.5, 0.75, id="the same of 0.6"),
        pytest.param(0.0, 0.5, 0.0, id="halves that have nothing in common"),
        pytest.param(-0.4, 0.5, 0.0, id="halves that contradict each other"),
        # Variance 1 of the clips, 2 of the noise of one run: 1 / sqrt(3 * 2), then 1 / (1 + 2 / 3).
        pytest.param(1 / sqrt(6), 1 / 3, 0.6, id="one run of three"),
        pytest.param(1 / sqrt(6), 2 / 3, 0.6, id="two runs of three"),
        # Variance 1, 10 of one question's: 1 / sqrt((1 + 10) * (1 + 10 / 9)), then 1 / (1 + 1).
        pytest.param(1 / sqrt(11 * 19 / 9), 0.1, 0.5, id="one question of ten"),
    ],
)
def test_worked_examples(r: float, first_share: float, expected: float) -> None:
    """From the correlation of the halves to the reliability of the whole, by hand."""
    found = score_reliability(*_correlated(r, 40), first_share=first_share)
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param([0.0, 1.0] * 4, [0.0, 1.0] * 4, id="eight clips"),
        pytest.param([0.5] * 20, [0.0, 1.0] * 10, id="a half that is the same for all clips"),
        pytest.param([nan] * 5 + [0.0, 1.0] * 4, [0.0, 1.0, 1.0] * 4 + [1.0], id="few with both"),
        pytest.param([], [], id="no clips"),
    ],
)
def test_where_it_cannot_be_told_it_is_nan(first: list[float], second: list[float]) -> None:
    """Too few clips, or no variance: no value and no ends."""
    found = score_reliability(np.array(first), np.array(second))
    assert isnan(found.value)
    assert found.low is None
    assert found.high is None
    assert found.note.startswith("no value")


def test_halves_that_are_the_same_clip_by_clip_are_wholly_reliable() -> None:
    """Nothing tells how far that is from the truth, so that there are no ends."""
    half = np.array([0.0, 0.5, 1.0, 0.5] * 5)
    found = score_reliability(half, half)
    assert found.value == 1
    assert found.low is None
    assert found.high is None


def test_clips_that_lack_a_half_do_not_count() -> None:
    """A clip of one question has a score and no second half."""
    first, second = _correlated(0.5, 40)
    more = np.append(first, [0.3, nan]), np.append(second, [nan, 0.9])
    assert score_reliability(*more) == score_reliability(first, second)


def test_what_are_no_two_halves_is_refused() -> None:
    """Other clips in the second half, a table, and a share that leaves nothing."""
    half = np.zeros(12)
    with pytest.raises(ValueError, match="two halves of shape"):
        score_reliability(half, np.zeros(11))
    with pytest.raises(ValueError, match="two halves of shape"):
        score_reliability(np.zeros((12, 2)), np.zeros((12, 2)))
    with pytest.raises(ValueError, match="0 < first_share < 1"):
        score_reliability(half, half, first_share=1.0)


_halves = st.integers(10, 40).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 5), min_size=n, max_size=n) for _ in range(2)))
)


@given(_halves, st.sampled_from([0.2, 1 / 3, 0.5]))
def test_the_order_of_halves_and_their_unit_are_one(
    halves: tuple[list[int], list[int]], share: float
) -> None:
    """Halves swap with their shares; twice the scores plus one correlate as much."""
    first, second = (np.array(half, dtype=float) for half in halves)
    found = score_reliability(first, second, first_share=share)
    swapped = score_reliability(second, 2 * first + 1, first_share=1 - share)
    assert found.value == pytest.approx(swapped.value, nan_ok=True, abs=1e-9)
    assert isnan(found.value) or 0 <= found.value <= 1
    if found.low is not None and found.high is not None:
        assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(("n_first", "n_questions"), [(5, 10), (2, 6), (1, 3)])
def test_it_is_the_share_of_variance_that_is_the_clips(n_first: int, n_questions: int) -> None:
    """Of a beta-binomial: n / (n + a + b), whatever the sizes of the parts."""
    rng, a, b = np.random.default_rng(n_first), 4.0, 1.0
    right = rng.random((200_000, n_questions)) < rng.beta(a, b, (200_000, 1))
    found = score_reliability(
        right[:, :n_first].mean(axis=1),
        right[:, n_first:].mean(axis=1),
        first_share=n_first / n_questions,
    )
    assert found.value == pytest.approx(n_questions / (n_questions + a + b), abs=0.01)


def test_its_interval_covers_about_as_often_as_it_says() -> None:
    """In 300 sets of 60 clips, of five questions each; Fisher's own would cover 91 %."""
    rng, covered = np.random.default_rng(3), 0
    for _ in range(300):
        right = rng.random((60, 6)) < rng.beta(4.0, 1.0, (60, 1))
        found = score_reliability(right[:, :3].mean(axis=1), right[:, 3:].mean(axis=1))
        covered += (found.low or 0.0) <= 6 / 11 <= (found.high or 0.0)
    assert 0.91 <= covered / 300 <= 0.985
