"""PSNR and SSIM of two pictures."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MOST_DB: Final = 100.0
"""PSNR of frames that are equal, or nearly so; that of equal ones is infinite, without a mean."""
WINDOW: Final = 11
"""Width of SSIM's window in pixels; frames must not be smaller."""
_SIGMA: Final = 1.5
_C1: Final = (0.01 * 255) ** 2
_C2: Final = (0.03 * 255) ** 2


def psnr(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the peak signal-to-noise ratio in dB of frames in [0, 255], at most 100.

    The squared error is averaged over all frames first, so that one nearly equal frame does not
    outweigh the others. VidCapBench, section 4.4, names PSNR without its formula.

    >>> round(psnr(np.zeros((2, 4, 4)), np.full((2, 4, 4), 25.5)), 6)
    20.0
    """
    mean_square = float(np.mean((first.astype(np.float64) - second) ** 2))
    return min(_MOST_DB, float(10 * np.log10(255**2 / mean_square))) if mean_square else _MOST_DB


def ssim(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the structural similarity in [-1, 1] of frames, mean over pixels and frames.

    Both have shape (n_frames, height, width), gray levels in [0, 255], sides >= 11.

    Source:
        Wang et al., Image quality assessment: from error visibility to structural similarity
        (2004), equation 13, without windows that reach over the edge. VidCapBench, section 4.4,
        names no parameters. Deviation: frames are not shrunk first, as in the authors' later code.

    >>> frame = np.arange(144.0).reshape(1, 12, 12)
    >>> round(ssim(frame, frame), 9), ssim(frame, frame[:, ::-1]) < 0
    (1.0, True)
    """
    from scipy.ndimage import gaussian_filter

    def blurred(frames: NDArray[Any]) -> NDArray[Any]:
        edge = WINDOW // 2
        means = gaussian_filter(frames, _SIGMA, radius=edge, axes=(1, 2))
        return np.asarray(means[:, edge:-edge, edge:-edge])

    x, y = first.astype(np.float64), second.astype(np.float64)
    mean_x, mean_y = blurred(x), blurred(y)
    variances = blurred(x * x) - mean_x**2 + blurred(y * y) - mean_y**2
    covariance = blurred(x * y) - mean_x * mean_y
    above = (2 * mean_x * mean_y + _C1) * (2 * covariance + _C2)
    return float((above / ((mean_x**2 + mean_y**2 + _C1) * (variances + _C2))).mean())
