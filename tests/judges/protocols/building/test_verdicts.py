"""A letter, yes or no, a decision: read where one is stated, and where no other is."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.building.verdicts import (
    Review,
    read_letter,
    read_review,
    read_yes_no,
)

FIVE = ("A red car", "A blue car", "A bicycle", "Two dogs", "A bus")
SIX = (*FIVE, "Cannot be determined")


@pytest.mark.parametrize(
    ("text", "of_five", "of_six"),
    [
        pytest.param("B", "B", "B", id="letter"),
        pytest.param("(e)", "E", "E", id="small"),
        pytest.param("**D. Two dogs**", "D", "D", id="with-its-text"),
        pytest.param("The answer is C, as it has two wheels.", "C", "C", id="sentence"),
        pytest.param("<think>A? No.</think>B", "B", "B", id="reasoning"),
        pytest.param("A bus", "E", "E", id="text-alone"),
        pytest.param("F", None, "F", id="sixth"),
        pytest.param("F. Cannot be determined", None, "F", id="sixth-with-its-text"),
        pytest.param("Cannot be determined", None, "F", id="sixth-by-its-text"),
        pytest.param("G", None, None, id="off-the-menu"),
        pytest.param("A or B", None, None, id="two"),
        pytest.param("A. A blue car", None, None, id="another-text"),
        pytest.param("I cannot see the video.", None, None, id="refusal"),
        pytest.param("", None, None, id="empty"),
        pytest.param("F.", None, "F", id="sixth-with-a-point"),
    ],
)
def test_letters_are_those_of_the_options(
    text: str, of_five: str | None, of_six: str | None
) -> None:
    """A letter behind the last option is none on the menu."""
    assert read_letter(Reply(text, "stop"), FIVE) == of_five
    assert read_letter(Reply(text, "stop"), SIX) == of_six


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Yes", "yes", id="yes"),
        pytest.param("no.", "no", id="no"),
        pytest.param("**Yes**. The car is red.", "yes", id="with-a-reason"),
        pytest.param("No, the door is closed.", "no", id="with-a-comma"),
        pytest.param("Cannot be determined", "unknown", id="unknown"),
        pytest.param("cannot be determined. The door is never shown.", "unknown", id="small"),
        pytest.param("It can't be determined.", None, id="a-sentence-about-it"),
        pytest.param("Can’t be determined.", "unknown", id="short-form"),
        pytest.param("Can not be determined.", "unknown", id="apart"),
        pytest.param("Unanswerable", "unknown", id="unanswerable"),
        pytest.param("The answer is: cannot be determined.", "unknown", id="stated"),
        pytest.param("No. It cannot be determined from the frames.", None, id="no-and-unknown"),
        pytest.param("Yes\nNo", None, id="both"),
        pytest.param("Yes or No", None, id="menu"),
        pytest.param("Maybe", None, id="off-the-menu"),
        pytest.param("No information is given.", None, id="no-as-an-article"),
        pytest.param("The frames show a car.", None, id="prose"),
        pytest.param("", None, id="empty"),
    ],
)
def test_yes_and_no_are_read_where_they_stand_alone(text: str, expected: str | None) -> None:
    """As VCapsBench's answers are, and what cannot be determined beside them."""
    assert read_yes_no(Reply(text, "stop")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"decision": "keep"}', Review("keep"), id="keep"),
        pytest.param(
            '{"decision": "keep", "question": "Who?", "answer": "A man"}',
            Review("keep"),
            id="keep-with-the-pair",
        ),
        pytest.param("```json\n{'Decision': 'DROP'}\n```", Review("drop"), id="drop-fenced"),
        pytest.param(
            '{"decision": "rewrite", "question": " Who runs? ", "answer": "A boy"}',
            Review("rewrite", "Who runs?", "A boy"),
            id="rewrite",
        ),
        pytest.param('{"decision": "rewrite", "question": "Who?"}', None, id="no-answer"),
        pytest.param(
            '{"decision": "rewrite", "question": "", "answer": "A boy"}', None, id="no-question"
        ),
        pytest.param('{"decision": "keep, rewrite or drop"}', None, id="menu"),
        pytest.param('{"decision": "maybe"}', None, id="off-the-menu"),
        pytest.param('{"decision": true}', None, id="no-text"),
        pytest.param('{"decision": "keep", "decision": "drop"}', None, id="twice"),
        pytest.param('{"decision": "keep"} {"decision": "drop"}', None, id="two-answers"),
        pytest.param('{"decision": "keep"} {"decision": "?"}', None, id="one-unclear"),
        pytest.param('{"decision": "keep"} {"decision": "keep"}', Review("keep"), id="restated"),
        pytest.param('{"pair": 1} {"decision": "keep"}', Review("keep"), id="another-object"),
        pytest.param('{"decision": "keep"', None, id="cut"),
        pytest.param("keep", None, id="no-json"),
        pytest.param("", None, id="empty"),
    ],
)
def test_reviews_state_one_decision(text: str, expected: Review | None) -> None:
    """With both texts where the pair is to be rewritten."""
    assert read_review(Reply(text, "stop")) == expected


@pytest.mark.parametrize("text", ["B", "Yes", '{"decision": "rewrite", "question": "Wh'])
def test_a_verdict_that_may_be_cut_is_none(text: str) -> None:
    """A reply that ended at its limit may go on with another word."""
    reply = Reply(text, "length")
    assert (read_letter(reply, FIVE), read_yes_no(reply), read_review(reply)) == (None, None, None)
