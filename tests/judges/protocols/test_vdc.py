"""Replies of real judges to VDC's prompts, and what a careful person reads in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.request import Chain, Reply
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, read_free_answer
from lmms_eval_captions.judges.protocols.vdc import Question, judge_question
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.verdict import MatchJudgement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{'pred': 'yes', 'score': 5}", ("yes", 5.0), id="as-asked"),
        pytest.param('{"pred": "no", "score": 0}', ("no", 0.0), id="json"),
        pytest.param('```json\n{"pred": "yes", "score": 4}\n```', ("yes", 4.0), id="fenced"),
        pytest.param("```python\n{'pred': 'no', 'score': 1}\n```", ("no", 1.0), id="fenced-python"),
        pytest.param(
            "{'pred': 'yes', 'score': 4.8}", ("yes", 4.8), id="fraction-as-in-the-example"
        ),
        pytest.param("{'pred': 'yes', 'score': '4'}", ("yes", 4.0), id="score-as-text"),
        pytest.param("{'score': 2, 'pred': 'no'}", ("no", 2.0), id="other-order"),
        pytest.param("{'pred': 'YES', 'score': 5}", ("yes", 5.0), id="upper-case"),
        pytest.param("{'pred': True, 'score': 5}", ("yes", 5.0), id="python-boolean"),
        pytest.param('{"pred": false, "score": 1}', ("no", 1.0), id="json-boolean"),
        pytest.param("{pred: yes, score: 3}", ("yes", 3.0), id="no-quotes"),
        pytest.param("{'pred': 'yes', 'score': 5,}", ("yes", 5.0), id="trailing-comma"),
        pytest.param("{\n  'pred': 'no',\n  'score': 2\n}", ("no", 2.0), id="several-lines"),
        pytest.param(
            "Sure! Here it is: {'pred': 'no', 'score': 1}. Let me know!", ("no", 1.0), id="prose"
        ),
        pytest.param("Pred: yes\nScore: 4", ("yes", 4.0), id="labelled-lines"),
        pytest.param("yes, 4", ("yes", 4.0), id="bare-pair"),
        pytest.param("No. Score: 1.", ("no", 1.0), id="bare-with-label"),
        pytest.param(
            "<think>{'pred': 'no', 'score': 0}? No, they match.</think>{'pred': 'yes', 'score': 5}",
            ("yes", 5.0),
            id="reasoning-holds-another-verdict",
        ),
        pytest.param(
            "hm, they match.</think>{'pred': 'yes', 'score': 5}", ("yes", 5.0), id="no-open-tag"
        ),
        pytest.param(
            "{'pred': 'no', 'score': 1} Wait, on reflection: {'pred': 'yes', 'score': 4}",
            None,
            id="two-verdicts",
        ),
        pytest.param(
            "{'pred': 'yes', 'score': 4, 'reason': 'not no, score 0 would be too low'}",
            ("yes", 4.0),
            id="reason-with-other-labels",
        ),
        pytest.param(
            "{'pred': 'no', 'score': 1, 'reason': 'pred: yes and score: 5 would be wrong'}",
            ("no", 1.0),
            id="reason-with-another-pair",
        ),
        pytest.param("{'pred': 'yes', 'score': 7}", None, id="score-off-the-menu"),
        pytest.param("{'pred': 'yes', 'score': -1}", None, id="negative-score"),
        pytest.param("{'pred': 'yes', 'score': 80%}", None, id="percentage"),
        pytest.param("{'pred': 'partially', 'score': 3}", None, id="verdict-off-the-menu"),
        pytest.param("{'pred': 'yes'}", None, id="no-score"),
        pytest.param("{'score': 5}", None, id="no-verdict"),
        pytest.param("yes", None, id="verdict-alone"),
        pytest.param("5", None, id="score-alone"),
        pytest.param("{'pred': 'yes', 'score': ", None, id="cut-before-the-score"),
        pytest.param("{'pred': 'yes', 'score': 4", None, id="cut-inside-the-score"),
        pytest.param("{'pred': 'yes', 'sco", None, id="cut"),
        pytest.param("<think>they match, so yes and 5", None, id="cut-while-reasoning"),
        pytest.param("I'm sorry, but I can't help with that.", None, id="refusal"),
        pytest.param("I would say yes, this is correct in 3 of 5 respects.", None, id="prose-only"),
        pytest.param("", None, id="empty"),
        pytest.param("{}", None, id="empty-dictionary"),
        pytest.param("{'pred': 'yes', 'score': None}", None, id="score-none"),
    ],
)
def test_match_replies(text: str, expected: tuple[str, float] | None) -> None:
    """A reply gives the verdict and the score that it states, or nothing."""
    assert read_match(Reply(text, "stop")) == expected


def test_a_labelled_pair_that_was_cut_short_is_unreadable() -> None:
    """A reply that ended at max_tokens may have lost digits of its score."""
    assert read_match(Reply("pred: yes, score: 4", "length")) is None


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Whatever a judge says, reading it gives a verdict on the menu or nothing."""
    verdict = read_match(Reply(text))
    assert verdict is None or (verdict[0] in ("yes", "no") and 0 <= verdict[1] <= 5)


@given(st.sampled_from(["yes", "no"]), st.integers(0, 5))
def test_what_is_asked_for_is_read(verdict: str, score: int) -> None:
    """The form that the prompt asks for is read back."""
    assert read_match(Reply(str({"pred": verdict, "score": score}))) == (verdict, score)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(" A red ball.\n", "A red ball.", id="plain"),
        pytest.param("<think>a ball</think>\nRed.", "Red.", id="reasoning"),
        pytest.param("", None, id="empty"),
        pytest.param(" \n", None, id="blank"),
        pytest.param("<think>a ball that", None, id="cut-while-reasoning"),
    ],
)
def test_answer_replies(text: str, expected: str | None) -> None:
    """The answer is the reply without reasoning; an empty one is none."""
    assert read_free_answer(Reply(text)) == expected


def _chain(caption: str, *, model: str = "judge") -> Chain[MatchJudgement]:
    config = JudgeConfig(model=model)
    question = Question("What colour is the ball?", "red")
    return lambda ask: judge_question(ask, question, caption, config=config, run=0)


@pytest.mark.parametrize(
    "caption",
    [
        pytest.param("A {ball} {{question}} %s \\1 'quoted' \"twice\"", id="braces-and-quotes"),
        pytest.param("一个红色的球。 كرة حمراء ⚽ \u202eред", id="scripts"),
        pytest.param("word " * 20_000, id="20000-words"),
        pytest.param("lone \ud800 surrogate", id="surrogate"),
    ],
)
def test_captions_reach_the_judge_unchanged(
    caption: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Whatever a caption holds, the judge gets it as it is, between the prompt's words."""
    server = serve()
    server.keep_bodies = True
    judgement = make_engine(server.url).submit([_chain(caption)]).result()[0]
    assert judgement.verdict in ("yes", "no")
    sent = server.bodies[0]["messages"][1]["content"]
    assert f"\n\ndetailed description: {caption}\n\nquestion: What colour is the ball?\n\n" in sent


def test_both_steps_are_asked_with_the_papers_parameters(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The answer of the first step is what the second one matches."""
    server = serve()
    server.keep_bodies = True
    judgement = make_engine(server.url).submit([_chain("A red ball.")]).result()[0]
    first, second = server.bodies
    assert {(b["model"], b["temperature"], b["seed"]) for b in (first, second)} == {
        ("judge", 0.0, 0)
    }
    assert f"Predicted Answer: {judgement.predicted_answer}\n" in second["messages"][1]["content"]
    assert judgement.usage.n_calls == 2
    assert judgement.usage.output_tokens > 0


def test_the_offline_stand_in_needs_no_server(make_engine: EngineFactory, tmp_path: Path) -> None:
    """``lexical`` answers from the caption's words and stores nothing."""
    engine = make_engine("http://127.0.0.1:9/v1")
    chains = [
        _chain("The ball is red. The sky is blue.", model="lexical"),
        _chain("A dog.", model="lexical"),
    ]
    right, wrong = engine.submit(chains).result()
    assert (right.predicted_answer, right.verdict, right.score) == ("The ball is red.", "yes", 5.0)
    assert (wrong.verdict, wrong.score) == ("no", 0.0)
    assert engine.meter.n_calls == 0
    assert not (tmp_path / "replies").exists()
