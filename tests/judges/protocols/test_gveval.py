"""Replies of judges to G-VEval's prompts, and what a careful person reads in them."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED, EngineFactory, ServerFactory
from lmms_eval_captions.judges.endpoint.request import Chain, Picture, Reply
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.gveval import ACCR, GVeval, Setting, read_scores
from lmms_eval_captions.judges.verdict import ScoresJudgement

_SETTINGS: tuple[Setting, ...] = ("ref_only", "ref_free", "combined")


def _accr(text: str, reason: str = "stop") -> list[float] | None:
    found = read_scores(Reply(text, reason))
    return None if found is None else [float(found[name].text) for name in ACCR]


_ASKED = (
    "The Accuracy score is α90α. The Completeness score is β70β. "
    "The Conciseness score is ψ100ψ. The Relevance score is δ0δ."
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_ASKED, id="as-asked"),
        pytest.param(re.sub("([αβψδ])", r" \1 ", _ASKED), id="spaces"),
        pytest.param(_ASKED.replace(". ", ".\n\n"), id="lines"),
        pytest.param(
            _ASKED.replace("α", "alpha").replace("β", "beta")
            .replace("ψ", "psi").replace("δ", "delta"), id="spelled-out"),
        pytest.param(
            _ASKED.replace("α", "\\alpha ").replace("β", "\\beta ")
            .replace("ψ", "\\psi ").replace("δ", "\\delta "), id="latex"),
        pytest.param(
            _ASKED.replace("α", "$\\alpha$").replace("β", "$\\beta$")
            .replace("ψ", "$\\psi$").replace("δ", "$\\delta$"), id="latex-formulas"),
        pytest.param(re.sub("([0-9]+)", r"{\1}", _ASKED), id="braces"),
        pytest.param(re.sub("([0-9]+)", r"\1/100", _ASKED), id="of-100"),
        pytest.param(re.sub("([αβψδ][0-9]+[αβψδ])", r"**\1**", _ASKED), id="bold"),
        pytest.param(_ASKED.replace("β", "ß").replace("δ", "∂"), id="look-alikes"),
        pytest.param(re.sub("[αβψδ]", "", _ASKED), id="no-markers"),
        pytest.param(re.sub("([0-9])[αβψδ]", r"\1", _ASKED), id="no-closing-markers"),
        pytest.param(
            "**Accuracy**: 90\n- Completeness: β70\nConciseness: 100/100\n**Relevance: 0**",
            id="lines-of-a-table"),
        pytest.param(
            "Accuracy: 3 of 4 dogs are seen. Completeness: 2 actions are missing.\n" + _ASKED,
            id="reasons-with-other-numbers"),
        pytest.param("α90α β70β ψ100ψ δ0δ", id="markers-alone"),
        pytest.param(f"<think>α1α β2β ψ3ψ δ4δ</think>\n{_ASKED}", id="reasoning"),
    ],
)  # fmt: skip
def test_accr_replies(text: str) -> None:
    """However the four scores are dressed, they are read."""
    assert _accr(text) == [90, 70, 100, 0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_ASKED.replace("The Relevance score is δ0δ.", ""), id="one-missing"),
        pytest.param(_ASKED.replace("δ0δ", "δhighδ"), id="one-in-words"),
        pytest.param(_ASKED.replace("β70β", "α70α"), id="marker-contradicts-its-sentence"),
        pytest.param(_ASKED.replace("70", "60-70"), id="range"),
        pytest.param(_ASKED.replace("70", "70 or 75"), id="two-numbers"),
        pytest.param(_ASKED.replace("70", "170"), id="above"),
        pytest.param(_ASKED.replace("70", "-7"), id="negative"),
        pytest.param(_ASKED.replace("70", "7/10"), id="another-scale"),
        pytest.param("α10α β10β ψ10ψ δ10δ\nAfter all: " + _ASKED, id="two-scores-each"),
        pytest.param("The final score is $85$.", id="one-score-for-all"),
        pytest.param("I cannot see any frames.", id="refusal"),
    ],
)
def test_accr_replies_that_cannot_be_read(text: str) -> None:
    assert _accr(text) is None


def test_a_reply_cut_before_its_last_score_is_unreadable() -> None:
    """Three scores are not four."""
    assert _accr(_ASKED[: _ASKED.index("δ")], "length") is None


@pytest.mark.parametrize("piece", ["$", "α", "\\", "{", "α 8 ", "Accuracy score is ", "\\alpha"])
def test_long_replies_of_little_sense_are_read_at_once(piece: str) -> None:
    """A judge that repeats itself to the end of its tokens holds nothing up."""
    text = piece * (20_000 // len(piece))
    started_s = time.monotonic()
    assert _accr(text) is None
    assert time.monotonic() - started_s < 2.0


@given(st.text(), st.sampled_from(["stop", "length"]))
def test_any_text_is_read_without_an_error(text: str, reason: str) -> None:
    """Whatever a judge says, reading it gives a score on the scale or nothing."""
    for value in _accr(text, reason) or []:
        assert 0 <= value <= 100


@given(st.lists(st.integers(0, 100), min_size=4, max_size=4))
def test_what_is_asked_for_is_read(scores: list[int]) -> None:
    """The form that the prompt asks for is read back."""
    marks = zip(
        "αβψδ", ("Accuracy", "Completeness", "Conciseness", "Relevance"), scores, strict=True
    )
    text = "..... ".join(f"The {name} score is {mark}{score}{mark}." for mark, name, score in marks)
    assert _accr(text) == scores


def test_positions_are_those_of_the_whole_reply() -> None:
    """A score's position counts the reasoning before it, as token positions do."""
    text = f"<think>50 perhaps</think>\n{_ASKED.replace('90', '85')}"
    found = read_scores(Reply(text))
    assert found is not None
    start = found["accuracy"].start
    assert start is not None
    assert text[start : start + 2] == "85"


def _words(text: str) -> str:
    for letter, name in zip("αβψδ", ("alpha", "beta", "psi", "delta"), strict=True):
        text = text.replace(letter, name)
    text = re.sub(r"\\text\{|@\w+", "", text)
    return re.sub(r"[\W_]+", "", text).lower()


@pytest.mark.parametrize("setting", _SETTINGS)
def test_prompts_are_the_papers(setting: Setting) -> None:
    """Every word of a prompt is in the paper's appendix B, in order."""
    paper = SHARED / "papers" / "002_12c73a71e1c9a3b4.txt"
    if not paper.is_file():
        pytest.skip(f"no paper at {paper}")
    sent = str(GVeval(setting).messages("{{Caption}}", ["{{Reference}}"])[0]["content"])
    printed = _words(paper.read_text(encoding="utf-8"))
    # One closing delta of the reference-free prompt is lost in the paper's text.
    parts = re.split(r"(?<=\{relevance_score\}\})δ\.", sent)
    assert all(_words(part) in printed for part in parts)
    assert ("{{Reference}}" in sent) == (setting != "ref_free")
    assert ("attached" in sent) == (setting != "ref_only")


def test_slots_of_scores_are_sent_as_printed() -> None:
    """The judge is shown the form of its reply in the braces of the paper."""
    sent = str(GVeval("ref_free").messages("{{score}} {{Reference}}", [])[0]["content"])
    assert "The Accuracy score is α{{accuracy_score}}α." in sent
    assert "Generated captions: {{score}} {{Reference}}\n" in sent
    text = str(GVeval("ref_only").messages("A dog.", ["a dog", "a cat"])[0]["content"])
    assert "Reference captions: 'a dog'; 'a cat'\n\nGenerated captions: A dog.\n" in text


def test_a_setting_without_what_it_needs_is_an_error() -> None:
    """References are not left out silently."""
    with pytest.raises(SettingsError, match="reference"):
        GVeval("combined").messages("A dog.", [])


def _chain(
    setting: Setting, *, model: str = "judge", fails: bool = False
) -> Chain[ScoresJudgement]:
    def picture() -> Picture:
        if fails:
            raise DataError("no video")
        return Picture(b"\xff\xd8jpeg", "image/jpeg")

    return lambda ask: GVeval(setting).judge(
        ask,
        "A dog runs.",
        references=["a dog is running"],
        picture=picture,
        config=JudgeConfig(model=model, temperature=1.0),
        run=0,
    )


def test_requests_hold_the_papers_parameters_and_the_picture(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Visual settings send one picture after the words, and all ask for log-probabilities."""
    server = serve()
    server.keep_bodies = True
    make_engine(server.url).submit([_chain("combined"), _chain("ref_only")]).result()
    seen, read = sorted(
        server.bodies, key=lambda body: isinstance(body["messages"][0]["content"], str)
    )
    parts = seen["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    url = "data:image/jpeg;base64,/9hqcGVn"
    assert parts[1]["image_url"] == {"url": url, "detail": "high"}
    assert {(b["temperature"], b["logprobs"], b["top_logprobs"]) for b in (seen, read)} == {
        (1.0, True, 10)
    }


@pytest.mark.parametrize("tokenizer", ["whole", "digits"])
def test_scores_are_distributions_where_there_are_logprobs(
    tokenizer: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Each score is spread over numbers that sum to 1, the written one the likeliest."""
    server = serve(logprobs=tokenizer)
    one = make_engine(server.url).submit([_chain("ref_only")]).result()[0]
    assert one.scoring == "logprobs"
    assert set(one.numbers) == set(one.distributions) == set(ACCR)
    for name, distribution in one.distributions.items():
        assert sum(share for _, share in distribution) == pytest.approx(1.0)
        assert max(distribution, key=lambda pair: pair[1])[0] == one.numbers[name]


def test_an_endpoint_that_ignores_logprobs_gives_plain_scores(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Without them a score is its number."""
    one = make_engine(serve().url).submit([_chain("ref_only")]).result()[0]
    assert one.scoring == "plain"
    assert one.distributions == {name: ((one.numbers[name], 1.0),) for name in ACCR}


def test_an_endpoint_that_refuses_logprobs_is_asked_without(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """One refusal is enough for a model, it is logged, and a second run sends nothing."""
    server = serve(logprobs="refuse")
    engine = make_engine(server.url, concurrency=1)
    judged = engine.submit([_chain("ref_only"), _chain("ref_free"), _chain("combined")]).result()
    assert [one.scoring for one in judged] == ["plain"] * 3
    assert (server.counts.n_requests, server.counts.n_answered) == (4, 3)
    assert sum("not expectations" in line for line in logged) == 1
    engine.close()
    again = make_engine(server.url).submit([_chain("ref_only"), _chain("combined")]).result()
    assert [one.numbers for one in again] == [judged[0].numbers, judged[2].numbers]
    assert server.counts.n_requests == 4


def test_stored_replies_give_the_same_distributions(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A rerun reads from disk what the first run read from the wire."""
    server = serve(logprobs="digits")
    first_engine = make_engine(server.url)
    first = first_engine.submit([_chain("combined")]).result()[0]
    first_engine.close()
    second = make_engine(server.url).submit([_chain("combined")]).result()[0]
    assert (second.distributions, second.cached) == (first.distributions, True)
    assert server.counts.n_requests == 1


def test_a_missing_picture_is_an_error_and_no_score(make_engine: EngineFactory) -> None:
    """The caption's future holds the reason."""
    future = make_engine("http://127.0.0.1:9/v1").submit([_chain("ref_free", fails=True)])
    with pytest.raises(DataError, match="no video"):
        future.result()


@pytest.mark.parametrize("setting", _SETTINGS)
def test_the_offline_stand_in_answers_the_protocol(
    setting: Setting, make_engine: EngineFactory, tmp_path: Path
) -> None:
    """``lexical`` scores every setting without a server, plainly."""
    chain: Chain[ScoresJudgement] = lambda ask: GVeval(setting).judge(  # noqa: E731
        ask, "a dog runs", references=["a dog runs"],
        picture=lambda: Picture(b"", "image/png"),
        config=JudgeConfig(model="lexical"), run=0,
    )  # fmt: skip
    one = make_engine("http://127.0.0.1:9/v1").submit([chain]).result()[0]
    assert (set(one.numbers), one.scoring) == (set(ACCR), "plain")
    assert all(0 <= value <= 100 for value in one.numbers.values())
    assert not (tmp_path / "replies").exists()
