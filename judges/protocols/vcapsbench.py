"""VCapsBench: a yes-no question answered from the caption alone, by consensus of three requests.

Source: VCapsBench (arXiv 2505.23484), section 3.4 and section 4, "Experimental Setup". The judge
prompt is not printed there; ours is in ``prompts/vcapsbench_answer.yaml``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.endpoint.outcome import UNREADABLE, Ask, Asked
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.judge_request import request_of
from lmms_eval_captions.judges.protocols.vcapsbench_reading import read_answer
from lmms_eval_captions.judges.verdict import Agreement, AgreementJudgement, YesNo

if TYPE_CHECKING:
    from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig

N_ASKS: Final = 3
"""How often each question is asked where the judge's configuration does not say: the paper asks
three times, and the answer that most replies give counts. The released script asks once."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VCapsBench with its gold answer."""

    category: str
    question: str
    answer: YesNo


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> AgreementJudgement:
    """All requests for one question of one caption, sent together, and their consensus.

    Args:
        ask: How to reach the judge.
        question: Question and gold answer.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge.
        run: Judge run, >= 0; its requests have the seeds ``3 run`` to ``3 run + 2``. The first one
            is the same where it is the only one, so that more of them buy only what is missing.
    """
    seeds = range(N_ASKS * run, N_ASKS * run + (config.asks or N_ASKS))
    requests = [_request(question, caption, config=config, seed=seed) for seed in seeds]
    # Together, so that one batch answers all of them.
    asking: list[Awaitable[Asked[YesNo]]] = [ask(request, read_answer) for request in requests]
    asked = await asyncio.gather(*asking)
    answers = tuple(outcome.value for outcome in asked)
    predicted = consensus(answers)
    return AgreementJudgement(
        category=question.category,
        question=question.question,
        answer=question.answer,
        run=run,
        asks=answers,
        predicted_answer=predicted,
        verdict=None if predicted is None else agreement(predicted, question.answer),
        reply=_telling_reply(asked, predicted),
        reason=_reason(asked) if predicted is None else None,
        cached=all(outcome.cached for outcome in asked),
        usage=sum((outcome.usage for outcome in asked[1:]), asked[0].usage),
    )


def silent_judgement(question: Question, run: int) -> AgreementJudgement:
    """The judgement of a caption that says nothing: no question can be answered from it.

    >>> silent_judgement(Question("color", "Is the ball red?", "yes"), 0).verdict
    'unanswerable'
    """
    return AgreementJudgement(
        category=question.category,
        question=question.question,
        answer=question.answer,
        run=run,
        asks=(),
        predicted_answer="unanswerable",
        verdict="unanswerable",
    )


def consensus(answers: Sequence[YesNo | None]) -> YesNo | None:
    """The answer that more than half of the replies give: two of three, or the only one.

    Deviation: the paper does not say what counts where no two agree. Three different answers are
    ``unanswerable`` here: the caption does not settle the question. Where a reply could not be read
    and the others do not agree, the unread one could have decided, so there is no consensus.

    Args:
        answers: What each reply was read as; ``None`` could not be read.

    Returns:
        The consensus, ``None`` where the question is unscored.

    >>> consensus(["yes", None, "yes"]), consensus(["yes", "no", "unanswerable"])
    ('yes', 'unanswerable')
    >>> consensus(["yes", "no", None]) is None, consensus(["yes", None, None]) is None
    (True, True)
    >>> consensus(["no"]), consensus([None]) is None
    ('no', True)
    """
    for answer in answers:
        if answer is not None and 2 * answers.count(answer) > len(answers):
            return answer
    return None if None in answers else "unanswerable"


def agreement(predicted: YesNo, gold: YesNo) -> Agreement:
    """How an answer stands to the gold one (section 3.4).

    >>> agreement("no", "yes"), agreement("no", "no"), agreement("unanswerable", "yes")
    ('negative', 'positive', 'unanswerable')
    """
    if predicted == "unanswerable":
        return "unanswerable"
    return "positive" if predicted == gold else "negative"


def _request(question: Question, caption: str, *, config: JudgeConfig, seed: int) -> Request:
    return request_of(
        "vcapsbench_answer",
        config.prompts.load("vcapsbench_answer").render(
            caption=caption, question=question.question
        ),
        config=config,
        seed=seed,
        stand_in=partial(_lexical_answer, question.question, caption),
    )


def _lexical_answer(question: str, caption: str) -> str:
    share = lexical.recall(question, caption)
    answer = "Yes" if share >= 0.6 else "No" if share >= 0.3 else "Unanswerable"
    return f"{answer}@@@The caption holds {share:.0%} of the question's words."


def _telling_reply(asked: Sequence[Asked[YesNo]], predicted: YesNo | None) -> str:
    """The reply that shows best why: the first that gives the verdict, else the last unread one."""
    if predicted is None:
        return next(outcome.reply for outcome in reversed(asked) if outcome.value is None)
    agreeing = (outcome.reply for outcome in asked if outcome.value == predicted)
    return next(agreeing, asked[0].reply)


def _reason(asked: Sequence[Asked[YesNo]]) -> str:
    failed = [str(outcome.reason) for outcome in asked if outcome.value is None]
    if len(asked) == 1:
        return failed[0]
    # What a rerun asks again before what it does not: an unreadable reply is kept.
    telling = ([reason for reason in failed if UNREADABLE not in reason] or failed)[-1]
    return f"{len(failed)} of {len(asked)} asks failed and no two agree: {telling}"
