"""PSNR and SSIM of two pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
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


WINDOW: Final = 11
"""Width in pixels of the window; frames must not be smaller."""
_SIGMA: Final = 1.5
_C1: Final = (0.01 * 255) ** 2
_C2: Final = (0.03 * 255) ** 2


def ssim(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Structural similarity of frames with other frames, mean over pixels and frames.

    Args:
        first: Shape (n_frames, height, width), gray levels in [0, 255], both sides >= 11.
        second: The same shape.

    Returns:
        Similarity in [-1, 1], higher is closer; 1 for equal frames.

    Raises:
        ValueError: If the shapes differ or frames are smaller than the window.

    Source:
        Wang et al., Image quality assessment: from error visibility to structural similarity
        (2004), equation 13: a Gaussian window of 11 x 11 with a standard deviation of 1.5,
        K1 = 0.01, K2 = 0.03; windows that reach over the edge are left out. VidCapBench,
        section 4.4, names SSIM and none of these. Deviation: frames are not shrunk first, as the
        authors' later code does.

    >>> import numpy as np
    >>> frame = np.arange(144.0).reshape(1, 12, 12)
    >>> round(ssim(frame, frame), 9), ssim(frame, frame[:, ::-1]) < 0
    (1.0, True)
    """
    import numpy as np

    if first.shape != second.shape or first.ndim != 3 or min(first.shape) < 1:
        raise ValueError(
            f"ssim: expected equal shapes (n_frames, height, width), got {first.shape} and "
            f"{second.shape}"
        )
    if min(first.shape[1:]) < WINDOW:
        raise ValueError(f"ssim: expected sides of at least {WINDOW} pixels, got {first.shape[1:]}")
    pairs = zip(first, second, strict=True)
    return float(np.mean([_of_frame(x.astype(np.float64), y.astype(np.float64)) for x, y in pairs]))


def _of_frame(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    mean_x, mean_y = _blurred(x), _blurred(y)
    variance_x = _blurred(x * x) - mean_x * mean_x
    variance_y = _blurred(y * y) - mean_y * mean_y
    covariance = _blurred(x * y) - mean_x * mean_y
    above = (2 * mean_x * mean_y + _C1) * (2 * covariance + _C2)
    below = (mean_x * mean_x + mean_y * mean_y + _C1) * (variance_x + variance_y + _C2)
    return float((above / below).mean())


def _blurred(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted means over all windows that lie within the picture."""
    import numpy as np

    offsets = np.arange(WINDOW) - WINDOW // 2
    weights = np.exp(-(offsets**2) / (2 * _SIGMA**2))
    weights /= weights.sum()
    for axis in (0, 1):
        n = picture.shape[axis] - WINDOW + 1
        slices = (np.take(picture, range(at, at + n), axis=axis) for at in range(WINDOW))
        picture = sum(
            (weight * piece for weight, piece in zip(weights, slices, strict=True)),
            start=np.zeros(()),
        )
    return picture
