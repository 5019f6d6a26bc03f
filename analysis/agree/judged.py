"""Runs, judges and captioners, as they stand beside one another."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults
from lmms_eval_captions.lmms_eval_tasks.signature import (
    CAPTIONS,
    DISTRIBUTION,
    DOUBTS,
    QUESTIONS,
    SERVED,
)

NOT_OF_JUDGE: Final = frozenset(
    {"unscored", "empty", "dropped", "limit", "offset", "runs", "scoring", "con",
     CAPTIONS, DISTRIBUTION, DOUBTS, QUESTIONS, SERVED}
)  # fmt: skip
"""Fields of the signature that say what was judged, or what came of it, not who judged."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What one judge, or one for each task, said of the captions of one captioner."""

    name: str
    """The folder as it is shown."""
    runs: tuple[RunResults, ...]
    """All of one model's folder, the newest last: it says of a task what counts."""
    tasks: Mapping[str, TaskVerdicts]
    """Those that are looked at, by their names."""

    @property
    def folder(self) -> Path:
        """Where the results are."""
        return self.runs[-1].path.parent

    def digests(self) -> dict[tuple[str, str], str]:
        """Each task and video to what stands for the caption."""
        captions = (caption for task in self.tasks.values() for caption in task.captions)
        return {(each.task, each.video_id): each.caption_digest for each in captions}

    def of(self, benchmark: Benchmark[Any, Any]) -> JudgedRun:
        """What it says of the tasks of one benchmark."""
        return replace(self, tasks={t: v for t, v in self.tasks.items() if t in benchmark.tasks})

    def after(self, older: JudgedRun) -> JudgedRun:
        """This run with what an older one beside it says of other tasks."""
        return replace(self, runs=(*older.runs, *self.runs), tasks={**older.tasks, **self.tasks})


@dataclass(slots=True)
class Judge:
    """One judge with its runs over captioners."""

    name: str
    runs: dict[int, JudgedRun] = field(default_factory=dict)
    """Place of a captioner to the run over its captions."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges of one benchmark."""

    name: str
    """Of the benchmark or its variant."""
    benchmark: Benchmark[Any, Any]
    tasks: tuple[str, ...]
    captioners: tuple[str, ...]
    judges: tuple[Judge, ...]


def fields_of(task: TaskVerdicts, left_out: Set[str] = frozenset()) -> dict[str, str]:
    """The fields of a task's signature, but for some."""
    first = task.captions[0]
    told = {"judge": first.judge, "protocol": str(first.protocol)}
    fields = {**told, **(task.signature.fields if task.signature else {})}
    return {name: value for name, value in fields.items() if name not in left_out}


def judge_name(run: JudgedRun) -> str:
    """The judge as signatures name it, several where tasks have different ones."""
    names = {fields_of(task)["judge"]: None for task in run.tasks.values()}
    return " + ".join(names)


def served_by(run: JudgedRun) -> set[str]:
    """The names under which the judge answered."""
    served = (fields_of(task).get(SERVED, "") for task in run.tasks.values())
    return set(filter(None, served))
