"""VCapsBench: a yes-no question answered from the caption alone, by consensus of three asks.

Source: VCapsBench (arXiv 2505.23484), section 3.4 and section 4, "Experimental Setup". The judge
prompt is not printed there; ours is in ``prompts/vcapsbench_answer.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges import lexical
from lmms_eval_captions.judges.request import Reply, Request, request_of
from lmms_eval_captions.judges.text import strip_reasoning
from lmms_eval_captions.judges.verdict import Agreement, AgreementJudgement, Asked, YesNo

if TYPE_CHECKING:
    from lmms_eval_captions.judges.config import JudgeConfig
    from lmms_eval_captions.judges.engine import Ask

N_ASKS: Final = 3
"""How often each question is asked where the judge's configuration does not say: the paper asks
three times, and the answer that most asks give counts. The released script asks once."""

_LABELS: Final[dict[str, YesNo]] = {"yes": "yes", "no": "no", "unanswerable": "unanswerable"}
# Bounded, as several of these stand side by side: no reply may take long to read.
_MARKUP: Final = r"[\s*_`'\"#>\[\](){}<-]{0,8}"
_LABEL: Final = (
    rf"{_MARKUP}(?:(?:the|my|final)\s+)*(?:answer{_MARKUP}(?:is|:|=){_MARKUP})?"
    rf"(?P<label>yes|no|unanswerable)\b"
)
_BEFORE_MARK: Final = re.compile(rf"^{_LABEL}(?P<rest>[^@\n]*)@@@", re.IGNORECASE | re.MULTILINE)
_STATED: Final = re.compile(
    rf"\banswer{_MARKUP}(?:is|:|=){_MARKUP}(?P<label>yes|no|unanswerable)\b(?=(?P<rest>[^\n]*))",
    re.IGNORECASE,
)
_AT_START: Final = re.compile(rf"{_LABEL}(?P<rest>[^\n]*)", re.IGNORECASE)
_CLEAR: Final = re.compile(r"[\s*_`'\"\])}]*(?:$|[.,;:!\u2013\u2014]|\s-)")
_ANOTHER: Final = re.compile(r"(?:yes|no|unanswerable)\s*(?:$|[.,;:!?])", re.IGNORECASE)


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


def read_answer(reply: Reply) -> YesNo | None:
    """The answer in a reply, ``None`` where there is none on the menu.

    The answer stands before ``@@@``, the last one where there are several; a reply without the mark
    is read where it states an answer or begins with one that punctuation sets off.

    >>> read_answer(Reply("No@@@The caption says yes to nothing of the kind."))
    'no'
    >>> read_answer(Reply("No information is given.")) is None
    True
    """
    text = strip_reasoning(reply.text)
    if "@@@" in text:
        found = list(_BEFORE_MARK.finditer(text))
    else:
        start = _AT_START.match(text)
        found = list(_STATED.finditer(text)) or ([start] if start else [])
    if not found or not _is_clear(found[-1]["rest"]) or _may_be_cut(reply, text, found[-1]):
        return None
    return _LABELS[found[-1]["label"].lower()]


def _is_clear(rest: str) -> bool:
    """Whether what follows a label on its line leaves the label as it is: no "yes or no"."""
    after = _CLEAR.match(rest)
    return after is not None and not _ANOTHER.match(rest[after.end() :].lstrip())


def _may_be_cut(reply: Reply, text: str, label: re.Match[str]) -> bool:
    """Whether a reply ended at max_tokens right behind its label, which could have gone on."""
    return reply.finish_reason == "length" and label.end("label") >= len(text.rstrip())


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
    failed = [one.reason for one in asked if one.value is None]
    if len(asked) == 1:
        return str(failed[0])
    return f"{len(failed)} of {len(asked)} asks failed and no two agree: {failed[-1]}"
