"""VidCapBench: an answer from the caption, then its grade."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Reply
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import (
    JudgeConfig,
    answer_request,
    content_words,
    object_schema,
    read_free_answer,
    recall,
    request_of,
)
from lmms_eval_captions.judges.protocols.reading import GREATER, NUMBER, SIGNS, UNCLEAR, Unclear
from lmms_eval_captions.judges.verdict import Correctness, CorrectnessJudgement

_VERDICTS: Final[dict[float, Correctness]] = {2: "correct", 1: "partial", 0: "neutral", -1: "wrong"}
_RESULT: Final = re.compile(
    rf"^[ \t*_#]{{0,8}}your\s(?:result|answer)\b[*_ ]{{0,3}}:[ \t*_`(\[]{{0,8}}{NUMBER}",
    re.IGNORECASE | re.MULTILINE,
)
"""The last line of the prompt, repeated."""
_ODD_LABEL: Final = re.compile(
    rf"\bscore\b{SIGNS}(?:\b(?:is|of)\b{SIGNS})?(?:(?:[.,~<]|{GREATER})\s?[0-9]|[-+]\s[0-9])",
    re.IGNORECASE,
)
_ONLY_NUMBER: Final = re.compile(rf"[\s*_`'\"(\[]*{NUMBER}[\s*_`'\")\].]*")
_NUMBER_LINE: Final = re.compile(rf"[ \t*_`'\"(\[]{{0,8}}{NUMBER}[ \t*_`'\")\].]{{0,8}}")
_VALUE: Final = re.compile(rf"\s*(?:score\s*[:=]?\s*)?{NUMBER}\s*", re.IGNORECASE)
_FORM: Final = "score"
"""Placeholder of a number in the prompt's form."""


def read_correctness(reply: Reply) -> Correctness | None:
    """Verdict of a reply of the second step, ``None`` if it cannot be read.

    Every object's ``score`` and every score that is named outside of objects must be the same; the
    analysis within an object does not count.

    >>> read_correctness(Reply('{"score": -1, "analysis": "It is 2, not 1."}'))
    'wrong'
    """
    text = reading.plain(reply)
    cut = reading.may_be_cut(reply)
    parts = reading.apart(text)
    if parts is None:
        return None
    fields, around = parts
    statements: list[Correctness | Unclear] = [UNCLEAR] if reading.is_declined(around) else []
    for block in fields:
        values = [value for value in block.values("score") if value.casefold() != _FORM]
        if values and not block.is_clear(text, top=None):
            statements.append(UNCLEAR)
        statements += map(_verdict, values)
    statements += _labelled(around, cut=cut)
    statements += _number_lines(around, cut=cut)
    alone = _ONLY_NUMBER.fullmatch(around) if not fields and not cut else None
    if alone is not None:
        statements.append(_verdict(alone["number"]))
    return reading.the_one(statements)


def _number_lines(text: str, *, cut: bool) -> Iterator[Correctness | Unclear]:
    """Lines that are a number alone, if the first one is; a last line may be cut."""
    lines = text.split("\n")
    if cut or len(lines) == 1:
        lines.pop()
    if lines and _NUMBER_LINE.fullmatch(lines[0]):
        for line in lines[: reading.MOST_STATEMENTS + 1]:
            number = _NUMBER_LINE.fullmatch(line)
            if number is not None:
                yield _verdict(number["number"])


def _labelled(text: str, *, cut: bool) -> Iterator[Correctness | Unclear]:
    for label in (*reading.places(reading.SCORE_LABEL, text), *reading.places(_RESULT, text)):
        is_clear = reading.is_clear(text, label.start(), label.end("number"), top=None, cut=cut)
        is_told = reading.is_of_task(text, label.start())
        yield _verdict(label["number"]) if is_clear and not is_told else UNCLEAR
    if _ODD_LABEL.search(text):
        yield UNCLEAR


def _verdict(value: str) -> Correctness | Unclear:
    number = _VALUE.fullmatch(value)
    return UNCLEAR if number is None else _VERDICTS.get(float(number["number"]), UNCLEAR)


@dataclass(frozen=True, slots=True)
class Question:
    """One question of VidCapBench with its gold answer."""

    question: str
    answer: str
    dimension: str
    """Primary category, such as ``video motion``."""
    sub_category: str


_SCHEMA: Final = object_schema(score={"type": "integer", "enum": [2, 1, 0, -1]})
"""Without the analysis, which comes after the score and does not change it."""


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> CorrectnessJudgement:
    """Both steps for one question of one caption."""
    request = answer_request(
        "vidcapbench_answer", question.question, caption, config=config, run=run
    )
    answered = await ask(request, read_free_answer)
    graded: Asked[Correctness] | None = None
    if answered.value is None:
        outcome = answered.no_answer()
    else:
        messages = config.prompts.load("vidcapbench_judge").render(
            question=question.question, answer=question.answer, prediction=answered.value
        )
        request = request_of(
            "vidcapbench_judge",
            messages,
            config=config,
            seed=run,
            stand_in=partial(_lexical_grade, question, answered.value),
            schema=_SCHEMA,
        )
        graded = await ask(request, read_correctness)
        outcome = graded.outcome(answered)
    return replace(
        silent_judgement(question, run),
        predicted_answer=answered.value,
        verdict=None if graded is None else graded.value,
        **outcome,
    )


def silent_judgement(question: Question, run: int) -> CorrectnessJudgement:
    """Judge an empty caption: it "does not mention the correct answer at all"."""
    return CorrectnessJudgement(
        question=question.question,
        answer=question.answer,
        dimension=question.dimension,
        sub_category=question.sub_category,
        run=run,
        predicted_answer=None,
        verdict="neutral",
    )


def _lexical_grade(question: Question, predicted: str) -> str:
    share = recall(question.answer, predicted)
    # An answer on the question's topic that holds nothing of the gold one is wrong, else silent.
    on_topic = bool(content_words(question.question) & content_words(predicted))
    score = 2 if share >= 0.75 else 1 if share > 0 else -1 if on_topic else 0
    return json.dumps({"score": score, "analysis": f"{share:.0%} of the answer's words are there."})
