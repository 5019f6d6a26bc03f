"""Who judged whose captions: runs sorted into judges and captioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_captions.analysis.agree.judged import (
    NOT_OF_JUDGE,
    Judge,
    JudgedRun,
    Panel,
    fields_of,
    judge_name,
    served_by,
)
from lmms_eval_captions.analysis.agree.names import captioner_names, name_judges
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks


def panels_of(runs: Sequence[JudgedRun]) -> list[Panel]:
    """The judges of every benchmark that runs hold.

    Runs are of one captioner where most of the captions that both hold are equal; they are of one
    judge where the fields of their signatures are equal that say who judged, and how.
    """
    # Variants of a benchmark have its name, and judge another way.
    return [
        _panel(name, benchmark, own)
        for name, benchmark in all_benchmarks().items()
        if (own := [part for run in runs if (part := run.of(benchmark)).tasks])
    ]


def _panel(name: str, benchmark: Benchmark[Any, Any], own: Sequence[JudgedRun]) -> Panel:
    captioners = _captioners(own)
    judges = _judges(own, captioners)
    name_judges(judges)
    present = {task for run in own for task in run.tasks}
    return Panel(
        name,
        benchmark,
        tuple(task for task in benchmark.tasks if task in present),
        tuple(captioner_names(own, captioners)),
        tuple(judges),
    )


def _captioners(runs: Sequence[JudgedRun]) -> list[int]:
    """The place of each run's captioner among them, in the order of the runs."""
    captions: list[dict[tuple[str, str], str]] = []
    places: list[int] = []
    for run in runs:
        own = run.digests()
        place = next((i for i, other in enumerate(captions) if _are_same(own, other)), None)
        if place is None:
            place = len(captions)
            captions.append({})
        captions[place] = {**own, **captions[place]}
        places.append(place)
    return places


def _are_same(first: Mapping[tuple[str, str], str], second: Mapping[tuple[str, str], str]) -> bool:
    """Whether most captions are equal that both hold."""
    shared = [(first[key], second[key]) for key in first.keys() & second.keys()]
    equal = sum(a == b != "" for a, b in shared)
    return 2 * equal > sum(a != "" or b != "" for a, b in shared)


def _judges(runs: Sequence[JudgedRun], captioners: Sequence[int]) -> list[Judge]:
    """The judges, each with one run at most over a captioner's captions.

    Of several runs in one folder of a model the newest counts; in different folders they are
    judges of their own, whose agreement is that of a judge with itself.
    """
    judges: list[Judge] = []
    for run, captioner in zip(runs, captioners, strict=True):
        alike = [
            judge
            for judge in judges
            if all(_is_same_judge(run, other) for other in judge.runs.values())
        ]
        older = next((j for j in alike if _is_beside(run, j.runs.get(captioner))), None)
        if older is not None:
            older.runs[captioner] = run.after(older.runs[captioner])
            continue
        same = [judge for judge in alike if captioner not in judge.runs]
        # Of those that differ in the names under which the judge answered, the one with the same.
        same.sort(key=lambda judge: served_by(next(iter(judge.runs.values()))) != served_by(run))
        if not same:
            same = [Judge(judge_name(run))]
            judges.append(same[0])
        same[0].runs[captioner] = run
    return judges


def _is_beside(run: JudgedRun, other: JudgedRun | None) -> bool:
    return other is not None and run.folder == other.folder and served_by(run) == served_by(other)


def _is_same_judge(first: JudgedRun, second: JudgedRun) -> bool:
    shared = first.tasks.keys() & second.tasks.keys()
    equal = all(_is_equal(first.tasks[task], second.tasks[task]) for task in shared)
    return equal and judge_name(first) == judge_name(second)


def _is_equal(first: TaskVerdicts, second: TaskVerdicts) -> bool:
    return fields_of(first, NOT_OF_JUDGE) == fields_of(second, NOT_OF_JUDGE)
