"""Replies of judges to VidCapBench's prompts, and what a careful person reads in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED, EngineFactory, ServerFactory
from judge_server import vidcapbench_reply
from lmms_eval_captions.judges.endpoint.request import Chain, Reply
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.prompt import Prompts, read_yaml
from lmms_eval_captions.judges.protocols.vidcapbench import (
    Question,
    judge_question,
    read_correctness,
)
from lmms_eval_captions.judges.verdict import CorrectnessJudgement

PAPER = SHARED / "papers" / "000_278cce88e5c9a5a7.txt"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"score": 2, "analysis": "It fits."}', "correct", id="as-asked"),
        pytest.param('{"score": 1, "analysis": ""}', "partial", id="partial"),
        pytest.param('{"score": 0, "analysis": ""}', "neutral", id="neutral"),
        pytest.param('{"score": -1, "analysis": ""}', "wrong", id="wrong"),
        pytest.param("{'score': 2, 'analysis': 'fits'}", "correct", id="single-quotes"),
        pytest.param(
            "{'score': 0, 'analysis': \"it's not there\"}", "neutral", id="python-mixed-quotes"
        ),
        pytest.param('```json\n{"score": 1, "analysis": "a"}\n```', "partial", id="fenced"),
        pytest.param("```\n{'score': -1, 'analysis': 'a'}\n```", "wrong", id="fenced-python"),
        pytest.param('{"score": "2", "analysis": "a"}', "correct", id="score-as-text"),
        pytest.param('{"score": "-1", "analysis": "a"}', "wrong", id="negative-as-text"),
        pytest.param('{"score": 2.0, "analysis": "a"}', "correct", id="score-as-fraction"),
        pytest.param('{"score": "+1", "analysis": "a"}', "partial", id="plus-sign"),
        pytest.param('{"score": "Score: 1", "analysis": "a"}', "partial", id="labelled-text"),
        pytest.param('{"Score": 2, "Analysis": "a"}', "correct", id="capital-keys"),
        pytest.param('{"analysis": "a", "score": 0}', "neutral", id="analysis-first"),
        pytest.param('{\n  "score": 1,\n  "analysis": "a\nb"\n}', "partial", id="raw-newline"),
        pytest.param("{score: 2, analysis: it fits}", "correct", id="no-quotes"),
        pytest.param("{score: \u22121, analysis: no}", "wrong", id="unicode-minus"),
        pytest.param('{"score": 2, "analysis": "a",}', "correct", id="trailing-comma"),
        pytest.param('[{"score": 1, "analysis": "a"}]', "partial", id="list"),
        pytest.param('{"result": {"score": 2, "analysis": "a"}}', "correct", id="nested"),
        pytest.param(
            'Here is my evaluation: {"score": 0, "analysis": "a"} Hope it helps!',
            "neutral",
            id="prose-around",
        ),
        pytest.param(
            '{"score": 0, "analysis": "2 dogs, -1 cat; a score: 2 is too much, so is 1"}',
            "neutral",
            id="analysis-with-other-numbers",
        ),
        pytest.param(
            '{"score": 1, "analysis": "not {\\"score\\": 2} because"}',
            "partial",
            id="analysis-with-an-escaped-object",
        ),
        pytest.param(
            "{'score': 2, 'analysis': 'not {\"score\": 0} as it fits'}",
            "correct",
            id="python-analysis-with-an-object",
        ),
        pytest.param(
            '{"score": -1, "analysis": "It says "2 dogs" but there is 1"}',
            "wrong",
            id="unescaped-quotes",
        ),
        pytest.param(
            '{"analysis": "It says "2 dogs" there", "score": -1}',
            "wrong",
            id="unescaped-quotes-analysis-first",
        ),
        pytest.param(
            '{"score": 2, "analysis": "The predicted answer me', "correct", id="cut-in-the-analysis"
        ),
        pytest.param(
            '{"score": 1, "analysis": "a"} On reflection: {"score": 2, "analysis": "b"}',
            None,
            id="two-verdicts",
        ),
        pytest.param(
            'The form is {"score": score, "analysis": analysis}. {"score": 0, "analysis": "b"}',
            "neutral",
            id="form-repeated",
        ),
        pytest.param(
            '<think>{"score": 2}? No, 1.</think>{"score": -1, "analysis": "a"}',
            "wrong",
            id="reasoning-holds-another-verdict",
        ),
        pytest.param('2 or 1?</think>{"score": 1, "analysis": "a"}', "partial", id="no-open-tag"),
        pytest.param("Score: 2\nAnalysis: both dogs are named.", "correct", id="labelled-lines"),
        pytest.param("**Score**: -1\n**Analysis**: wrong colour", "wrong", id="markdown-label"),
        pytest.param(
            "- Score: 0, the predicted answer does not mention it.", "neutral", id="menu-line"
        ),
        pytest.param("score = 1", "partial", id="lower-case-label"),
        pytest.param("2", "correct", id="bare-number"),
        pytest.param(" -1.\n", "wrong", id="bare-negative"),
        pytest.param('{"score": 3, "analysis": "a"}', None, id="score-off-the-menu"),
        pytest.param('{"score": -2, "analysis": "a"}', None, id="below-the-menu"),
        pytest.param('{"score": 1.5, "analysis": "a"}', None, id="between-two-scores"),
        pytest.param('{"score": true, "analysis": "a"}', None, id="boolean"),
        pytest.param('{"score": null, "analysis": "a 2"}', None, id="null"),
        pytest.param('{"score": "high", "analysis": "2"}', None, id="word"),
        pytest.param('{"score": [2], "analysis": "a"}', None, id="list-as-score"),
        pytest.param('{"analysis": "it is a 2"}', None, id="no-score"),
        pytest.param('{"score": ', None, id="cut-before-the-score"),
        pytest.param('{"score": -', None, id="cut-after-the-sign"),
        pytest.param('{"score": 1', None, id="cut-inside-the-score"),
        pytest.param('{"analysis": "the score is 2 as', None, id="cut-analysis-first"),
        pytest.param("<think>a 2, surely", None, id="cut-while-reasoning"),
        pytest.param("Score: 80%", None, id="percentage"),
        pytest.param("Score: 2/5", None, id="other-scale"),
        pytest.param(
            "I wavered between Score: 1 and Score: 2.", None, id="prose-with-two-verdicts"
        ),
        pytest.param("{score: 1, analysis: a} or {score: 2, analysis: b}", None, id="two-broken"),
        pytest.param("Both mention 2 dogs, so I agree.", None, id="prose-with-a-number"),
        pytest.param("correct", None, id="word-alone"),
        pytest.param("I'm sorry, but I can't help with that.", None, id="refusal"),
        pytest.param("", None, id="empty"),
        pytest.param("{}", None, id="empty-object"),
        pytest.param("{{}}", None, id="unhashable"),
    ],
)
def test_grade_replies(text: str, expected: str | None) -> None:
    """A reply gives the verdict that its score field states, or nothing."""
    assert read_correctness(Reply(text, "stop")) == expected


def test_a_bare_number_that_was_cut_short_is_unreadable() -> None:
    """A reply that ended at max_tokens may have lost digits of its score."""
    assert read_correctness(Reply("Score: 1", "length")) is None


@given(st.text() | st.text(alphabet="{}[]\"':,-012score \n"))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Whatever a judge says, reading it gives a verdict on the menu or nothing."""
    assert read_correctness(Reply(text)) in ("correct", "partial", "neutral", "wrong", None)


@given(st.sampled_from([(2, "correct"), (1, "partial"), (0, "neutral"), (-1, "wrong")]), st.text())
def test_what_is_asked_for_is_read(pair: tuple[int, str], analysis: str) -> None:
    """The form that the prompt asks for is read back, whatever the analysis says."""
    analysis = analysis.replace("think", "")  # taken for reasoning, see strip_reasoning
    for fields in (
        {"score": pair[0], "analysis": analysis},
        {"analysis": analysis, "score": pair[0]},
    ):
        assert read_correctness(Reply(json.dumps(fields))) == pair[1]
        assert read_correctness(Reply(json.dumps(fields, ensure_ascii=False))) == pair[1]


def _words(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        *((f"Figure {n}:", name) for n, name in enumerate(read_yaml("vidcapbench_caption"), 6)),
        ("Figure 11:", "vidcapbench_answer"),
        ("Figure 12:", "vidcapbench_judge"),
    ],
)
def test_prompts_are_those_of_the_paper(figure: str, text: str) -> None:
    """Every prompt has the words that its figure prints, in that order and no others."""
    if not PAPER.is_file():
        pytest.skip(f"no text of the paper at {PAPER}")
    lines = PAPER.read_text(encoding="utf-8").splitlines()
    printed = lines[next(n for n, line in enumerate(lines) if line.startswith(figure)) - 1]
    heading = re.compile(
        r"(Free-form caption|MiraData format|DREAM-1K format|Vript format|Hunyuan format"
        r"|Prompts to answer\.|Prompts to judge\.) "
    )
    if text.startswith("vidcapbench_"):
        prompt = Prompts().load(text)
        slots = {name: f"{{{name}}}" for name in prompt.slots}
        ours = str(prompt.render(**slots)[0]["content"])
    else:
        ours = str(read_yaml("vidcapbench_caption")[text])
    assert _words(ours) == _words(heading.sub("", printed, count=1))


QUESTION = Question("What colour is the ball?", "red", "video aesthetics", "color")


def _chain(caption: str, *, model: str = "judge", run: int = 0) -> Chain[CorrectnessJudgement]:
    config = JudgeConfig(model=model)
    return lambda ask: judge_question(ask, QUESTION, caption, config=config, run=run)


@pytest.mark.parametrize(
    "caption",
    [
        pytest.param("A {ball} {{question}} %s \\1 'quoted' \"twice\"", id="braces-and-quotes"),
        pytest.param("一个红色的球。 كرة حمراء ⚽ \u202eред", id="scripts"),
        pytest.param("lone \ud800 surrogate", id="surrogate"),
    ],
)
def test_captions_reach_the_judge_unchanged(
    caption: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Whatever a caption holds, the judge gets it as it is, between the prompt's words."""
    server = serve()
    server.reply, server.keep_bodies = vidcapbench_reply, True
    judgement = make_engine(server.url).submit([_chain(caption)]).result()[0]
    assert judgement.verdict is not None
    sent = server.bodies[0]["messages"][0]["content"]
    assert f"\nDescription:\n{caption}\n\nQuestion:\nWhat colour is the ball?" in sent


def test_both_steps_are_asked_with_the_runs_seed(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The answer of the first step is what the second one grades, with the same seed."""
    server = serve()
    server.reply, server.keep_bodies = vidcapbench_reply, True
    judgement = make_engine(server.url).submit([_chain("A red ball.", run=2)]).result()[0]
    first, second = server.bodies
    assert {(b["model"], b["temperature"], b["seed"]) for b in (first, second)} == {
        ("judge", 0.0, 2)
    }
    asked = second["messages"][0]["content"]
    assert asked.endswith(
        "Question: What colour is the ball?\nCorrect Answer: red\n"
        f"Predicted Answer: {judgement.predicted_answer}\nYour Result:"
    )
    assert (judgement.run, judgement.usage.n_calls) == (2, 2)
    assert (judgement.dimension, judgement.sub_category) == ("video aesthetics", "color")


def test_a_reply_that_stays_unreadable_leaves_the_pair_unscored(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """No verdict is guessed from prose that holds a 2; the reply and the reason are kept."""
    server = serve()
    server.reply = lambda _: "There are 2 dogs."
    judgement = make_engine(server.url).submit([_chain("A red ball.")]).result()[0]
    assert (judgement.verdict, judgement.reply) == (None, "There are 2 dogs.")
    assert judgement.reason is not None
    assert "unreadable" in judgement.reason


def test_the_offline_stand_in_needs_no_server(make_engine: EngineFactory, tmp_path: Path) -> None:
    """``lexical`` answers and grades from the caption's words and stores nothing."""
    engine = make_engine("http://127.0.0.1:9/v1")
    captions = ["The ball is red. The sky is blue.", "A ball is green.", "A dog."]
    judgements = engine.submit([_chain(text, model="lexical") for text in captions]).result()
    assert [j.verdict for j in judgements] == ["correct", "wrong", "neutral"]
    assert judgements[0].predicted_answer == "The ball is red."
    assert engine.meter.n_calls == 0
    assert not (tmp_path / "replies").exists()
