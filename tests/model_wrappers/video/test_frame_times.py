"""When frames are shown: stamps that are missing, out of order, or of a clock that starts anew."""

from __future__ import annotations

import numpy as np
import pytest

from lmms_eval_captions.model_wrappers.video.frame_times import Stamps, end_of, shown_at


@pytest.mark.parametrize(
    ("stamps", "may_jump", "wanted"),
    [
        pytest.param([(5, 5), (6, 6), (9, 9)], False, [0, 1, 4], id="variable"),
        pytest.param([(None, None)] * 3, False, [0, 1, 2], id="none"),
        pytest.param(
            [(2**58 + 1, None), (2**58 + 2, None), (2**58 + 4, None)], False, [0, 1, 3], id="giants"
        ),
        pytest.param([(0, 0), (None, None), (4, 4)], False, [0, 1, 4], id="one missing"),
        pytest.param([(0, 0), (None, None), (1, 1)], False, [0, 0.5, 1], id="little room"),
        pytest.param([(0, 0), (2, 2), (2, 2), (4, 4)], False, [0, 2, 3, 4], id="twins"),
        pytest.param([(1, 0), (3, 1), (2, 2), (4, 3)], False, [0, 1, 2, 3], id="packets in order"),
        pytest.param([(1, 2), (4, 3), (3, 4), (5, None)], False, [0, 1, 2, 3], id="end missing"),
        pytest.param(
            [(1, 1), (2, 2), (4, 3), (3, 4), (5, 5), (6, None)],
            False,
            [0, 1, 2, 3, 4, 5],
            id="one pair in the order of storing",
        ),
        pytest.param(
            [(2, 2), (3, 3), (4, 4), (4, 5), (6, 7), (9, 9)],
            False,
            [0, 1, 2, 3, 4, 7],
            id="one twin beside packets in order",
        ),
        pytest.param([(7, 7), (8, 8), (0, 0), (1, 1)], True, [0, 1, 2, 3], id="starts anew"),
        pytest.param([(0, 0), (1, 1), (900, 900)], True, [0, 1, 2], id="leaps"),
        pytest.param([(0, 0), (1, 1), (900, 900)], False, [0, 1, 900], id="a long pause"),
    ],
)
def test_times_follow_the_stamps_as_far_as_they_are_good(
    stamps: list[Stamps], may_jump: bool, wanted: list[float]
) -> None:
    """Times rise from 0; what is missing is made up from the rate."""
    times_s = shown_at(stamps, unit_s=1.0, step_s=1.0, may_jump=may_jump)
    assert times_s == pytest.approx(wanted)
    assert np.all(np.diff(times_s) >= 0)


@pytest.mark.parametrize(
    ("times_s", "last_s", "fps", "wanted"),
    [
        pytest.param([0, 1, 2], 1.0, 1.0, 3.0, id="as the file says"),
        pytest.param([0, 1, 2], 7.0, 1.0, 9.0, id="a long last frame"),
        pytest.param([0, 1, 3], 0.0, 1.0, 5.0, id="as long as the one before"),
        pytest.param([0, 1, 2], 0.01, 1.0, 3.0, id="one tick"),
        pytest.param([0], 0.0, 4.0, 0.25, id="one frame"),
        pytest.param([0], 0.0, 0.0, None, id="nothing known"),
        pytest.param([0, 0], 0.0, 4.0, 0.25, id="no clock"),
    ],
)
def test_a_clip_ends_with_its_last_frame(
    times_s: list[float], last_s: float, fps: float, wanted: float | None
) -> None:
    """The length of the last frame is the file's, unless that is none."""
    assert end_of(np.array(times_s, dtype=np.float64), last_s, fps=fps) == wanted
