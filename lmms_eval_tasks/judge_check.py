"""How a benchmark tells that its judge judges: what a reply says, and what it must depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Q = TypeVar("Q")
"""A benchmark's question."""
J = TypeVar("J")
"""Its judgement."""

SAYS_NOTHING: Final = "This is a video."
"""A caption with words, from which no question can be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(Generic[Q, J]):
    """What a benchmark knows of honest replies.

    A bad captioner makes an honest judge say one thing all the time, as a good one may. So the
    judge is asked a few questions with captions of our own, *anchors*: one that gives the answer
    and one that says nothing. Whoever reads captions tells the two apart.
    """

    tell: Callable[[Q], str]
    """A caption from which the question is answered right; empty where there is none."""
    credit: Callable[[J], float | None]
    """What a judgement gives the caption, in [0, 1]; ``None`` is unscored."""
    said: Callable[[Q, J], str | None]
    """What the judge said, of few different words; ``None`` is unscored."""
    silent: frozenset[str] = frozenset()
    """What an honest judge may say all the time: words that a bad captioner earns."""
    n_anchors: int = 16
    """Questions that are asked with both captions. Of judges that give half of all captions credit,
    whichever, 95 of 100 are told; of those that credit 8 of 10 that answer and 2 of 10 that say
    nothing, 2 of 100 are called blind; of 9 and 1 in 10, 1 of 10,000."""


def tell_answer(question: str, answer: str) -> str:
    """A caption that answers one question.

    >>> tell_answer("What is red?", "The ball.")
    'To the question "What is red?" the answer is: The ball.'
    >>> tell_answer("What is red?", " ")
    ''
    """
    if not question.strip() or not answer.strip():
        return ""
    return f'To the question "{question.strip()}" the answer is: {answer.strip()}'
