"""Names of colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HUES = (
    (8, "red"),
    (20, "orange"),
    (34, "yellow"),
    (85, "green"),
    (128, "blue"),
    (152, "purple"),
    (168, "pink"),
    (180, "red"),
)
"""Upper ends of the hue ranges, in half degrees as OpenCV counts them."""

NAMES = (
    "black", "white", "gray", "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown",
)  # fmt: skip
"""Every name that ``color_names`` gives."""


def color_names(pixels: NDArray[np.uint8]) -> NDArray[np.intp]:
    """The colour name of each pixel, as a position in ``NAMES``.

    Args:
        pixels: Shape (height, width, 3), RGB.

    Returns:
        Shape (height, width).
    """
    import cv2

    hsv = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV).astype(np.int32)
    hue, saturation, value = hsv[..., 0], hsv[..., 1], hsv[..., 2]
    upper_ends = np.array([end for end, _ in _HUES])
    of_hue = np.array([NAMES.index(name) for _, name in _HUES])
    names = of_hue[np.searchsorted(upper_ends, hue, side="right").clip(max=len(_HUES) - 1)]
    is_pale_red = np.isin(names, [NAMES.index("red"), NAMES.index("pink")]) & (saturation < 130)
    names = np.where(is_pale_red & (value > 170), NAMES.index("pink"), names)
    is_dark_orange = (hue >= 4) & (hue < 20) & (value < 165)
    names = np.where(is_dark_orange, NAMES.index("brown"), names)
    is_colorless = (saturation < 45) | (value < 40)
    grays = np.select(
        [value < 50, value > 205], [NAMES.index("black"), NAMES.index("white")], NAMES.index("gray")
    )
    return np.where(is_colorless, grays, names).astype(np.intp)


def color_name(rgb: NDArray[np.uint8]) -> str:
    """The name of one colour.

    >>> color_name(np.array([220, 20, 30], dtype=np.uint8))
    'red'
    """
    return NAMES[int(color_names(rgb.reshape(1, 1, 3))[0, 0])]


def color_shares(frame: NDArray[np.uint8]) -> dict[str, float]:
    """Share of the frame that each colour name covers, largest first, names not seen left out."""
    counts = np.bincount(color_names(frame).ravel(), minlength=len(NAMES))
    order = np.argsort(-counts, kind="stable")
    return {NAMES[i]: float(counts[i] / counts.sum()) for i in order if counts[i]}
