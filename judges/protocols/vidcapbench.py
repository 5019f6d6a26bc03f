"""VidCapBench: answer a question from the caption alone, then grade the answer.

Source: VidCapBench, section 3.2 and appendix A.4 (figures 11 and 12).
Deviation: the released script looks for "2", then "-1", "1" and "0" anywhere in the reply, the
analysis included; here the score is read from the field that the prompt asks for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.free_answer import answer_request, read_free_answer
from lmms_eval_captions.judges.protocols.judge_request import request_of
from lmms_eval_captions.judges.protocols.vidcapbench_reading import read_correctness
from lmms_eval_captions.judges.verdict import Correctness, CorrectnessJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.outcome import Ask
    from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VidCapBench with its gold answer."""

    question: str
    answer: str
    dimension: str
    """Primary category, such as ``video motion``."""
    sub_category: str


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> CorrectnessJudgement:
    """Both steps for one question of one caption.

    Args:
        ask: How to reach the judge.
        question: Question, gold answer and categories.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge.
        run: Judge run, sent as the seed, >= 0.
    """
    request = answer_request(
        "vidcapbench_answer", question.question, caption, config=config, run=run
    )
    answered = await ask(request, read_free_answer)
    graded: Asked[Correctness] | None = None
    if answered.value is None:
        outcome = answered.no_answer()
    else:
        request = _grade_request(question, answered.value, config=config, run=run)
        graded = await ask(request, read_correctness)
        outcome = graded.outcome(answered)
    return CorrectnessJudgement(
        question=question.question,
        answer=question.answer,
        dimension=question.dimension,
        sub_category=question.sub_category,
        run=run,
        predicted_answer=answered.value,
        verdict=None if graded is None else graded.value,
        **outcome,
    )


def silent_judgement(question: Question, run: int) -> CorrectnessJudgement:
    """The judgement of a caption that says nothing: "does not mention the correct answer at all".

    >>> silent_judgement(Question("What colour?", "red", "video aesthetics", "color"), 0).verdict
    'neutral'
    """
    return CorrectnessJudgement(
        question=question.question,
        answer=question.answer,
        dimension=question.dimension,
        sub_category=question.sub_category,
        run=run,
        predicted_answer=None,
        verdict="neutral",
    )


def _grade_request(question: Question, predicted: str, *, config: JudgeConfig, run: int) -> Request:
    messages = config.prompts.load("vidcapbench_judge").render(
        question=question.question, answer=question.answer, prediction=predicted
    )
    return request_of(
        "vidcapbench_judge",
        messages,
        config=config,
        seed=run,
        stand_in=partial(_lexical_grade, question, predicted),
    )


def _lexical_grade(question: Question, predicted: str) -> str:
    share = lexical.recall(question.answer, predicted)
    # An answer on the question's topic that holds nothing of the gold one is wrong, else silent.
    on_topic = bool(lexical.content_words(question.question) & lexical.content_words(predicted))
    score = 2 if share >= 0.75 else 1 if share > 0 else -1 if on_topic else 0
    return json.dumps({"score": score, "analysis": f"{share:.0%} of the answer's words are there."})
