"""Pictures that carry their number in large blocks, to be read again after any codec."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLUMNS, ROWS = 4, 3
DARK, LIGHT = 40, 215
_N_CHECK_BITS = 4


def _bits(number: int) -> list[int]:
    """Eight bits of the number and four of a check sum."""
    check = (number * 7 + (number >> 4) * 3 + 5) % (1 << _N_CHECK_BITS)
    word = (number << _N_CHECK_BITS) | check
    return [(word >> bit) & 1 for bit in range(COLUMNS * ROWS)]


def picture(number: int, width: int, height: int) -> NDArray[np.uint8]:
    """A numbered frame, shape (height, width, 3), RGB; light blocks are tinted.

    Args:
        number: In [0, 256).
        width: In pixels, at least 8 per block are wise.
        height: In pixels.
    """
    grid = np.array(_bits(number), dtype=bool).reshape(ROWS, COLUMNS)
    rows = np.arange(height) * ROWS // height
    columns = np.arange(width) * COLUMNS // width
    light = grid[rows][:, columns]
    frame = np.full((height, width, 3), DARK, dtype=np.uint8)
    frame[light] = (LIGHT, LIGHT - 30, LIGHT - 10)
    return frame


def number_of(frame: NDArray[np.uint8]) -> int | None:
    """The number a frame carries, or ``None`` where it cannot be read."""
    height, width = frame.shape[:2]
    bits = []
    for row in range(ROWS):
        for column in range(COLUMNS):
            top, bottom = (height * (4 * row + k) // (4 * ROWS) for k in (1, 3))
            left, right = (width * (4 * column + k) // (4 * COLUMNS) for k in (1, 3))
            level = float(frame[top : bottom + 1, left : right + 1].mean())
            bits.append(int(level > (DARK + LIGHT) / 2))
    word = sum(bit << place for place, bit in enumerate(bits))
    number = word >> _N_CHECK_BITS
    return number if _bits(number) == bits else None
