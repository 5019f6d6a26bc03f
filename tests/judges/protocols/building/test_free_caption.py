"""Captions in free words: what is one, and what is none."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.building.free_caption import (
    free_caption_fault,
    read_free_caption,
)

CAPTION = (
    "A woman in a yellow coat holds a red ball and looks down at it. Behind her, on the left, a "
    "dog runs after leaves; on the right, there is a row of houses with grey roofs. The camera "
    "follows her from left to right, at the height of the eyes, and comes closer. The camera then "
    "follows the dog from right to left, at the height of the knees, and goes further away."
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(CAPTION, None, id="a caption"),
        pytest.param("A dog.", None, id="short"),
        pytest.param("A dog. " * 7, None, id="repeated, but short"),
        pytest.param("", "empty", id="nothing"),
        pytest.param(" \n", "empty", id="blanks"),
        pytest.param("<think>A dog, maybe", "empty", id="thoughts that were cut"),
        pytest.param(CAPTION + " The dog runs. The dog runs." * 60, "repeats itself", id="loop"),
        pytest.param("the " * 3000, "repeats itself", id="one word"),
    ],
)
def test_faults(text: str, fault: str | None) -> None:
    """What says nothing, or mostly says the same again, is no caption."""
    assert free_caption_fault(text) == fault
    assert (read_free_caption(Reply(text, "length")) is None) == (fault is not None)


def test_half_characters_are_made_whole() -> None:
    """A caption can be written to a file in UTF-8."""
    caption = read_free_caption(Reply("A dog \ud83d runs.", "stop"))
    assert caption is not None
    assert caption.encode("utf-8").decode("utf-8") == "A dog \ufffd runs."


def test_long_replies_take_no_time() -> None:
    """A reply of a million characters is read in under a second."""
    began = perf_counter()
    assert free_caption_fault("a b " * 250_000) == "repeats itself"
    assert perf_counter() - began < 1


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """No text raises; a caption is never empty."""
    caption = read_free_caption(Reply(text, "stop"))
    assert caption is None or caption.strip()
