"""How close pixels are to those of other frames: peak signal-to-noise ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DB: Final = 100.0
"""Ratio of frames that are equal, or nearly so: that of equal ones is infinite, of which no mean
over videos could be taken."""
_PEAK: Final = 255.0


def psnr(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Peak signal-to-noise ratio of frames against other frames, in dB.

    The squared error is averaged over all pixels, channels and frames before it becomes dB: one
    frame that is nearly equal then does not outweigh the others.

    Args:
        first: Frames or one frame, of any shape, in [0, 255].
        second: The same shape.

    Returns:
        Decibels, higher is closer; at most 100, which equal frames have.

    Raises:
        ValueError: If the shapes differ, or there is no pixel.

    Source:
        10 log10(255^2 / MSE). VidCapBench, section 4.4, which names PSNR without its formula.

    >>> import numpy as np
    >>> round(psnr(np.zeros((2, 4, 4)), np.full((2, 4, 4), 25.5)), 6)
    20.0
    """
    import numpy as np

    if first.shape != second.shape or not first.size:
        raise ValueError(f"psnr: expected equal shapes, got {first.shape} and {second.shape}")
    error = first.astype(np.float64) - second.astype(np.float64)
    mean_square = float(np.mean(error * error))
    if not mean_square:
        return MOST_DB
    return min(MOST_DB, float(10 * np.log10(_PEAK * _PEAK / mean_square)))
