"""Prompts go over the wire as the papers print them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED
from lmms_eval_captions.judges.protocols.prompt import Prompt, Prompts, read_yaml

PAPER = SHARED / "papers" / "004_dec2e5a25833334d.txt"


def _words(text: str) -> str:
    """Text without markup and line breaks, which the extraction of a paper does not keep."""
    return re.sub(r"[\s*]+", " ", text).strip()


def _paper() -> str:
    if not PAPER.is_file():
        pytest.skip(f"the paper's text is not at {PAPER}")
    return _words(PAPER.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param(
            "vdc_answer",
            {"question": "What objects are the cyclist's hands interacting with?"},
            id="appendix-Q",
        ),
        pytest.param(
            "vdc_match",
            {
                "question": "What type of surface can be seen covering the floor?",
                "answer": "carpet",
                "predicted_answer": "Carpeted surface.",
            },
            id="appendix-R",
        ),
    ],
)
def test_vdc_prompts_are_those_of_the_paper(name: str, values: dict[str, str]) -> None:
    """Filled with the paper's example, each message is in the paper word for word."""
    paper = _paper()
    caption = paper[paper.index("The setting is an urban street") :]
    caption = caption[: caption.index(" question:")]
    slots = Prompts().load(name).slots
    messages = Prompts().load(name).render(**{"caption": caption, **values})
    assert slots <= {"caption", *values}
    for message in messages:
        assert _words(str(message["content"])) in paper


@pytest.mark.parametrize("aspect", ["camera", "background", "main_object", "detailed"])
def test_vdc_caption_prompts_are_those_of_the_paper(aspect: str) -> None:
    """The caption prompts of appendix H, which prints none for short captions."""
    assert str(read_yaml("vdc_caption")[aspect]) in _paper()


@given(st.text(), st.text())
def test_slots_are_filled_with_the_text_unchanged(caption: str, question: str) -> None:
    """Braces, quotes and the names of other slots in a caption change nothing."""
    prompt = Prompt([("user", "a {{caption}} b {{question}} c")])
    for tricky in (caption, caption + "{{question}}", "{caption} %s \\1 {{caption}}"):
        assert prompt.render(caption=tricky, question=question) == [
            {"role": "user", "content": f"a {tricky} b {question} c"}
        ]


def test_a_slot_without_a_value_is_an_error() -> None:
    """A prompt is never sent with a hole in it."""
    with pytest.raises(KeyError, match="question"):
        Prompts().load("vdc_answer").render(caption="x")
