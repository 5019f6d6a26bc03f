"""Which questions stay by what annotators said."""

from __future__ import annotations

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import Answer, text_digest
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CRITERIA
from lmms_eval_captions.lmms_eval_tasks.commands.building.registry import NAMES
from lmms_eval_captions.lmms_eval_tasks.commands.building.votes import (
    NO_ANSWER,
    NOBODY,
    fault_of,
    match,
)

QUIZ = CRITERIA["capquiz"]
ROW: dict[str, object] = {"id": "a/0", "question": "What?", "options": ["x", "y"], "answer": "x"}
SIGNS = {"y": "yes", "n": "no", "-": None}


def answers(said: str, *, row: dict[str, object] = ROW) -> list[Answer]:
    """What annotators said: a word for each criterion, a letter for each annotator."""
    return [
        Answer(
            annotator=f"person {place}",
            question_id=str(row["id"]),
            text_digest=text_digest(row),
            criterion=criterion.name,
            said=SIGNS[sign],  # type: ignore[arg-type] # one of three
        )
        for criterion, word in zip(QUIZ, said.split(), strict=True)
        for place, sign in enumerate(word)
        if sign != "."
    ]


@pytest.mark.parametrize(
    ("said", "fewest", "fault"),
    [
        pytest.param("yyy yyy yyy", 1, None, id="all say yes"),
        pytest.param("yyn yny nyy", 3, None, id="two of three by each criterion"),
        pytest.param("ynn yyy yyy", 1, QUIZ[0].dropped, id="one of three is too few"),
        pytest.param("yyy yn- yyy", 1, QUIZ[1].dropped, id="a tie drops"),
        pytest.param("y y n", 1, QUIZ[2].dropped, id="one person is enough to drop"),
        pytest.param("n y n", 1, QUIZ[0].dropped, id="the first criterion that fails is named"),
        pytest.param("y-- y-- y--", 1, None, id="who cannot tell does not count"),
        pytest.param("y-- yy- yyy", 2, "people: fewer than 2 annotators", id="too few could tell"),
        pytest.param("y.. n.. yyy", 3, "people: fewer than 3 annotators", id="one no is too few"),
        pytest.param("y-- nnn yyy", 3, QUIZ[1].dropped, id="enough say no by another criterion"),
        pytest.param("yyy --- yyy", 1, NO_ANSWER, id="nobody could tell by one"),
        pytest.param("yyy ... nnn", 1, QUIZ[2].dropped, id="a no is said before what is missing"),
        pytest.param("... ... ...", 1, NOBODY, id="nobody was asked"),
    ],
)
def test_most_must_say_yes_by_each_criterion(said: str, fewest: int, fault: str | None) -> None:
    """A strict majority of those who could tell keeps a question; else it says why it goes."""
    (votes,) = match([ROW], answers(said), QUIZ).votes
    assert fault_of(votes, QUIZ, fewest) == fault


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"question": "Who?"}, id="question"),
        pytest.param({"options": ["x", "z"]}, id="options"),
        pytest.param({"answer": "y"}, id="answer"),
    ],
)
def test_what_was_said_of_another_text_is_counted_and_not_used(changed: dict[str, object]) -> None:
    """A label holds for the text that it was given for."""
    matched = match([{**ROW, **changed}], answers("yyy yyy yyy"), QUIZ)
    assert matched.n_other_text == 9
    assert fault_of(matched.votes[0], QUIZ, 1) == NOBODY


def test_what_no_label_is_about_may_change() -> None:
    """Fields beside question, options and answer do not make a label another text's."""
    matched = match([{**ROW, "n_right": 3, "category": "action"}], answers("y y y"), QUIZ)
    assert (matched.n_other_text, matched.votes[0].people) == (0, {"person 0"})


def test_a_question_that_is_gone_is_counted() -> None:
    """Answers about a question that an earlier stage has dropped are left out."""
    matched = match([ROW], answers("y y y", row={**ROW, "id": "a/1"}), QUIZ)
    assert matched.n_other_question == 3
    assert matched.votes[0].n_asked == 0


def test_every_kind_that_is_built_has_criteria() -> None:
    """CapQuiz asks the three of its figure 10, the others relevance and correctness."""
    assert tuple(CRITERIA) == NAMES
    assert [criterion.asks for criterion in QUIZ] == [
        "Is the question answerable only using the video?",
        "Is there a clear answer, and are all other options incorrect?",
        "Is any incorrect option believable?",
    ]
    for kind in NAMES[1:]:
        names = [criterion.name for criterion in CRITERIA[kind]]
        assert names == ["visual relevance", "factual correctness"]
