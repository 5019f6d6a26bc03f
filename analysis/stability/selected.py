"""Scores over the questions that are stable, beside those over all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from lmms_eval_captions.analysis.stability.opinions import (
    Asked,
    Opinions,
    questions_of,
)
from lmms_eval_captions.analysis.verdicts.parts import parts_of
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.metrics.agreement import KNOWN_SAME
from lmms_eval_captions.metrics.parts import values_of_runs

_SECTION: Final = "stability"
_STABLE: Final = "stable"


@dataclass(frozen=True, slots=True)
class Selected:
    """A metric of one captioner."""

    captioner: str
    metric: str
    full: float
    """Over all questions, mean over judge runs, in the metric's unit."""
    stable: float
    """Over those that are stable for all captioners; ``nan`` where there are none."""


def selected(opinions: Opinions) -> Iterator[Selected]:
    """Every metric of every captioner over all questions and over the stable ones."""
    is_stable = (opinions.headline == KNOWN_SAME).all(axis=0)
    stable = {asked for asked, same in zip(opinions.asked, is_stable, strict=True) if same}
    for captioner, verdicts in zip(opinions.captioners, opinions.verdicts, strict=True):
        marked = _marked(verdicts, stable, opinions.n_runs)
        for name, metric in opinions.benchmark.metrics.items():
            full, of_stable = parts_of(verdicts, name), parts_of(marked, name, (_SECTION, _STABLE))
            if full is not None and of_stable is not None:
                values = (
                    float(values_of_runs(found.parts, scale=metric.scale).mean())
                    for found in (full, of_stable)
                )
                yield Selected(captioner, name, *values)


def _marked(verdicts: Verdicts, stable: set[Asked], n_runs: int) -> Verdicts:
    """The same verdicts with one section of groups: whether a question is stable."""
    tasks = []
    for task in verdicts.tasks:
        captions = []
        for caption, questions in questions_of(task, n_runs):
            names = [_STABLE if asked in stable else None for asked in questions]
            groups = {_SECTION: [names] * max(map(len, caption.values.values()))}
            captions.append(replace(caption, groups=groups))
        tasks.append(replace(task, captions=captions))
    return replace(verdicts, tasks=tuple(tasks))
