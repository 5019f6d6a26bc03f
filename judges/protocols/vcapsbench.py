"""VCapsBench: a yes-no question answered from the caption alone, by consensus of three asks.

Source: VCapsBench (arXiv 2505.23484), section 3.4 and section 4, "Experimental Setup". The judge
prompt is not printed there; ours is in ``prompts/vcapsbench_answer.yaml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.endpoint.request import Request, request_of
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.vcapsbench_reading import read_answer
from lmms_eval_captions.judges.verdict import (
    UNREADABLE,
    Agreement,
    AgreementJudgement,
    Asked,
    YesNo,
)

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.engine import Ask
    from lmms_eval_captions.judges.judge_config import JudgeConfig

N_ASKS: Final = 3
"""How often each question is asked where the judge's configuration does not say: the paper asks
three times, and the answer that most asks give counts. The released script asks once."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VCapsBench with its gold answer."""

    category: str
    question: str
    answer: YesNo


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> AgreementJudgement:
    """Every ask for one question of one caption, and their consensus.

    Args:
        ask: How to reach the judge.
        question: Question and gold answer.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge.
        run: Judge run, >= 0; its asks are sent with the seeds ``3 run`` to ``3 run + 2``. The first
            ask is the same where there is only one, so that more asks buy only what is missing.
    """
    asked: list[Asked[YesNo]] = [
        await ask(
            _request(question, caption, config=config, seed=N_ASKS * run + index), read_answer
        )
        for index in range(config.asks or N_ASKS)
    ]
    answers = tuple(one.value for one in asked)
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
        cached=all(one.cached for one in asked),
        usage=sum((one.usage for one in asked[1:]), asked[0].usage),
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
    """The answer that more than half of the asks give: two of three, or the only one.

    Deviation: the paper does not say what counts where no two agree. Three different answers are
    ``unanswerable`` here: the caption does not settle the question. Where an ask could not be read
    and the others do not agree, the unread one could have decided, so there is no consensus.

    Args:
        answers: One an ask; ``None`` could not be read.

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
        return next(one.reply for one in reversed(asked) if one.value is None)
    return next((one.reply for one in asked if one.value == predicted), asked[0].reply)


def _reason(asked: Sequence[Asked[YesNo]]) -> str:
    failed = [str(one.reason) for one in asked if one.value is None]
    if len(asked) == 1:
        return failed[0]
    # What a rerun asks again before what it does not: an unreadable reply is kept.
    telling = ([reason for reason in failed if UNREADABLE not in reason] or failed)[-1]
    return f"{len(failed)} of {len(asked)} asks failed and no two agree: {telling}"
