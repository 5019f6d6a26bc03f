"""Stand-ins for missing captions."""

from __future__ import annotations

import copy
import pickle

import pytest

from lmms_eval_captions.model_wrappers.no_caption import NoCaption, says_nothing


@pytest.mark.parametrize(
    "pass_on",
    [
        pytest.param(lambda text: pickle.loads(pickle.dumps(text)), id="gathered from a rank"),  # noqa: S301
        pytest.param(copy.deepcopy, id="copied"),
        pytest.param(lambda text: text.strip(), id="stripped"),
    ],
)
def test_the_reason_survives_what_lmms_eval_does(pass_on: object) -> None:
    """To everybody else it is an empty text."""
    passed = pass_on(NoCaption("broken \ud83d"))  # type: ignore[operator] # any of the above
    assert passed == ""
    assert isinstance(passed, NoCaption)
    assert passed.reason == "broken \ufffd"


@pytest.mark.parametrize(
    ("caption", "is_empty"),
    [("", True), (" \n", True), ("...!", True), ("三", False), ("7", False), (" a ", False)],
)
def test_a_caption_without_a_word_says_nothing(caption: str, is_empty: bool) -> None:
    """Letters and numbers of any script are words, white space and signs are none."""
    assert says_nothing(caption) == is_empty
