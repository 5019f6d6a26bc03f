"""Replies of real judges to CapQuiz's prompt, and what a careful person reads in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.request import Chain, Reply
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.capquiz import (
    UNKNOWN,
    Question,
    judge_question,
    outcome,
    read_choice,
)
from lmms_eval_captions.judges.verdict import QuizJudgement

OPTIONS = ("A cat", "A dog", "A cow", "The red ball", "Blue")
MENU = (*OPTIONS, UNKNOWN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("B", "B", id="as-asked"),
        pytest.param("F", "F", id="cannot-be-determined"),
        pytest.param("b", "B", id="lower-case"),
        pytest.param("(B)", "B", id="parentheses"),
        pytest.param("B.", "B", id="full-stop"),
        pytest.param("B)", "B", id="one-parenthesis"),
        pytest.param("**B**", "B", id="bold"),
        pytest.param("`B`", "B", id="code"),
        pytest.param("[B]", "B", id="brackets"),
        pytest.param('"B"', "B", id="quotes"),
        pytest.param("\\boxed{B}", "B", id="boxed"),
        pytest.param("Answer: B", "B", id="labelled"),
        pytest.param("**Answer:** B", "B", id="labelled-bold"),
        pytest.param("Option B", "B", id="option"),
        pytest.param("The answer is B", "B", id="stated"),
        pytest.param("The correct answer is (B).", "B", id="stated-in-parentheses"),
        pytest.param("The answer is: **B**", "B", id="stated-bold"),
        pytest.param("the answer is b.", "B", id="stated-lower-case"),
        pytest.param("B. A dog", "B", id="with-its-text"),
        pytest.param("(B) A dog", "B", id="with-its-text-parentheses"),
        pytest.param("b) a dog", "B", id="with-its-text-lower-case"),
        pytest.param("B: A dog", "B", id="with-its-text-colon"),
        pytest.param("B - A dog", "B", id="with-its-text-dash"),
        pytest.param("B. The dog", "B", id="with-nearly-its-text"),
        pytest.param("F. Cannot be determined", "F", id="unknown-with-its-text"),
        pytest.param("Answer: **B. A dog**", "B", id="labelled-with-its-text"),
        pytest.param(
            "The answer is B because A and C are wrong", "B", id="reason-with-other-letters"
        ),
        pytest.param("The answer is A because it says so", "A", id="a-with-a-reason"),
        pytest.param("Answer is B, not C.", "B", id="not-another"),
        pytest.param("B\n\nThe caption says that A is wrong.", "B", id="reason-below"),
        pytest.param("Final answer: B\nReason: A is wrong", "B", id="reason-on-a-second-line"),
        pytest.param("It speaks of a dog, so not A.\n\nB", "B", id="reason-above"),
        pytest.param("It speaks of a dog.\n\nAnswer: B", "B", id="reason-above-a-label"),
        pytest.param("The answer is A. Wait, the answer is C.", None, id="two-verdicts"),
        pytest.param("B\nOn reflection, the answer is C.", None, id="two-verdicts-in-lines"),
        pytest.param("<think>A? C? The answer is A.</think>B", "B", id="reasoning"),
        pytest.param("it is A.</think>\nB", "B", id="no-open-tag"),
        pytest.param("A dog", "B", id="text-alone"),
        pytest.param("the red ball.", "D", id="text-alone-other-case"),
        pytest.param("Cannot be determined.", "F", id="unknown-as-text"),
        pytest.param("G", None, id="off-the-menu"),
        pytest.param("Answer: G", None, id="labelled-off-the-menu"),
        pytest.param("2", None, id="number"),
        pytest.param("A or B", None, id="two-letters"),
        pytest.param("A, B", None, id="two-letters-comma"),
        pytest.param("A and B", None, id="two-letters-and"),
        pytest.param("A/B", None, id="two-letters-slash"),
        pytest.param("AB", None, id="two-letters-joined"),
        pytest.param("B) C)", None, id="two-letters-parentheses"),
        pytest.param("A. B. C.", None, id="three-letters"),
        pytest.param("The answer is A or B", None, id="stated-two"),
        pytest.param("The answer is either B or C", None, id="stated-either"),
        pytest.param("The answer is b or c", None, id="stated-two-lower-case"),
        pytest.param("Both B and C", None, id="both"),
        pytest.param("A. A dog", None, id="text-of-another-option"),
        pytest.param("Answer: A. A dog", None, id="stated-with-the-text-of-another-option"),
        pytest.param("The answer is B. Or: the answer is B or C", None, id="last-stated-two"),
        pytest.param("???", None, id="signs-alone"),
        pytest.param("A dog runs.", None, id="article"),
        pytest.param("A man runs in a park.", None, id="article-of-another-noun"),
        pytest.param("The answer is a dog", None, id="stated-article"),
        pytest.param("The answer is A dog", None, id="stated-article-upper-case"),
        pytest.param("The answer is not A but B", None, id="negated"),
        pytest.param("B is wrong", None, id="denied"),
        pytest.param("The answer is F-16", None, id="letter-in-a-name"),
        pytest.param("e.g. a dog", None, id="abbreviation"),
        pytest.param("I'm sorry, but I can't help with that.", None, id="refusal"),
        pytest.param("None of the above", None, id="none-of-them"),
        pytest.param("The answer is", None, id="cut"),
        pytest.param("<think>B", None, id="cut-while-reasoning"),
        pytest.param("", None, id="empty"),
        pytest.param(" \n", None, id="blank"),
    ],
)
def test_replies(text: str, expected: str | None) -> None:
    """A reply gives the one letter that it chooses, or nothing."""
    assert read_choice(Reply(text, "stop"), MENU) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("B", None, id="right-behind-the-letter"),
        pytest.param("The answer is B", None, id="right-behind-a-stated-letter"),
        pytest.param("B. The d", "B", id="inside-the-text"),
        pytest.param("The answer is B because", "B", id="inside-the-reason"),
    ],
)
def test_replies_that_were_cut_short(text: str, expected: str | None) -> None:
    """A cut reply is read only where something behind the letter shows that it was complete."""
    assert read_choice(Reply(text, "length"), MENU) == expected


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Whatever a judge says, reading it gives a letter on the menu or nothing."""
    assert read_choice(Reply(text), MENU) in (*"ABCDEF", None)


@given(
    st.sampled_from("ABCDEF"),
    st.sampled_from(["{}", "({})", "{}.", "**{}**", "Answer: {}", "The answer is {}."]),
)
def test_what_is_asked_for_is_read(letter: str, form: str) -> None:
    """Every letter is read back in every usual form."""
    assert read_choice(Reply(form.format(letter), "stop"), MENU) == letter


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        pytest.param("A dog", "true_positive", id="right"),
        pytest.param("A cat", "false_positive", id="wrong"),
        pytest.param(UNKNOWN, "false_negative", id="cannot-be-determined"),
    ],
)
def test_outcomes(choice: str, expected: str) -> None:
    """Right, wrong and undetermined are the three outcomes of section 3.4."""
    assert outcome(choice, "A dog") == expected


def _chain(caption: str, *, model: str = "judge", run: int = 0) -> Chain[QuizJudgement]:
    config = JudgeConfig(model=model)
    question = Question("Entity", "What is shown?", OPTIONS, "A dog")
    return lambda ask: judge_question(ask, question, caption, config=config, run=run)


def test_the_prompt_is_figure_8_filled_in(serve: ServerFactory, make_engine: EngineFactory) -> None:
    """The options keep their order, and the one added to them is the last."""
    server = serve()
    server.keep_bodies = True
    make_engine(server.url).submit([_chain("A dog barks.", run=2)]).result()
    body = server.bodies[0]
    assert (body["model"], body["temperature"], body["seed"]) == ("judge", 0.0, 2)
    assert [message["content"] for message in body["messages"]] == [
        "You are an intelligent video understanding assistant.\n"
        "Select the best answer to the following multiple-choice question based on the video "
        "caption. Respond with only the letter (A, B, C, D, E, or F) of the correct option.\n"
        "**Video Caption**\nA dog barks.\n"
        "**Question**\nWhat is shown?\n"
        "**Options**\nA. A cat\nB. A dog\nC. A cow\nD. The red ball\nE. Blue\n"
        "F. Cannot be determined\n"
        "Answer the question with A, B, C, D, E, or F."
    ]


@pytest.mark.parametrize(
    ("text", "choice", "verdict"),
    [
        pytest.param("B", "A dog", "true_positive", id="right"),
        pytest.param("C. A cow", "A cow", "false_positive", id="wrong"),
        pytest.param("F", UNKNOWN, "false_negative", id="undetermined"),
        pytest.param("A or B", None, None, id="unscored"),
    ],
)
def test_judgements(
    text: str,
    choice: str | None,
    verdict: str | None,
    serve: ServerFactory,
    make_engine: EngineFactory,
) -> None:
    """A letter becomes the option's text and its outcome; two letters are unscored."""
    server = serve()
    server.reply = lambda _prompt: text
    judgement = make_engine(server.url).submit([_chain("A dog.")]).result()[0]
    assert (judgement.choice, judgement.verdict, judgement.reply) == (choice, verdict, text)
    assert (judgement.reason is None) == (verdict is not None)


@pytest.mark.parametrize(
    "caption",
    [
        pytest.param("A {ball} {{options}} %s \\1 'quoted' \"twice\"", id="braces-and-quotes"),
        pytest.param("一个红色的球。 كرة حمراء ⚽ \u202eред", id="scripts"),
        pytest.param("word " * 20_000, id="20000-words"),
    ],
)
def test_captions_reach_the_judge_unchanged(
    caption: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Whatever a caption holds, the judge gets it as it is, between the prompt's words."""
    server = serve()
    server.keep_bodies = True
    make_engine(server.url).submit([_chain(caption)]).result()
    sent = server.bodies[0]["messages"][-1]["content"]
    assert f"**Video Caption**\n{caption}\n**Question**\n" in sent


def test_the_offline_stand_in_needs_no_server(make_engine: EngineFactory) -> None:
    """``lexical`` gives every outcome from the caption's words."""
    engine = make_engine("http://127.0.0.1:9/v1")
    captions = ["One dog.", "One cow.", "Nothing."]
    chains = [_chain(caption, model="lexical") for caption in captions]
    verdicts = [judgement.verdict for judgement in engine.submit(chains).result()]
    assert verdicts == ["true_positive", "false_positive", "false_negative"]
    assert engine.meter.n_calls == 0
