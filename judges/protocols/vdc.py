"""VDC: answer a question from the caption alone, then match the answer with the gold one.

Source: AuroraCap (arXiv 2410.03051), section 3.2.1, appendices Q and R.
Deviation: the released script drops a video that scores 0 and a caption with any unreadable reply;
here an unreadable reply leaves its one question unscored.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges import lexical
from lmms_eval_captions.judges.request import Reply, Request, request_of
from lmms_eval_captions.judges.text import strip_reasoning
from lmms_eval_captions.judges.verdict import Asked, Match, MatchJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.config import JudgeConfig
    from lmms_eval_captions.judges.engine import Ask

_VERDICTS: Final[dict[str, Match]] = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_PRED: Final = re.compile(
    r"""['"]?\bpred['"]?\s*[:=]\s*['"]?(yes|no|true|false)\b""", re.IGNORECASE
)
_SCORE: Final = re.compile(
    r"""['"]?\bscore['"]?\s*[:=]\s*['"]?(-?\d+(?:\.\d+)?)(?![\d.]*\d)(?!\s*[%/])""",
    re.IGNORECASE,
)
_BARE: Final = re.compile(r"(yes|no)\W+(?:score\W+)?(\d(?:\.\d+)?)\W*", re.IGNORECASE)
_BRACES: Final = re.compile(r"\{[^{}]*\}")
_AS_ASKED: Final = re.compile(r"\{'pred': '(yes|no)', 'score': (\d+(?:\.\d+)?)\}")
"""The form that the prompt asks for. Read without ``ast.literal_eval``, which leaves ten objects
a call to the garbage collector."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VDC with its gold answer."""

    question: str
    answer: str


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

    Args:
        ask: How to reach the judge.
        question: Question and gold answer.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge.
        run: Judge run, sent as the seed, >= 0.
        matcher: Scores (gold answer, predicted answer) in place of the judge; no verdict then.
    """
    answered = await ask(_answer_request(question, caption, config=config, run=run), read_answer)
    if answered.value is None:
        reason = f"no answer from the caption: {answered.reason}"
        return _judgement(question, run, answered=answered, reason=reason)
    if matcher is not None:
        score = matcher(question.answer, answered.value)
        return _judgement(question, run, answered=answered, score=score)
    request = _match_request(question, answered.value, config=config, run=run)
    matched = await ask(request, read_match)
    verdict, score_ = matched.value or (None, None)
    return MatchJudgement(
        question=question.question,
        answer=question.answer,
        run=run,
        predicted_answer=answered.value,
        verdict=verdict,
        score=score_,
        reply=matched.reply,
        reason=matched.reason,
        cached=answered.cached and matched.cached,
        usage=answered.usage + matched.usage,
    )


def read_answer(reply: Reply) -> str | None:
    """The answer in a reply of the first step, ``None`` where there is none.

    >>> read_answer(Reply("<think>hm</think> A red ball. "))
    'A red ball.'
    """
    return strip_reasoning(reply.text) or None


def read_match(reply: Reply) -> tuple[Match, float] | None:
    """Verdict and score in [0, 5] of a reply of the second step, ``None`` where it cannot be read.

    The last complete pair wins. A score outside [0, 5] is unreadable.

    >>> read_match(Reply("{'pred': 'yes', 'score': 4.8}"))
    ('yes', 4.8)
    >>> read_match(Reply("I cannot judge this.")) is None
    True
    """
    text = strip_reasoning(reply.text)
    for block in reversed(_BRACES.findall(text)):
        pair = _pair_of_dictionary(block) or _pair(block)
        if pair is not None:
            return pair
    bare = _BARE.fullmatch(text.strip("`*'\" \n"))
    if bare:
        return _checked(bare[1], bare[2])
    # Outside braces a reply that was cut short could end inside a number.
    return None if reply.finish_reason == "length" or "{" in text else _pair(text)


def _pair_of_dictionary(text: str) -> tuple[Match, float] | None:
    """The pair of a well-formed dictionary, whatever its other values say."""
    as_asked = _AS_ASKED.fullmatch(text)
    if as_asked:
        return _checked(as_asked[1], as_asked[2])
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(value, dict) or not {"pred", "score"} <= set(value):
        return None
    verdict, score = str(value["pred"]).lower(), str(value["score"])
    if verdict not in _VERDICTS or not re.fullmatch(r"\d+(\.\d+)?", score):
        return None
    return _checked(verdict, score)


def _pair(text: str) -> tuple[Match, float] | None:
    preds, scores = _PRED.findall(text), _SCORE.findall(text)
    return _checked(preds[-1], scores[-1]) if preds and scores else None


def _checked(verdict: str, score: str) -> tuple[Match, float] | None:
    value = float(score)
    return (_VERDICTS[verdict.lower()], value) if 0.0 <= value <= 5.0 else None


def _answer_request(question: Question, caption: str, *, config: JudgeConfig, run: int) -> Request:
    return request_of(
        "vdc_answer",
        config.prompts.load("vdc_answer").render(caption=caption, question=question.question),
        config=config,
        seed=run,
        stand_in=partial(lexical.best_sentence, caption, question.question),
    )


def _match_request(question: Question, predicted: str, *, config: JudgeConfig, run: int) -> Request:
    messages = config.prompts.load("vdc_match").render(
        question=question.question, answer=question.answer, predicted_answer=predicted
    )
    return request_of(
        "vdc_match",
        messages,
        config=config,
        seed=run,
        stand_in=partial(_lexical_match, question.answer, predicted),
    )


def _lexical_match(answer: str, predicted: str) -> str:
    share = lexical.recall(answer, predicted)
    return str({"pred": "yes" if share >= 0.5 else "no", "score": round(5 * share)})


def _judgement(
    question: Question,
    run: int,
    *,
    answered: Asked[str],
    score: float | None = None,
    reason: str | None = None,
) -> MatchJudgement:
    """A judgement that ended with the first step."""
    return MatchJudgement(
        question=question.question,
        answer=question.answer,
        run=run,
        predicted_answer=answered.value,
        verdict=None,
        score=score,
        reply=answered.reply,
        reason=reason,
        cached=answered.cached,
        usage=answered.usage,
    )
