"""Checks that a benchmark's judge reads captions: honest replies, and anchors.

A bad captioner makes an honest judge give one verdict all the time, as a good one may. So the judge
is asked a few of the questions with two captions of our own, *anchors*: one that gives the answer
and one that says nothing. A judge that reads captions credits only the first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Generic, TypeVar

from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.signature import questions_digest
from lmms_eval_captions.model_wrappers.captions import launcher_number

Q = TypeVar("Q")
"""A benchmark's question."""
J = TypeVar("J", bound=Judgement)
"""Judgement of the benchmark."""

SAYS_NOTHING: Final = "This is a video."
"""A caption with words, from which no question can be answered."""
LEAST_CAPTIONS: Final = 20
"""Captions of a task, over all processes, from which on anchors are asked: not in a trial run."""

Pair = tuple[float | None, float | None]
"""Credits in [0, 1] for the caption that answers a question and for the one that says nothing;
``None`` is unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(Generic[Q, J]):
    """A benchmark's description of honest replies."""

    tell: Callable[[Q], str]
    """A caption that gives the answer to a question; empty if there is none."""
    credit: Callable[[J], float | None]
    """Credit of a judgement for the caption, in [0, 1]; ``None`` is unscored."""
    said: Callable[[Q, J], str | None]
    """The judge's verdict, one of few different words; ``None`` is unscored."""
    silent: frozenset[str] = frozenset()
    """Verdicts that bad captions earn, so that an honest judge may give them all the time."""
    n_anchors: int = 16
    """Questions that are asked with both captions. 95% of judges that credit half of all captions
    at random are found. Of judges that credit 80% of captions with the answer and 20% of those
    without, 2% are called blind; of those that credit 90% and 10%, 0.01%."""


def tell_answer(question: str, answer: str) -> str:
    """Return a caption that answers one question; empty if there is no question or answer.

    >>> tell_answer("What is red?", "The ball.")
    'To the question "What is red?" the answer is: The ball.'
    >>> tell_answer("What is red?", " ")
    ''
    """
    if not question.strip() or not answer.strip():
        return ""
    return f'To the question "{question.strip()}" the answer is: {answer.strip()}'


def choose_questions(check: JudgeCheck[Q, Any], documents: Iterable[Sequence[Q]]) -> list[Q]:
    """Return the first different questions that can be answered, one of each document.

    Args:
        check: The benchmark's.
        documents: The questions of each document, in the order of the benchmark's file; read no
            further than needed.
    """
    chosen: dict[str, Q] = {}
    for number, questions in enumerate(documents):
        usable = {text: question for question in questions if (text := check.tell(question))}
        others = [text for text in usable if text not in chosen]
        if others:
            text = others[number % len(others)]
            chosen[text] = usable[text]
        if len(chosen) == check.n_anchors:
            break
    return list(chosen.values())


def captions_of(check: JudgeCheck[Any, Any], question: object) -> Iterator[str]:
    """Return the two captions that a question is asked with."""
    yield check.tell(question)
    yield SAYS_NOTHING


class AnchorQuestions:
    """Each task's questions for anchors, and the moment to ask them.

    They come from the first documents of the benchmark's file: threads hand in captions in an order
    that differs between runs, and a rerun must find all replies in the store.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: dict[str, list[Any]] = {}
        self._n_captions: dict[str, int] = {}

    def prepare(self, task: str, questions: list[Any]) -> None:
        """Set a task's questions; may be repeated."""
        with self._lock:
            self._questions[task] = questions

    def forget(self, task: str) -> None:
        """Start again: lmms-eval may run a task several times in one process."""
        with self._lock:
            self._questions.pop(task, None)
            self._n_captions.pop(task, None)

    def due(self, task: str) -> list[Any]:
        """Count one more caption, and return the questions to ask now, mostly none.

        Captions are dealt to processes in turn, so that before the n-th of one process the others
        have had n - 1 each.
        """
        rank = launcher_number(os.environ, "RANK", 0)
        world_size = launcher_number(os.environ, "WORLD_SIZE", 1)
        with self._lock:
            n_captions = self._n_captions[task] = self._n_captions.get(task, 0) + 1
            n_total = (n_captions - 1) * world_size + rank + 1
            is_due = n_total - world_size < LEAST_CAPTIONS <= n_total
            return self._questions.get(task, []) if is_due else []


@dataclass(frozen=True, slots=True)
class AnchorJudgements(Generic[Q, J]):
    """Judgements of anchors, in the order of asking."""

    questions: Sequence[Q] = ()
    chains: Sequence[Sequence[J]] = ()
    """Two for each question; none if nothing was judged."""

    def pairs(self, credit: Callable[[J], float | None]) -> dict[str, Pair]:
        """Return the credits of each question's two captions, by a digest of the question."""
        if not self.chains:
            return {}
        credits_ = []
        for judgements in self.chains:
            values = [value for value in map(credit, judgements) if value is not None]
            credits_.append(fmean(values) if values else None)
        names = (questions_digest("", [question]) for question in self.questions)
        return dict(zip(names, zip(credits_[::2], credits_[1::2], strict=True), strict=True))
