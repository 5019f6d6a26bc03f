"""CapQuiz: a multiple-choice question answered from the caption alone, with one letter.

Source: CapQuiz, section 3.4 and figure 8. The options keep the order of the benchmark's file: the
paper shuffles them to filter its questions (section 3.2.2) and not to score captions, and spreads
the right option evenly over the five places (figure 4c).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.judge_request import request_of
from lmms_eval_captions.judges.protocols.letters import LETTERS, read_choice
from lmms_eval_captions.judges.verdict import QuizJudgement, QuizOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.judges.endpoint.outcome import Ask
    from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig

UNKNOWN: Final = "Cannot be determined"
"""The option that is added to the five of a question."""
N_OPTIONS: Final = 5
_LISTED: Final = "A, B, C, D, E, or F"


@dataclass(frozen=True, slots=True)
class Question:
    """One question of CapQuiz."""

    category: str
    question: str
    options: tuple[str, ...]
    """Five, different from each other."""
    answer: str
    """The right one."""


async def judge_question(
    ask: Ask, question: Question, caption: str, *, config: JudgeConfig, run: int
) -> QuizJudgement:
    """One question of one caption.

    Args:
        ask: How to reach the judge.
        question: Question, options and the right one.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge.
        run: Judge run, sent as the seed, >= 0.
    """
    options = (*question.options, UNKNOWN)
    request = _request(question, options, caption, config=config, run=run)
    asked = await ask(request, partial(read_choice, options=options))
    choice = None if asked.value is None else options[LETTERS.index(asked.value)]
    return QuizJudgement(
        category=question.category,
        question=question.question,
        answer=question.answer,
        run=run,
        choice=choice,
        verdict=None if choice is None else outcome(choice, question.answer),
        **asked.outcome(),
    )


def silent_judgement(question: Question, run: int) -> QuizJudgement:
    """The judgement of a caption that says nothing: the answer cannot be determined.

    >>> silent_judgement(Question("Entity", "What?", ("a", "b", "c", "d", "e"), "a"), 0).verdict
    'false_negative'
    """
    return QuizJudgement(
        category=question.category,
        question=question.question,
        answer=question.answer,
        run=run,
        choice=UNKNOWN,
        verdict=outcome(UNKNOWN, question.answer),
    )


def outcome(choice: str, answer: str) -> QuizOutcome:
    """How a chosen option counts (section 3.4).

    >>> outcome("red", "red"), outcome("blue", "red"), outcome(UNKNOWN, "red")
    ('true_positive', 'false_positive', 'false_negative')
    """
    if choice == UNKNOWN:
        return "false_negative"
    return "true_positive" if choice == answer else "false_positive"


def _request(
    question: Question, options: Sequence[str], caption: str, *, config: JudgeConfig, run: int
) -> Request:
    messages = config.prompts.load("capquiz_answer").render(
        caption=caption,
        question=question.question,
        options="\n".join(
            f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=True)
        ),
        option_id_str=_LISTED,
    )
    return request_of(
        "capquiz_answer",
        messages,
        config=config,
        seed=run,
        stand_in=partial(_lexical_choice, question.options, caption),
    )


def _lexical_choice(options: Sequence[str], caption: str) -> str:
    """Letter of the option that shares most words with a caption, ``F`` where none shares half."""
    shares = [lexical.recall(option, caption) for option in options]
    best = max(shares)
    return LETTERS[shares.index(best)] if best >= 0.5 else LETTERS[-1]
