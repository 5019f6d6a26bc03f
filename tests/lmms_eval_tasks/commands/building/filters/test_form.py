"""The form of multiple-choice questions."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import (
    category_of,
    quiz_fault,
    same_words,
    without_letters,
)

GOOD: dict[str, Any] = {
    "category": "Entity",
    "question": "What does the woman lift out of the box?",
    "options": ["A vase", "A lamp", "A photo", "A clock", "A plate"],
    "answer": "A lamp",
}
CATEGORIES = ("Entity", "Causal Reasoning")


def test_a_good_question_has_no_fault() -> None:
    """Otherwise every other test here would pass for nothing."""
    assert quiz_fault(GOOD, CATEGORIES) is None


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        pytest.param({"question": " "}, "no question", id="blank"),
        pytest.param({"question": 3}, "no question", id="number"),
        pytest.param({"category": "Mood"}, "a category that was not asked for", id="category"),
        pytest.param({"options": "abcde"}, "options that are no texts", id="text"),
        pytest.param({"options": ["A lamp", 1, "b", "c", "d"]}, "no texts", id="number-option"),
        pytest.param({"options": ["A lamp", "", "b", "c", "d"]}, "no texts", id="empty-option"),
        pytest.param({"options": [*GOOD["options"], "f"]}, "not 5 options", id="six"),
        pytest.param({"options": ["A lamp", "b", "c", "d"]}, "not 5 options", id="four"),
        pytest.param({"options": ["A lamp", "a lamp.", "c", "d", "e"]}, "the same", id="equal"),
        pytest.param(
            {"options": ["A lamp", "cannot be determined", "c", "d", "e"]}, "the same", id="unknown"
        ),
        pytest.param(
            {"options": ["A lamp", "None of the above", "c", "d", "e"]}, "the others", id="none-of"
        ),
        pytest.param(
            {"options": ["A lamp", "All of these", "c", "d", "e"]}, "the others", id="all-of"
        ),
        pytest.param({"answer": "B"}, "the answer is none", id="letter"),
        pytest.param({"answer": "a lamp"}, "the answer is none", id="spelled-otherwise"),
        # Figure 6, "Forbidden Question Patterns", word for word.
        pytest.param(
            {"question": "Which of the following best describes the man?"}, "its options", id="best"
        ),
        pytest.param(
            {"question": "Which of these events happened last?"}, "its options", id="of-these"
        ),
        pytest.param({"question": "Which statement is false?"}, "its options", id="statement"),
        pytest.param(
            {"question": "What would have happened if the person had turned left?"},
            "did not happen",
            id="would-have",
        ),
        pytest.param(
            {"question": "What if the phone had not rung?"}, "did not happen", id="what-if"
        ),
    ],
)
def test_a_fault_is_found_and_named(changed: dict[str, Any], fault: str) -> None:
    """The reason is what is counted."""
    assert fault in str(quiz_fault({**GOOD, **changed}, CATEGORIES))


@pytest.mark.parametrize(
    "question",
    [
        # Figure 6, "Allowed Question Patterns", word for word.
        "What color is the car?",
        "How many people are in the room?",
        "What is the immediate result of the person flipping the switch?",
        "What is written on the sign?",
        "At 0:45, what is the woman doing?",
        "What is the person's primary goal?",
        "How would you describe the person's emotional state?",
        "What event is most likely being prepared for?",
        "What most likely happened just before this scene began?",
        "Which of the two cars stops first?",
        "What does the man say he would have to pay?",
        "Which hand does she use?",
        "What does the girl do after she had put the cup down?",
    ],
)
def test_questions_that_the_paper_allows_pass(question: str) -> None:
    """So do others that only look like what it forbids."""
    assert quiz_fault({**GOOD, "question": question}, CATEGORIES) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("entity", "Entity", id="case"),
        pytest.param(" Causal_Reasoning ", "Causal Reasoning", id="marks"),
        pytest.param("Causal", "Causal Reasoning", id="short"),
        pytest.param("Mood", "Mood", id="unknown"),
        pytest.param(None, None, id="none"),
    ],
)
def test_a_category_is_known_however_it_is_spelled(name: object, expected: object) -> None:
    """Models change case, blanks and marks."""
    assert category_of(name, CATEGORIES) == expected


def test_words_are_the_same_but_for_case_blanks_and_the_end() -> None:
    """Other words are others."""
    assert same_words("  A Red  car. ") == same_words("a red car")
    assert same_words("a red car") != same_words("a red cart")


@pytest.mark.parametrize(
    ("options", "answer", "expected"),
    [
        pytest.param(["A. a", "B. b", "C. c", "D. d", "E. e"], "C", "c", id="letter"),
        pytest.param(["A) a", "B) b", "C) c", "D) d", "E) e"], "C) c", "c", id="letter-and-text"),
        pytest.param(["(A) a", "(B) b", "(C) c", "(D) d", "(E) e"], "c", "c", id="text"),
        pytest.param(["A: a", "B: b", "C: c", "D: d", "E: e"], "F", "F", id="none-of-them"),
    ],
)
def test_letters_before_options_are_no_part_of_them(
    options: list[str], answer: str, expected: str
) -> None:
    """The answer is the option's text, however it was named."""
    made = without_letters({**GOOD, "options": options, "answer": answer})
    assert (made["options"], made["answer"]) == (list("abcde"), expected)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["A. a", "B. b", "C. c", "D. d", "e"], id="four-letters"),
        pytest.param(["B. b", "A. a", "C. c", "D. d", "E. e"], id="another-order"),
        pytest.param(["A. a", "B. b", "C. c", "D. d"], id="four-options"),
        pytest.param("A. a", id="text"),
    ],
)
def test_options_that_are_not_lettered_throughout_stay_as_they_are(options: object) -> None:
    """A letter may be part of an option."""
    assert without_letters({**GOOD, "options": options})["options"] == options
