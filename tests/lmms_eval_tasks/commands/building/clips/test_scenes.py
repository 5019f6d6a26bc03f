"""Where scenes are cut into parts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.scenes import parts_of


@pytest.mark.parametrize(
    ("length_s", "n_parts"),
    [(2.999, 1), (2.9, 0), (3, 1), (15, 1), (15.1, 2), (30, 2), (30.1, 3), (40, 3)],
)
def test_a_scene_gives_as_few_parts_as_fit(length_s: float, n_parts: int) -> None:
    """One of at most 15 s is one part, a longer one as many as it takes; a millisecond is none."""
    assert len(parts_of((0.0, length_s), min_s=3, max_s=15)) == n_parts


@given(st.floats(0, 1000), st.floats(0.01, 500), st.floats(0.5, 20), st.floats(1, 5))
def test_parts_have_allowed_lengths_and_do_not_overlap(
    start_s: float, length_s: float, min_s: float, ratio: float
) -> None:
    """Every part is within the scene and the bounds, and behind the one before."""
    start_s, max_s = round(start_s, 3), min_s * ratio
    scene = (start_s, round(start_s + length_s, 3))
    parts = parts_of(scene, min_s=min_s, max_s=max_s)
    assert bool(parts) == (scene[1] - scene[0] + 1e-3 >= min_s)
    for part_start_s, part_end_s in parts:
        assert min_s - 2e-3 <= part_end_s - part_start_s <= max_s + 2e-3
        assert scene[0] <= part_start_s
        assert part_end_s <= scene[1] + 1e-3
    assert all(first[1] <= second[0] + 1e-9 for first, second in pairwise(parts))
