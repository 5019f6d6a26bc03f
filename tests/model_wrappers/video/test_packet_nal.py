"""What the packets of H.264 and of HEVC have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.model_wrappers.video.packet_bits import DoubtError
from lmms_eval_captions.model_wrappers.video.packet_nal import (
    PictureOrder,
    bits_of,
    learn_all,
    units_of,
)


@given(st.lists(st.integers(-7, 7), min_size=1, max_size=60))
def test_counts_go_on_where_their_lower_bits_start_anew(steps: list[int]) -> None:
    """With 4 bits a count is known while it moves by less than 8."""
    order = PictureOrder()
    sequence, at = order.restart()
    assert at == 0
    for step in steps:
        at += step
        assert order.place(at % 16, 4, counts=True) == (sequence, at)
    assert order.restart() == (sequence + 1, 0)


def test_a_picture_that_does_not_count_moves_nothing() -> None:
    """The next one is told from the one before it."""
    order = PictureOrder()
    assert order.place(7, 4, counts=False) == (0, 7)
    assert order.place(9, 4, counts=True) == (0, -7)


def test_units_stand_behind_their_lengths() -> None:
    """A length that is impossible is in doubt; a rest too short for a length is none."""
    assert list(units_of(b"\0\2ab\0\3cde\0", 2)) == [b"ab", b"cde"]
    for packet in (b"\0\1a", b"\0\x09ab", b"\0\0"):
        with pytest.raises(DoubtError, match="impossible length"):
            list(units_of(packet, 2))


def test_parameters_are_learned_one_by_one() -> None:
    """What follows them is left."""
    learned: list[bytes] = []
    assert learn_all(b"?\0\1a\0\2bc!", 1, 2, learned.append) == 8
    assert learned == [b"a", b"bc"]


def test_bytes_against_start_codes_are_left_out() -> None:
    """A header is read as it was written."""
    assert bits_of(b"x\0\0\3\1", 1).take(24) == 1
    with pytest.raises(DoubtError, match="cut off"):
        bits_of(b"xab", 1, 2).take(9)
