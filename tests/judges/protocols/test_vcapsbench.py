"""Replies of real judges to the VCapsBench prompt, and the consensus of three."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EngineFactory, ServerFactory
from judge_server import Say
from lmms_eval_captions.judges.endpoint.request import Chain, Reply
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.vcapsbench import (
    N_ASKS,
    Question,
    agreement,
    consensus,
    judge_question,
    read_answer,
)
from lmms_eval_captions.judges.verdict import AgreementJudgement, YesNo
from told_judge import RESAMPLE_SEED, attempt_of

answers = st.sampled_from(["yes", "no", "unanswerable", None])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Yes@@@The caption says so.", "yes", id="as-asked"),
        pytest.param("No@@@The car is blue.", "no", id="no"),
        pytest.param("Unanswerable@@@No word of it.", "unanswerable", id="unanswerable"),
        pytest.param("no@@@x", "no", id="lower-case"),
        pytest.param("UNANSWERABLE@@@x", "unanswerable", id="upper-case"),
        pytest.param("**Yes**@@@It does.", "yes", id="bold"),
        pytest.param("**Yes@@@**It does.", "yes", id="bold-around-the-mark"),
        pytest.param("Answer: Yes@@@It does.", "yes", id="labelled"),
        pytest.param("[Yes]@@@[It does.]", "yes", id="brackets"),
        pytest.param('"Yes"@@@It does.', "yes", id="quotes"),
        pytest.param("Yes @@@ It does.", "yes", id="spaces"),
        pytest.param("Yes.@@@It does.", "yes", id="full-stop"),
        pytest.param("Yes, it does.@@@It says so.", "yes", id="clause-before-the-mark"),
        pytest.param("```\nYes@@@It does.\n```", "yes", id="fenced"),
        pytest.param("- No@@@It does not.", "no", id="bullet"),
        pytest.param("Yes@@@", "yes", id="no-analysis"),
        pytest.param("Yes@@@No, unanswerable, No@", "yes", id="analysis-holds-other-labels"),
        pytest.param("No@@@The answer is yes in the video.", "no", id="analysis-states-another"),
        pytest.param("Answer@@@Analysis\nYes@@@It does.", "yes", id="template-repeated-first"),
        pytest.param("No@@@It is red.\nWait.\nYes@@@It is.", None, id="two-verdicts"),
        pytest.param("<think>no@@@ or yes?</think>Yes@@@It does.", "yes", id="reasoning"),
        pytest.param("so yes.</think>No@@@It does not.", "no", id="no-open-tag"),
        pytest.param("Yes", "yes", id="label-alone"),
        pytest.param("no.", "no", id="label-and-full-stop"),
        pytest.param("Yes, the caption says no such thing is absent.", "yes", id="no-mark-comma"),
        pytest.param("No. The caption says yes only of the dog.", "no", id="no-mark-full-stop"),
        pytest.param("Unanswerable - no word of it", "unanswerable", id="no-mark-dash"),
        pytest.param("Yes\n\nThe caption says so.", "yes", id="no-mark-lines"),
        pytest.param("The answer is yes.", "yes", id="no-mark-stated"),
        pytest.param("Answer: No\nAnalysis: yes is wrong", "no", id="no-mark-labelled"),
        pytest.param("The answer is no, wait, the answer is yes.", None, id="no-mark-two-stated"),
        pytest.param("Yes it is so@@@It does.", None, id="label-in-a-sentence"),
        pytest.param("No information is given@@@x", None, id="no-as-a-determiner"),
        pytest.param("No information is given.", None, id="no-as-a-determiner-no-mark"),
        pytest.param("Not mentioned@@@x", None, id="off-the-menu"),
        pytest.param("Maybe@@@yes", None, id="maybe"),
        pytest.param("Nope@@@x", None, id="nope"),
        pytest.param("Yesterday@@@x", None, id="yesterday"),
        pytest.param("Yes or no@@@x", None, id="two-labels"),
        pytest.param("Yes/No@@@x", None, id="two-labels-slash"),
        pytest.param("Yes, no", None, id="two-labels-no-mark"),
        pytest.param("@@@Yes", None, id="nothing-before-the-mark"),
        pytest.param("Answer@@@Analysis", None, id="template-alone"),
        pytest.param("The answer is not yes", None, id="negated"),
        pytest.param("I'm sorry, but I can't help with that.", None, id="refusal"),
        pytest.param("", None, id="empty"),
        pytest.param(" \n", None, id="blank"),
        pytest.param("Unansw", None, id="cut-inside-the-label"),
        pytest.param("<think>yes@@@It does", None, id="cut-while-reasoning"),
    ],
)
def test_replies(text: str, expected: YesNo | None) -> None:
    """A reply gives the answer that it states, or nothing."""
    assert read_answer(Reply(text, "stop")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Yes", None, id="right-behind-the-label"),
        pytest.param("The answer is no", None, id="right-behind-a-stated-label"),
        pytest.param("Yes@@@The capt", "yes", id="inside-the-analysis"),
        pytest.param("Yes, the capt", "yes", id="inside-a-reason-without-the-mark"),
    ],
)
def test_replies_that_were_cut_short(text: str, expected: YesNo | None) -> None:
    """A cut reply is read only where something behind the label shows that it was complete."""
    assert read_answer(Reply(text, "length")) == expected


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Whatever a judge says, reading it gives an answer on the menu or nothing."""
    assert read_answer(Reply(text)) in ("yes", "no", "unanswerable", None)


@given(st.sampled_from(["Yes", "No", "Unanswerable"]), st.text())
def test_what_is_asked_for_is_read(answer: str, analysis: str) -> None:
    """The form that the prompt asks for is read back, whatever the analysis says."""
    analysis = analysis.replace("@", "").replace("think", "")
    assert read_answer(Reply(f"{answer}@@@{analysis}")) == answer.lower()


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        pytest.param(("yes", "yes", "yes"), "yes", id="unanimous"),
        pytest.param(("yes", "no", "no"), "no", id="majority"),
        pytest.param(("unanswerable", "yes", "unanswerable"), "unanswerable", id="unanswerable"),
        pytest.param(("yes", "no", "unanswerable"), "unanswerable", id="all-differ"),
        pytest.param(("no", None, "no"), "no", id="two-agree-one-unread"),
        pytest.param(("yes", "no", None), None, id="two-differ-one-unread"),
        pytest.param(("yes", "unanswerable", None), None, id="two-differ-one-unread-other"),
        pytest.param((None, "yes", None), None, id="one-read"),
        pytest.param((None, None, None), None, id="none-read"),
    ],
)
def test_consensus(asks: tuple[YesNo | None, ...], expected: YesNo | None) -> None:
    """Two that agree decide; where they do not, an unread ask leaves the question unscored."""
    assert consensus(asks) == expected


@given(st.lists(answers, min_size=N_ASKS, max_size=N_ASKS))
def test_an_unread_ask_never_decides(asks: list[YesNo | None]) -> None:
    verdict = consensus(asks)
    if verdict is not None:
        every: list[YesNo] = ["yes", "no", "unanswerable"]
        options = [[ask] if ask else every for ask in asks]
        assert {consensus(full) for full in itertools.product(*options)} == {verdict}


@given(answers.filter(bool), st.sampled_from(["yes", "no"]))
def test_agreement_with_the_gold_answer(predicted: YesNo, gold: YesNo) -> None:
    """Positive is the gold answer, negative the other one, unanswerable stays itself."""
    verdict = agreement(predicted, gold)
    assert (verdict == "positive") == (predicted == gold)
    assert (verdict == "unanswerable") == (predicted == "unanswerable")


def _chain(
    caption: str, *, model: str = "judge", run: int = 0, asks: int | None = None
) -> Chain[AgreementJudgement]:
    config = JudgeConfig(model=model, temperature=1.0, asks=asks)
    question = Question("color", "Is the ball red?", "yes")
    return lambda ask: judge_question(ask, question, caption, config=config, run=run)


def _says(*texts: str | Sequence[str]) -> Callable[[dict[str, Any]], Say]:
    """A judge that says a text to each request, or one after the other to its fresh samples."""

    def say(payload: dict[str, Any]) -> Say:
        text = texts[payload["seed"] % RESAMPLE_SEED]
        return Say(text if isinstance(text, str) else text[attempt_of(payload)])

    return say


@pytest.mark.parametrize(
    ("texts", "verdict", "reply"),
    [
        pytest.param(["Yes@@@a", "No@@@b", "Yes@@@c"], "positive", "Yes@@@a", id="majority"),
        pytest.param(["Yes@@@a", "No@@@b", "No@@@c"], "negative", "No@@@b", id="against"),
        pytest.param(
            ["Yes@@@a", "No@@@b", "Unanswerable@@@c"], "unanswerable", "Unanswerable@@@c", id="none"
        ),
        pytest.param(["????", "No@@@b", "No@@@c"], "negative", "No@@@b", id="unread"),
    ],
)
def test_three_asks_give_one_verdict(
    texts: Sequence[str | Sequence[str]],
    verdict: str,
    reply: str,
    serve: ServerFactory,
    make_engine: EngineFactory,
) -> None:
    """The verdict is the consensus of three replies, and the reply shown is one that gave it."""
    server = serve()
    server.script = _says(*texts)
    judgement = make_engine(server.url).submit([_chain("A red ball.")]).result()[0]
    assert (judgement.verdict, judgement.reply, judgement.reason) == (verdict, reply, None)
    assert len(judgement.asks) == N_ASKS
    assert judgement.usage.n_calls == N_ASKS + 3 * (texts[0] == "????")


def test_no_consensus_with_an_unread_ask_is_unscored(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Two different answers and one that cannot be read, after four tries, give no verdict."""
    server = serve()
    server.script = _says("Yes@@@a", "No@@@b", ["?", "??", "???", "????"])
    judgement = make_engine(server.url).submit([_chain("A red ball.")]).result()[0]
    assert judgement.verdict is None
    assert judgement.asks == ("yes", "no", None)
    assert judgement.reason == (
        "1 of 3 asks failed and no two agree: unreadable reply, asked 4 times"
    )
    assert judgement.reply == "????"


def test_seeds_differ_between_asks_and_runs(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Two runs of three requests are six different requests with the configured temperature."""
    server = serve()
    server.keep_bodies = True
    make_engine(server.url).submit([_chain("A ball.", run=0), _chain("A ball.", run=1)]).result()
    assert sorted(body["seed"] for body in server.bodies) == [0, 1, 2, 3, 4, 5]
    assert {body["temperature"] for body in server.bodies} == {1.0}


@pytest.mark.parametrize(
    "caption",
    [
        pytest.param("A {ball} {{question}} %s \\1 'quoted' \"twice\" @@@", id="marks"),
        pytest.param("一个红色的球。 كرة حمراء ⚽ \u202eред", id="scripts"),
        pytest.param("word " * 20_000, id="20000-words"),
    ],
)
def test_captions_reach_the_judge_unchanged(
    caption: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Whatever a caption holds, the judge gets it as it is, before the question."""
    server = serve()
    server.keep_bodies = True
    make_engine(server.url).submit([_chain(caption)]).result()
    sent = server.bodies[0]["messages"][-1]["content"]
    assert sent.endswith(f"\n\nCaption: {caption}\n\nQuestion: Is the ball red?")


def test_the_offline_stand_in_needs_no_server(make_engine: EngineFactory) -> None:
    """``lexical`` gives every verdict from the caption's words."""
    engine = make_engine("http://127.0.0.1:9/v1")
    captions = ["The ball is red.", "The ball is blue.", "A dog."]
    chains = [_chain(caption, model="lexical") for caption in captions]
    verdicts = [judgement.verdict for judgement in engine.submit(chains).result()]
    assert verdicts == ["positive", "negative", "unanswerable"]
    assert engine.meter.n_calls == 0
