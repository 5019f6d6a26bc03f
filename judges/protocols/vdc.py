"""VDCscore (AuroraCap, section 3): an answer from the caption, then its match; and VDD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Message, Request
from lmms_eval_captions.judges.protocols.asking import (
    JudgeConfig,
    answer_request,
    object_schema,
    read_free_answer,
    recall,
    request_of,
)
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.verdict import Match, MatchJudgement, WholeJudgement


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VDC with its gold answer."""

    question: str
    answer: str
    category: str = ""


_SCHEMA: Final = object_schema(
    pred={"type": "string", "enum": ["yes", "no"]},
    score={"type": "integer", "enum": [0, 1, 2, 3, 4, 5]},
)


async def judge_question(
    ask: Ask,
    question: Question,
    caption: str,
    *,
    config: JudgeConfig,
    run: int,
    matcher: Callable[[str, str], float] | None = None,
) -> MatchJudgement:
    """Both steps for one question of one caption.

    A ``matcher`` scores the gold and the predicted answer in place of the judge, without a verdict.
    """
    request = answer_request("vdc_answer", question.question, caption, config=config, run=run)
    answered = await ask(request, read_free_answer)
    verdict: Match | None = None
    score: float | None = None
    if answered.value is None:
        outcome = answered.no_answer()
    elif matcher is not None:
        score = matcher(question.answer, answered.value)
        outcome = answered.outcome()
    else:
        gold, predicted = question.answer, answered.value
        messages = config.prompts.load("vdc_match").render(
            question=question.question, answer=gold, predicted_answer=predicted
        )
        request = _request("vdc_match", messages, gold, predicted, config=config, run=run)
        matched = await ask(request, read_match)
        verdict, score = matched.value or (None, None)
        outcome = matched.outcome(answered)
    return replace(
        silent_judgement(question, run),
        predicted_answer=answered.value,
        verdict=verdict,
        score=score,
        **outcome,
    )


def silent_judgement(
    question: Question, run: int, *, matcher: Callable[[str, str], float] | None = None
) -> MatchJudgement:
    """Judge an empty caption: it matches no answer, "no" and 0."""
    return MatchJudgement(
        question=question.question,
        answer=question.answer,
        run=run,
        predicted_answer=None,
        verdict="no" if matcher is None else None,
        score=0.0 if matcher is None else matcher(question.answer, ""),
    )


def _request(
    prompt: str, messages: list[Message], gold: str, text: str, *, config: JudgeConfig, run: int
) -> Request:
    stand_in = partial(_lexical_match, gold, text)
    return request_of(prompt, messages, config=config, seed=run, stand_in=stand_in, schema=_SCHEMA)


def _lexical_match(answer: str, predicted: str) -> str:
    share = recall(answer, predicted)
    return str({"pred": "yes" if share >= 0.5 else "no", "score": round(5 * share)})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The one question about a caption: whether it says what the reference says."""

    reference: str


async def judge_comparison(
    ask: Ask, question: Comparison, caption: str, *, config: JudgeConfig, run: int
) -> WholeJudgement:
    """Grade one caption."""
    messages = config.prompts.load("vdc_vdd").render(reference=question.reference, caption=caption)
    request = _request("vdc_vdd", messages, question.reference, caption, config=config, run=run)
    asked = await ask(request, read_match)
    verdict, score = asked.value or (None, None)
    silent = silent_description(question, run)
    return replace(silent, verdict=verdict, score=score, **asked.outcome())


def silent_description(question: Comparison, run: int) -> WholeJudgement:
    """Judge an empty caption: "no" and 0."""
    return WholeJudgement(reference=question.reference, run=run, verdict="no", score=0.0)
