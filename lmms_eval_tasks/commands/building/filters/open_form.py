"""What questions without options must be: those with open answers, and those of yes and no."""

from __future__ import annotations

import re
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import same_words

_OPEN: Final = re.compile(
    r"(?:\w+,?\s+){0,4}?(?:what|who|whom|whose|where|when|why|how|which)\b", re.IGNORECASE
)
"""Also behind a few words, such as "In what way" and "At the end, who"."""
_MOST_WORDS: Final = 40
"""Of an answer: a short sentence or phrase."""
_ENDS: Final = ("?", "\uff1f", "\u061f")
_YES_NO: Final = ("yes", "no")


def is_question(text: str) -> bool:
    """Whether a text ends as a question.

    >>> is_question("Is it red? "), is_question("It is red.")
    (True, False)
    """
    return text.rstrip(" \t\n\"'*").endswith(_ENDS)


def open_fault(question: str, answer: str) -> str | None:
    """Why a question with an open answer cannot be asked, ``None`` where it can.

    Source: AuroraCap, appendix L ("open-ended", "a short sentence or phrase"), VidCapBench, section
    3.2 (answers in free words). Ours: the length from which on an answer is not short.

    >>> open_fault("What is red?", "The car."), open_fault("Is it red?", "It is red.")
    (None, 'form: the question is not open')
    """
    if not is_question(question):
        return "form: no question"
    if not _OPEN.match(question):
        return "form: the question is not open"
    if same_words(answer).rstrip("!,") in _YES_NO:
        return "form: the answer is yes or no alone"
    return "form: the answer is not short" if len(answer.split()) > _MOST_WORDS else None


def yes_no_of(answer: str) -> str:
    """An answer as yes or no, as it is where it is neither.

    >>> yes_no_of("Yes."), yes_no_of("'no'"), yes_no_of("Maybe")
    ('yes', 'no', 'Maybe')
    """
    plain = same_words(answer.strip("\"'` ")).rstrip("!,")
    return plain if plain in _YES_NO else answer


def yes_no_fault(question: str, answer: str) -> str | None:
    """Why a question with the answer yes or no cannot be asked, ``None`` where it can.

    >>> yes_no_fault("Is it red?", "yes"), yes_no_fault("Is it 5*?", "yes")
    (None, 'form: a star, which parts questions in the official file')
    """
    if not is_question(question):
        return "form: no question"
    if answer not in _YES_NO:
        return "form: the answer is neither yes nor no"
    return "form: a star, which parts questions in the official file" if "*" in question else None
