"""Endings of video files."""

from __future__ import annotations

import pytest

from lmms_eval_captions.model_wrappers.video.endings import (
    RARE_VIDEO_ENDINGS,
    VIDEO_ENDINGS,
    without_ending,
)


@pytest.mark.parametrize("ending", sorted(VIDEO_ENDINGS))
def test_a_video_s_ending_is_no_part_of_its_name(ending: str) -> None:
    """In any case, and once."""
    assert without_ending(f"a.b{ending.upper()}") == "a.b"
    assert without_ending(f"a{ending}{ending}") == f"a{ending}"


@pytest.mark.parametrize("ending", sorted(RARE_VIDEO_ENDINGS))
def test_a_rare_ending_counts_where_it_is_asked_for(ending: str) -> None:
    """Where files are looked for, and not among the ids of a caption file."""
    assert ending not in VIDEO_ENDINGS
    assert without_ending(f"a{ending}") == f"a{ending}"
    assert without_ending(f"a{ending}", VIDEO_ENDINGS | RARE_VIDEO_ENDINGS) == "a"


@pytest.mark.parametrize("name", ["", "a", ".mp4", "a.b", "a.mp4x", "mp4"])
def test_other_dots_belong_to_the_name(name: str) -> None:
    """A name is never emptied."""
    assert without_ending(name) == name
