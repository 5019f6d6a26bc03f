"""BLEU and METEOR from counts, and what a caption adds to a value of sums."""

from __future__ import annotations

from math import exp, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.metrics.bleu import bleu
from lmms_eval_captions.metrics.meteor import N_STATISTICS, meteor, summed
from lmms_eval_captions.metrics.sum_influences import sum_influences

counts = st.integers(1, 50)


@pytest.mark.parametrize(
    ("row", "n", "expected"),
    [
        # "the cat sat" and "the cat sat": all match.
        pytest.param([3, 3, 3, 2, 1, 0, 3, 2, 1, 0], 1, 1.0, id="equal texts"),
        pytest.param([4, 4, 4, 3, 2, 1, 4, 3, 2, 1], 4, 1.0, id="equal texts of four words"),
        pytest.param([4, 4, 4, 3, 2, 1, 2, 1, 0, 0], 1, 0.5, id="half of the words"),
        pytest.param([4, 4, 4, 3, 2, 1, 2, 1, 0, 0], 4, 0.0, id="no four words in a row"),
        pytest.param([3, 4, 3, 2, 1, 0, 3, 2, 1, 0], 1, exp(-1 / 3), id="too short"),
        pytest.param([8, 4, 8, 7, 6, 5, 4, 3, 2, 1], 1, 0.5, id="too long costs precision alone"),
        pytest.param([8, 4, 8, 7, 6, 5, 4, 3, 2, 1], 2, (4 / 8 * 3 / 7) ** 0.5, id="two orders"),
        pytest.param([0, 4, 0, 0, 0, 0, 0, 0, 0, 0], 1, 0.0, id="a caption that says nothing"),
        pytest.param([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1, nan, id="no reference"),
    ],
)
def test_bleu_is_that_worked_by_hand(row: list[float], n: int, expected: float) -> None:
    """The geometric mean of matching shares, times the penalty for being short."""
    assert bleu(row, n=n) == pytest.approx(expected, nan_ok=True)


@given(counts, counts, st.integers(0, 49))
def test_one_more_matching_word_never_lowers_bleu(words: int, reference: int, more: int) -> None:
    """BLEU-1 is monotone in the words that match, and lies in [0, 1]."""
    n_matched = min(more, words - 1)
    before, after = (
        bleu([words, reference, words, 0, 0, 0, matched, 0, 0, 0], n=1)
        for matched in (n_matched, n_matched + 1)
    )
    assert 0.0 <= before <= after <= 1.0


def _statistics(**values: float) -> list[float]:
    places = {"words": 0, "reference_words": 1, "exact": 4, "reference_exact": 5}
    ends = {"chunks": 20, "matched": 21, "reference_matched": 22}
    row = [0.0] * N_STATISTICS
    for name, value in values.items():
        row[{**places, **ends}[name]] = value
    return row


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(
            _statistics(words=2, reference_words=2, exact=2, reference_exact=2, chunks=1, matched=2,
                        reference_matched=2),
            1.0, id="equal texts",
        ),
        # Half of the words match in one chunk: P = R = 1/2, fragmentation 1 of 1.
        pytest.param(
            _statistics(words=2, reference_words=2, exact=1, reference_exact=1, chunks=1, matched=1,
                        reference_matched=1),
            0.5 * (1 - 0.6), id="half of the words",
        ),
        pytest.param(_statistics(words=2, reference_words=2), 0.0, id="nothing matches"),
        pytest.param(_statistics(words=2), nan, id="no reference"),
    ],
)  # fmt: skip
def test_meteor_is_that_worked_by_hand(row: list[float], expected: float) -> None:
    """Weighted harmonic mean of precision and recall, times what fragmentation leaves."""
    assert meteor(summed(row)) == pytest.approx(expected, nan_ok=True)


def test_captions_that_match_from_end_to_end_are_not_broken_however_many_they_are() -> None:
    """METEOR 1.5 sums no chunk of a caption that is its reference word for word."""
    equal = _statistics(words=2, reference_words=2, exact=2, reference_exact=2, chunks=1, matched=2,
                        reference_matched=2)  # fmt: skip
    broken = _statistics(words=2, reference_words=2, exact=2, reference_exact=2, chunks=2,
                         matched=2, reference_matched=2)  # fmt: skip
    sums = [sum(column) for column in zip(summed(equal), summed(equal), strict=True)]
    assert meteor(sums) == 1.0
    sums = [sum(column) for column in zip(summed(equal), summed(broken), strict=True)]
    assert meteor(sums) == pytest.approx(1 - 0.6 * (2 / 4) ** 0.2)


def test_counts_of_another_number_are_refused() -> None:
    """Both say how many they expect."""
    with pytest.raises(ValueError, match="bleu: expected 10 counts, got 1"):
        bleu([1.0], n=1)
    with pytest.raises(ValueError, match="meteor: expected 23 numbers, got 2"):
        meteor([1.0, 2.0])


@given(st.lists(st.tuples(counts, counts, counts), min_size=1, max_size=8))
def test_influences_are_slopes_of_the_value(rows: list[tuple[int, int, int]]) -> None:
    """They sum to 0, and a little more of a caption moves the value by a little of them."""

    def value_of(sums: object) -> float:
        first, second, third = list(sums)  # type: ignore[call-overload]
        return float(first / (second + third) * exp(-third / first))

    influences = sum_influences(rows, value_of)
    assert sum(influences) == pytest.approx(0.0, abs=1e-9)
    step = 1e-6
    sums = [sum(column) for column in zip(*rows, strict=True)]
    for row, influence in zip(rows, influences, strict=True):
        moved = [total + step * x for total, x in zip(sums, row, strict=True)]
        slope = (value_of(moved) - value_of(sums)) / step
        assert slope == pytest.approx(influence, rel=1e-3, abs=1e-4)


def test_a_value_that_is_not_there_has_no_influences() -> None:
    """Without a value, or a caption, there is nothing to follow."""
    assert all(map(isnan, sum_influences([[1.0], [2.0]], lambda _sums: nan)))
    assert sum_influences([], lambda _sums: 1.0) == []
