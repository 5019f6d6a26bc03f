"""VidCapBench: answer a question from the caption alone, then grade the answer.

Source: VidCapBench, section 3.2 and appendix A.4 (figures 11 and 12).
Deviation: the released script looks for "2", then "-1", "1" and "0" anywhere in the reply, the
analysis included; here the score is read from the field that the prompt asks for.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges import lexical
from lmms_eval_captions.judges.request import Reply, Request, request_of
from lmms_eval_captions.judges.text import strip_reasoning
from lmms_eval_captions.judges.verdict import Asked, Correctness, CorrectnessJudgement, Usage

if TYPE_CHECKING:
    from lmms_eval_captions.judges.config import JudgeConfig
    from lmms_eval_captions.judges.engine import Ask

_VERDICTS: Final[dict[int, Correctness]] = {2: "correct", 1: "partial", 0: "neutral", -1: "wrong"}
_NUMBER: Final = r"['\"]?\s*([-+\u2212\u2013]?\d+(?:\.\d+)?)\s*['\"]?"
_FIRST_FIELD: Final = re.compile(rf"\{{\s*['\"]?score['\"]?\s*[:=]\s*{_NUMBER}\s*[,}}]", re.I)
_LAST_FIELD: Final = re.compile(rf"[,\n]\s*['\"]?score['\"]?\s*[:=]\s*{_NUMBER}\s*,?\s*\}}", re.I)
_LABEL: Final = re.compile(
    rf"\bscore\b[*'\"`]*\s*[:=]\s*[*`]*{_NUMBER}(?![\d.]*\d)(?!\s*[%/])", re.I
)
_ONLY_NUMBER: Final = re.compile(rf"\s*(?:score\s*[:=]?\s*)?{_NUMBER}\s*", re.I)
_MOST_ENDS: Final = 8
"""Closing braces that are tried for one opening brace."""


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
    answered = await ask(_answer_request(question, caption, config=config, run=run), read_answer)
    if answered.value is None:
        graded = Asked[Correctness](
            None,
            answered.reply,
            f"no answer from the caption: {answered.reason}",
            cached=answered.cached,
            usage=Usage(),
        )
    else:
        request = _grade_request(question, answered.value, config=config, run=run)
        graded = await ask(request, read_correctness)
    return CorrectnessJudgement(
        question=question.question,
        answer=question.answer,
        dimension=question.dimension,
        sub_category=question.sub_category,
        run=run,
        predicted_answer=answered.value,
        verdict=graded.value,
        reply=graded.reply,
        reason=graded.reason,
        cached=answered.cached and graded.cached,
        usage=answered.usage + graded.usage,
    )


def read_answer(reply: Reply) -> str | None:
    """The answer in a reply of the first step, ``None`` where there is none.

    >>> read_answer(Reply("<think>hm</think> A red ball. "))
    'A red ball.'
    """
    return strip_reasoning(reply.text) or None


def read_correctness(reply: Reply) -> Correctness | None:
    """Verdict of a reply of the second step, ``None`` where it cannot be read.

    Of several whole objects the last one with a score on the menu counts. Where there is none, a
    score is read from a broken or cut object, or from a label, if the reply states no other one.

    >>> read_correctness(Reply('{"score": -1, "analysis": "It is 2, not 1."}'))
    'wrong'
    >>> read_correctness(Reply("I cannot judge this.")) is None
    True
    """
    text = strip_reasoning(reply.text)
    whole, broken = _objects(text)
    if whole and not broken:
        return next((verdict for verdict in map(_verdict, reversed(whole)) if verdict), None)
    stated: list[object] = [*whole, *broken]
    if not stated and "{" in text:
        stated = list(_LAST_FIELD.findall(text))
    elif not stated:
        bare = _ONLY_NUMBER.fullmatch(text.strip("`*'\". \n"))
        # A number at the end of a reply that was cut short may have lost digits.
        cut = reply.finish_reason == "length" and text[-1:].isdigit()
        stated = [] if cut else [bare[1]] if bare else list(_LABEL.findall(text))
    verdicts = {_verdict(value) for value in stated}
    return verdicts.pop() if len(verdicts) == 1 else None


def _objects(text: str) -> tuple[list[object], list[object]]:
    """Score fields of the outermost objects: of whole ones, and of those that cannot be parsed."""
    whole: list[object] = []
    broken: list[object] = []
    start = text.find("{")
    while start >= 0:
        value, end = _parse(text, start)
        if value is not None:
            whole += _scores(value)
        else:
            first = _FIRST_FIELD.match(text, start)
            broken += [first[1]] if first else []
        start = text.find("{", end)
    return whole, broken


def _parse(text: str, start: int) -> tuple[dict[object, object] | None, int]:
    """The object that begins at a position, as JSON or Python, and where to go on."""
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    else:
        return value, end
    end = start
    for _ in range(_MOST_ENDS):
        end = text.find("}", end) + 1
        if not end:
            break
        try:
            value = ast.literal_eval(text[start:end])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        return (value, end) if isinstance(value, dict) else (None, end)
    return None, start + 1


def _scores(value: dict[object, object]) -> list[object]:
    """The score of an object, or those of the objects right in it."""
    inner = [item for item in value.values() if isinstance(item, dict)]
    return _own_scores(value) or [score for item in inner for score in _own_scores(item)]


def _own_scores(value: dict[object, object]) -> list[object]:
    return [item for key, item in value.items() if str(key).strip().lower() == "score"]


def _verdict(value: object) -> Correctness | None:
    """A score as a verdict, ``None`` where it is not on the menu."""
    if isinstance(value, str):
        found = _ONLY_NUMBER.fullmatch(value)
        value = float(re.sub("[\u2212\u2013]", "-", found[1])) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _VERDICTS.get(int(value)) if value in _VERDICTS else None


def _answer_request(question: Question, caption: str, *, config: JudgeConfig, run: int) -> Request:
    prompt = config.prompts.load("vidcapbench_answer")
    return request_of(
        "vidcapbench_answer",
        prompt.render(caption=caption, question=question.question),
        config=config,
        seed=run,
        stand_in=partial(lexical.best_sentence, caption, question.question),
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
