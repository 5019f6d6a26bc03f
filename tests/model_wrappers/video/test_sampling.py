"""Which frames are looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.video.sampling import (
    Explicit,
    Fps,
    Sampling,
    Thirds,
    Uniform,
    sampling_of,
)

EVEN = np.arange(100) / 25
UNEVEN = np.asarray([0.0, 0.1, 0.2, 0.3, 4.0, 4.1, 8.0])


@pytest.mark.parametrize(
    ("sampling", "times_s", "wanted"),
    [
        pytest.param(Uniform(5), EVEN, [0, 25, 50, 74, 99], id="uniform rounds half to even"),
        pytest.param(Uniform(1), EVEN, [0], id="one frame is the first"),
        pytest.param(Uniform(9), EVEN[:3], [0, 1, 2], id="a short clip gives each frame once"),
        pytest.param(Fps(1.0), EVEN, [0, 25, 50, 75], id="one a second"),
        pytest.param(Fps(1.0, max_frames=2), EVEN, [0, 75], id="the cap thins over the whole clip"),
        pytest.param(Fps(100.0, max_frames=500), EVEN[:4], [0, 1, 2, 3], id="above its rate"),
        pytest.param(Fps(1.0), UNEVEN, [0, 3, 4, 5, 6], id="variable rate goes by time"),
        pytest.param(Fps(0.1), EVEN, [0], id="slower than the clip is long"),
        pytest.param(Fps(2.0), EVEN[:1], [0], id="one frame"),
        pytest.param(Uniform(3), EVEN, [0, 50, 99], id="of two middles the even one"),
        pytest.param(Uniform(3), EVEN[:98], [0, 48, 97], id="even, not the later one"),
        pytest.param(Uniform(3), EVEN[:99], [0, 49, 98], id="first, middle, last"),
        pytest.param(Uniform(3), EVEN[:2], [0, 1], id="two frames have no middle"),
        pytest.param(Uniform(3), EVEN[:1], [0], id="one frame is all three"),
        pytest.param(Thirds(), EVEN[:31], [0, 10, 20], id="thirds"),
        pytest.param(Thirds(), EVEN[:2], [0], id="two frames have one third"),
        pytest.param(Thirds(), EVEN[:1], [0], id="one frame is the first third"),
        pytest.param(Explicit((3, 3, 1, -1, 700)), EVEN, [1, 3, 99], id="explicit"),
    ],
)
def test_the_frames_are_those_worked_out_by_hand(
    sampling: Sampling, times_s: np.ndarray, wanted: list[int]
) -> None:
    """Each sampling gives the positions that its description gives on paper."""
    assert sampling.indices(times_s) == wanted


@given(
    st.lists(st.floats(0, 1e4), min_size=1, max_size=60),
    st.one_of(
        st.builds(Uniform, st.integers(1, 40)),
        st.builds(Fps, st.floats(0.01, 100), st.integers(1, 40)),
        st.sampled_from([Uniform(3), Thirds()]),
        st.builds(Explicit, st.tuples(st.integers(-99, 99), st.integers(-99, 99))),
    ),
)
def test_positions_rise_and_lie_inside(times: list[float], sampling: Sampling) -> None:
    """Whatever the time stamps, positions exist, rise strictly and keep to the cap."""
    chosen = sampling.indices(np.asarray(sorted(times)))
    assert chosen
    assert chosen == sorted(set(chosen))
    assert chosen[0] >= 0
    assert chosen[-1] < len(times)
    assert len(chosen) <= getattr(sampling, "n_frames", getattr(sampling, "max_frames", 3))


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        (0, None, "max_num_frames"),
        ("many", None, "max_num_frames"),
        (4, 0, "fps"),
        (4, "fast", "fps"),
    ],
)
def test_arguments_that_cannot_be_used(frames: object, fps: object, message: str) -> None:
    """Wrong model arguments are named."""
    with pytest.raises(SettingsError, match=message):
        sampling_of(frames, fps)
