"""Questions that the judge is also asked with captions of our own, see :class:`JudgeCheck`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Generic, TypeVar

from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.judge_check import SAYS_NOTHING, JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.signature import questions_digest
from lmms_eval_captions.model_wrappers.captions import launcher_number

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)

LEAST_CAPTIONS: Final = 20
"""Captions of a task, of all processes, from which on it has anchors: a trial run has none."""

Pair = tuple[float | None, float | None]
"""What the judge gave the caption that answers a question and the one that says nothing, in [0, 1];
``None`` is unscored."""


class AnchorQuestions:
    """Each task's questions, and when they are to be asked.

    They are those of the first documents of the benchmark's file: captions are handed in by several
    threads, in an order that is another one in a rerun, which is to find all replies in the store.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: dict[str, list[Any]] = {}
        self._n_captions: dict[str, int] = {}

    def prepare(self, task: str, questions: list[Any]) -> None:
        """Note a task's questions; may be done again."""
        with self._lock:
            self._questions[task] = questions

    def forget(self, task: str) -> None:
        """Start afresh: lmms-eval may run a task several times in one process."""
        with self._lock:
            self._questions.pop(task, None)
            self._n_captions.pop(task, None)

    def due(self, task: str) -> list[Any]:
        """Count one more caption; the questions that are to be asked now, mostly none.

        Of several processes each has every so-manyth caption: where one has its n-th, the others
        have theirs before it.
        """
        rank = launcher_number(os.environ, "RANK", 0)
        world_size = launcher_number(os.environ, "WORLD_SIZE", 1)
        with self._lock:
            n_captions = self._n_captions[task] = self._n_captions.get(task, 0) + 1
            n_of_all = (n_captions - 1) * world_size + rank + 1
            is_due = n_of_all - world_size < LEAST_CAPTIONS <= n_of_all
            return self._questions.get(task, []) if is_due else []


@dataclass(frozen=True, slots=True)
class AnchorJudgements(Generic[Q, J]):
    """Anchors that were asked, in the order of asking."""

    questions: Sequence[Q] = ()
    chains: Sequence[Sequence[J]] = ()
    """Two for each question; none where nothing was judged."""

    def pairs(self, credit: Callable[[J], float | None]) -> dict[str, Pair]:
        """What stands for each question, the same in all ranks, to what its two captions got."""
        if not self.chains:
            return {}
        given = [_mean(credit, judgements) for judgements in self.chains]
        names = (questions_digest("", [question]) for question in self.questions)
        return dict(zip(names, zip(given[::2], given[1::2], strict=True), strict=True))


def choose_questions(check: JudgeCheck[Q, Any], documents: Iterable[Sequence[Q]]) -> list[Q]:
    """The first questions that differ and can be answered, one of each document.

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
    """The two captions that a question is asked with."""
    yield check.tell(question)
    yield SAYS_NOTHING


def _mean(credit: Callable[[J], float | None], judgements: Sequence[J]) -> float | None:
    values = [value for value in map(credit, judgements) if value is not None]
    return fmean(values) if values else None
