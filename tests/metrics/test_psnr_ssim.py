"""PSNR and SSIM against slow computations that share no line with them."""

from __future__ import annotations

from math import log10

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.metrics.frames import psnr, ssim


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(0, 100.0, id="equal frames have the most"),
        pytest.param(255, 0.0, id="black and white have none"),
        pytest.param(1, 20 * log10(255), id="one level"),
    ],
)
def test_psnr_of_frames_that_are_off_everywhere(error: int, expected: float) -> None:
    """Of a constant error it is the logarithm of the peak over it."""
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


def test_shapes_that_do_not_fit_are_refused() -> None:
    """Frames of another size, none at all, or smaller than the window."""
    with pytest.raises(ValueError, match="psnr: expected equal shapes"):
        psnr(np.zeros((1, 2, 2)), np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match="psnr: expected equal shapes"):
        psnr(np.zeros((0, 2)), np.zeros((0, 2)))
    with pytest.raises(ValueError, match="ssim: expected equal shapes"):
        ssim(np.zeros((1, 20, 20)), np.zeros((20, 20)))
    with pytest.raises(ValueError, match="at least 11 pixels"):
        ssim(np.zeros((1, 20, 10)), np.zeros((1, 20, 10)))
