"""How much moves in a part of a video."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.stillness import (
    displacement,
    motion_within,
)


def _texture() -> np.ndarray:
    """Smooth bumps, shape (96, 200)."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:96, 0:200]
    waves = sum(
        np.sin(a * rows + b * columns + c)
        for a, b, c in rng.uniform(0.05, 0.5, (12, 3)) * [1, 1, 9]
    )
    return np.asarray(np.clip(128 + 15 * waves, 0, 255), dtype=np.uint8)


@pytest.mark.parametrize("pixels", [0, 1, 2, 4])
def test_a_picture_that_is_shifted_went_so_far(pixels: int) -> None:
    """Measured to a fifth of a pixel."""
    texture = _texture()
    before, after = texture[:, 8:168], texture[:, 8 - pixels : 168 - pixels]
    assert displacement(before, after) == pytest.approx(pixels, abs=0.2)


def test_a_thing_that_takes_a_tenth_of_the_picture_counts() -> None:
    """The background at rest does not hide it."""
    before, after = _texture()[:, :160], _texture()[:, :160].copy()
    after[30:66, 43:93] = before[30:66, 40:90]
    assert displacement(before, after) > 1


def test_motion_is_a_median_of_what_lies_within() -> None:
    """A flash does not move it; pairs over the end of the part are not of it."""
    flows = [(0.25 * at, 0.25 * at + 0.25, 90.0 if at == 5 else 0.1) for at in range(16)]
    assert motion_within(flows, (0.0, 3.0)) == 0.1
    assert motion_within([*flows, (3.9, 4.1, 50.0)], (3.5, 4.0)) == 0.1
    assert isnan(motion_within(flows, (9.0, 12.0)))
