"""VidCapBench's four metrics, by hand and by their laws; its printed tables stand elsewhere."""

from __future__ import annotations

from math import isnan, nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.verdict import Correctness
from lmms_eval_captions.metrics.vidcapbench import (
    vidcapbench_acc,
    vidcapbench_con,
    vidcapbench_cov,
    vidcapbench_pre,
)

Verdicts = list[Correctness | None]

SCORED = st.sampled_from(["correct", "partial", "neutral", "wrong"])
VERDICTS = st.lists(SCORED | st.none())


def _verdicts(n_correct: int, n_partial: int, n_neutral: int, n_wrong: int) -> Verdicts:
    counts: dict[Correctness, int] = {
        "correct": n_correct,
        "partial": n_partial,
        "neutral": n_neutral,
        "wrong": n_wrong,
    }
    return [verdict for verdict, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize(
    ("verdicts", "acc", "pre", "cov"),
    [
        pytest.param(_verdicts(1, 1, 1, 1), 25.0, 200 / 3, 75.0, id="one-of-each"),
        pytest.param(_verdicts(3, 0, 0, 0), 100.0, 100.0, 100.0, id="all-correct"),
        pytest.param(_verdicts(0, 2, 0, 0), 0.0, 100.0, 100.0, id="all-partial"),
        pytest.param(_verdicts(0, 0, 0, 5), 0.0, 0.0, 100.0, id="all-wrong"),
        pytest.param(_verdicts(0, 0, 4, 0), 0.0, nan, 0.0, id="nothing-mentioned"),
        pytest.param(_verdicts(1, 3, 4, 2), 10.0, 400 / 6, 60.0, id="mixed"),
        pytest.param([*_verdicts(1, 0, 1, 0), None, None], 50.0, 100.0, 50.0, id="two-unscored"),
        pytest.param([None, None], nan, nan, nan, id="nothing-scored"),
        pytest.param([], nan, nan, nan, id="no-pairs"),
    ],
)
def test_by_hand(verdicts: Verdicts, acc: float, pre: float, cov: float) -> None:
    """The formulas of section 3.2, worked by hand."""
    got = [metric(verdicts) for metric in (vidcapbench_acc, vidcapbench_pre, vidcapbench_cov)]
    assert got == pytest.approx([acc, pre, cov], nan_ok=True)


@pytest.mark.parametrize(
    ("verdicts", "n_tokens", "con"),
    [
        pytest.param(_verdicts(1, 0, 3, 0), [100], 25.0, id="one-caption"),
        pytest.param(_verdicts(1, 0, 1, 0), [100, 300], 25.0, id="mean-of-tokens"),
        pytest.param(_verdicts(1, 0, 0, 0), [1], 10_000.0, id="most"),
        pytest.param(_verdicts(0, 1, 0, 0), [7], 0.0, id="nothing-correct"),
        pytest.param([None], [7], nan, id="nothing-scored"),
        pytest.param(_verdicts(1, 0, 0, 0), [], nan, id="no-caption"),
    ],
)
def test_conciseness_by_hand(verdicts: Verdicts, n_tokens: list[int], con: float) -> None:
    """100 times accuracy in percent over the mean number of tokens."""
    assert vidcapbench_con(verdicts, n_tokens) == pytest.approx(con, nan_ok=True)


def test_a_caption_without_a_token_is_refused() -> None:
    """The end of sequence counts, so that no count is below 1."""
    with pytest.raises(ValueError, match="at least 1 token, got 0"):
        vidcapbench_con(["correct"], [3, 0])


@given(VERDICTS, st.randoms())
def test_the_order_of_pairs_moves_nothing(verdicts: Verdicts, random: Random) -> None:
    """All metrics are micro: functions of the counts alone."""
    shuffled = list(verdicts)
    random.shuffle(shuffled)
    for metric in (vidcapbench_acc, vidcapbench_pre, vidcapbench_cov):
        assert metric(shuffled) == pytest.approx(metric(verdicts), nan_ok=True)


@given(VERDICTS)
def test_bounds_and_relations(verdicts: Verdicts) -> None:
    """All are percentages, and acc <= pre x cov / 100 <= cov: what is right is mentioned."""
    acc, pre, cov = (m(verdicts) for m in (vidcapbench_acc, vidcapbench_pre, vidcapbench_cov))
    assert all(isnan(value) or 0 <= value <= 100 for value in (acc, pre, cov))
    assert isnan(acc) == isnan(cov) == (not any(verdicts))
    assert isnan(pre) == (isnan(cov) or cov == 0)
    if not isnan(pre):
        assert acc <= pre * cov / 100 + 1e-9 <= cov + 2e-9


@given(VERDICTS)
def test_unscored_pairs_move_nothing(verdicts: Verdicts) -> None:
    """An unscored pair is out of every denominator."""
    for metric in (vidcapbench_acc, vidcapbench_pre, vidcapbench_cov):
        assert metric([*verdicts, None]) == pytest.approx(metric(verdicts), nan_ok=True)


@given(st.lists(SCORED, min_size=1), st.data())
def test_a_better_verdict_never_lowers_accuracy(verdicts: Verdicts, data: st.DataObject) -> None:
    """Acc and con are monotone; pre grows when wrong turns partial, cov when neutral does."""
    index = data.draw(st.integers(0, len(verdicts) - 1))
    better = [*verdicts]
    better[index] = "correct"
    assert vidcapbench_acc(better) >= vidcapbench_acc(verdicts)
    assert vidcapbench_con(better, [5]) >= vidcapbench_con(verdicts, [5])
    assert vidcapbench_cov(better) >= vidcapbench_cov(verdicts)
    before = vidcapbench_pre(verdicts)
    assert isnan(before) or vidcapbench_pre(better) >= before


@given(st.lists(SCORED, min_size=1), st.lists(st.integers(1, 500), min_size=1))
def test_twice_the_tokens_is_half_the_conciseness(verdicts: Verdicts, counts: list[int]) -> None:
    """Conciseness is inverse to length, and falls when one caption grows."""
    con = vidcapbench_con(verdicts, counts)
    assert vidcapbench_con(verdicts, [2 * n for n in counts]) == pytest.approx(con / 2)
    assert vidcapbench_con(verdicts, [counts[0] + 1, *counts[1:]]) <= con
