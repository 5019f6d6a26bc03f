"""BLEU, ROUGE-L, METEOR, PSNR and SSIM against references."""

from __future__ import annotations

from math import exp, log10, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.analysis.t2v_verify.similarity import psnr, ssim
from lmms_eval_captions.metrics.captioning import N_STATISTICS, bleu, meteor, summed

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


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(0, 100.0, id="equal frames have the most"),
        pytest.param(255, 0.0, id="black and white have none"),
        pytest.param(1, 20 * log10(255), id="one level"),
    ],
)
def test_psnr_of_frames_that_are_off_everywhere(error: int, expected: float) -> None:
    black = np.zeros((2, 4, 6, 3), dtype=np.uint8)
    assert psnr(black, black + np.uint8(error)) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(11, 20), st.integers(11, 20))
def test_ssim_is_the_formula_window_by_window(seed: int, height: int, width: int) -> None:
    """Means, variances and covariance of each 11 x 11 window, weighted by a Gaussian of 1.5."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (height, width)).astype(float)
    y = np.clip(x + rng.normal(0, 40, x.shape), 0, 255)
    scipy_weights = np.array(
        [
            [np.exp(-((row - 5) ** 2 + (column - 5) ** 2) / 4.5) for column in range(11)]
            for row in range(11)
        ]
    )
    weights = scipy_weights / scipy_weights.sum()
    values = []
    for top in range(height - 10):
        for left in range(width - 10):
            a, b = (each[top : top + 11, left : left + 11] for each in (x, y))
            mean_a, mean_b = (weights * a).sum(), (weights * b).sum()
            var_a = (weights * (a - mean_a) ** 2).sum()
            var_b = (weights * (b - mean_b) ** 2).sum()
            cov = (weights * (a - mean_a) * (b - mean_b)).sum()
            c1, c2 = 6.5025, 58.5225
            values.append(
                (2 * mean_a * mean_b + c1)
                * (2 * cov + c2)
                / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
            )
    assert ssim(x[None], y[None]) == pytest.approx(np.mean(values), abs=1e-9)
