"""A caption of no aspect in particular stays one on its way through lmms-eval."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.model_wrappers.general_caption import GeneralCaption


@pytest.mark.parametrize(
    "pass_on",
    [
        pytest.param(lambda text: pickle.loads(pickle.dumps(text)), id="gathered from a rank"),  # noqa: S301
        pytest.param(copy.deepcopy, id="copied"),
        pytest.param(lambda text: text.strip(), id="stripped"),
        pytest.param(whole, id="made whole"),
    ],
)
@pytest.mark.parametrize("text", ["A dog.", "\u4e09 dogs."])
def test_what_lmms_eval_does_to_a_caption_keeps_its_kind(pass_on: object, text: str) -> None:
    """To everybody else it is its text."""
    passed = pass_on(GeneralCaption(text))  # type: ignore[operator] # any of the above
    assert isinstance(passed, GeneralCaption)
    assert passed == text
    assert json.loads(json.dumps(passed)) == text
