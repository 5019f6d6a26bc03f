"""Frames shrunk to an area, keeping their shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PIXELS: Final = 1920 * 1088
"""Larger frames are shrunk to this area by default: what no captioner can see costs no memory."""


def fit(frame: NDArray[np.uint8], max_pixels: int | None) -> NDArray[np.uint8]:
    """A frame, shrunk to at most ``max_pixels``, keeping its shape."""
    height, width = frame.shape[:2]
    if max_pixels is None or height * width <= max_pixels:
        return frame
    import cv2

    size = shrunk(width, height, max_pixels)
    return np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def shrunk(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Width and height, shrunk to at most ``max_pixels``, keeping their ratio.

    >>> shrunk(7680, 4320, 1920 * 1080)
    (1920, 1080)
    """
    scale = min(1.0, (max_pixels / (height * width)) ** 0.5)
    return max(1, int(width * scale)), max(1, int(height * scale))
