"""Multiple-choice questions about a video, answered from its caption only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Ask, Reply
from lmms_eval_captions.judges.protocols import reading
from lmms_eval_captions.judges.protocols.asking import JudgeConfig, recall, request_of
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, read_choice
from lmms_eval_captions.judges.verdict import Judgement

UNKNOWN: Final = "N/A: the caption does not say"
"""Option that is added to those of a question."""
MOST_OPTIONS: Final = len(LETTERS) - 1

_NOT_SAID: Final = re.compile(
    r"(?:(?:the |my )?(?:final )?answer(?: is)?\s?:?\s)?"
    r"(?:n/a|(?:n/a[:,.]?\s)?the caption does not say)\.?(?:\s?\((?P<letter>[a-f])\))?\.?",
    re.IGNORECASE,
)
"""A whole reply that chooses the added option by its text."""

Outcome = Literal["right", "wrong", "unknown"]
"""Chosen option: the right one, another one, or the added one."""


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """Question with its options."""

    question: str
    options: tuple[str, ...]
    """From 2 to 5 texts."""
    answer: str
    """One of the options."""
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudgement(Judgement):
    """Option that the judge chose from the caption."""

    question: str
    answer: str
    category: str
    choice: str | None
    verdict: Outcome | None


async def judge_choice(
    ask: Ask, question: ChoiceQuestion, caption: str, *, config: JudgeConfig, run: int
) -> ChoiceJudgement:
    """Answer one question from one caption."""
    options = (*question.options, UNKNOWN)
    listed = "\n".join(
        f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)
    )
    request = request_of(
        "caption_qa_answer",
        config.prompts.load("caption_qa_answer").render(
            caption=caption, question=question.question, options=listed
        ),
        config=config,
        seed=run,
        stand_in=partial(_lexical_choice, question, caption),
    )
    asked = await ask(request, lambda reply: read_option(reply, options))
    choice = asked.value
    return ChoiceJudgement(
        run=run,
        question=question.question,
        answer=question.answer,
        category=question.category,
        choice=choice,
        verdict=None if choice is None else _outcome(question, choice),
        **asked.outcome(),
    )


def read_option(reply: Reply, options: Sequence[str]) -> str | None:
    """Return the option that a reply chooses, ``None`` if it chooses none of them, or several.

    >>> read_option(Reply("B. A dog", "stop"), ["A cat", "A dog", UNKNOWN])
    'A dog'
    >>> read_option(Reply("E", "stop"), ["A cat", "A dog", UNKNOWN]) is None
    True
    >>> read_option(Reply("N/A", "stop"), ["A cat", "A dog", UNKNOWN])
    'N/A: the caption does not say'
    """
    text = reading.plain(reply).strip(" *`'\"\n")
    if not reading.may_be_cut(reply) and (said := _NOT_SAID.fullmatch(text)):
        is_own = said["letter"] in (None, LETTERS[options.index(UNKNOWN)])
        return UNKNOWN if is_own else None
    unused = [f"unused option {letter}" for letter in LETTERS[len(options) :]]
    letter = read_choice(reply, [*options, *unused])
    index = len(options) if letter is None else LETTERS.index(letter)
    return options[index] if index < len(options) else None


def silent_choice(question: ChoiceQuestion, run: int) -> ChoiceJudgement:
    """Return the judgement of an empty caption: it does not say."""
    return ChoiceJudgement(
        run=run,
        question=question.question,
        answer=question.answer,
        category=question.category,
        choice=UNKNOWN,
        verdict="unknown",
    )


def _outcome(question: ChoiceQuestion, choice: str) -> Outcome:
    if choice == question.answer:
        return "right"
    return "unknown" if choice == UNKNOWN else "wrong"


def _lexical_choice(question: ChoiceQuestion, caption: str) -> str:
    shares = [recall(option, caption) for option in question.options]
    best = max(range(len(shares)), key=shares.__getitem__)
    return LETTERS[best if shares[best] > 0 else len(shares)]
