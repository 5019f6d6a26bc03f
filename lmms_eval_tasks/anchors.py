"""Questions that the judge is also asked with captions of our own, see :class:`JudgeCheck`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final, TypeVar

from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.judge_check import SAYS_NOTHING, JudgeCheck

J = TypeVar("J", bound=Judgement)

LEAST_CAPTIONS: Final = 20
"""Captions of a task, in one process, from which on it has anchors: a trial run has none."""

Pairs = list[tuple[float | None, float | None]]
"""For each question what the judge gave the caption that answers it and the one that says nothing,
in [0, 1]; ``None`` is unscored."""


@dataclass(slots=True)
class _Chosen:
    n_captions: int = 0
    questions: list[Any] = field(default_factory=list)


class AnchorQuestions:
    """Chooses each task's questions, the same ones for the same captions in the same order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, _Chosen] = {}

    def forget(self, task: str) -> None:
        """Start afresh: lmms-eval may run a task several times in one process."""
        with self._lock:
            self._tasks.pop(task, None)

    def due(self, task: str, check: JudgeCheck[Any, Any], questions: Sequence[Any]) -> list[Any]:
        """Take the questions of one more caption.

        Returns:
            The questions that are to be asked now, once per task; mostly none.
        """
        with self._lock:
            chosen = self._tasks.setdefault(task, _Chosen())
            chosen.n_captions += 1
            if chosen.n_captions > LEAST_CAPTIONS:
                return []
            told = {"", *map(check.tell, chosen.questions)}
            usable = [question for question in questions if check.tell(question) not in told]
            if usable and len(chosen.questions) < check.n_anchors:
                chosen.questions.append(usable[chosen.n_captions % len(usable)])
            return chosen.questions if chosen.n_captions == LEAST_CAPTIONS else []


def captions_of(check: JudgeCheck[Any, Any], question: object) -> tuple[str, str]:
    """The two captions that a question is asked with."""
    return check.tell(question), SAYS_NOTHING


def read_pairs(credit: Callable[[J], float | None], chains: Sequence[Sequence[J]]) -> Pairs:
    """What the judge gave each pair of captions, from the judgements in the order of asking."""
    given = list(_given(credit, chains))
    return list(zip(given[::2], given[1::2], strict=True))


def _given(
    credit: Callable[[J], float | None], chains: Sequence[Sequence[J]]
) -> Iterator[float | None]:
    for judgements in chains:
        values = [value for value in map(credit, judgements) if value is not None]
        yield fmean(values) if values else None
