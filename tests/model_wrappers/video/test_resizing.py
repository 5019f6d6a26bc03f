"""Frames shrunk to an area."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.model_wrappers.video.resizing import fit, shrunk


@given(st.integers(1, 9000), st.integers(1, 9000), st.integers(1, 10**7))
def test_the_area_is_kept_to_and_the_shape_kept(width: int, height: int, most: int) -> None:
    """Never larger than before nor than asked for, except that a side has at least a pixel."""
    small_width, small_height = shrunk(width, height, most)
    assert 1 <= small_width <= width
    assert 1 <= small_height <= height
    assert small_width * small_height <= max(most, small_width, small_height)


@pytest.mark.parametrize("max_pixels", [None, 24, 25])
def test_a_frame_that_fits_is_not_touched(max_pixels: int | None) -> None:
    """It is the same array."""
    frame = np.zeros((4, 6, 3), np.uint8)
    assert fit(frame, max_pixels) is frame


def test_a_large_frame_is_averaged_not_sampled() -> None:
    """A chequerboard becomes gray."""
    board = np.indices((8, 8)).sum(axis=0) % 2 * 200
    frame = np.repeat(board[..., None], 3, axis=2).astype(np.uint8)
    small = fit(frame, 16)
    assert small.shape == (4, 4, 3)
    assert set(small.ravel().tolist()) == {100}
