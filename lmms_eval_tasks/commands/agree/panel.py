"""Who judged whose captions: runs sorted into judges and captioners."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults
from lmms_eval_captions.lmms_eval_tasks.signature import (
    CAPTIONS,
    DISTRIBUTION,
    DOUBTS,
    QUESTIONS,
    SERVED,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import TaskVerdicts

_NOT_OF_JUDGE: Final = frozenset(
    {"unscored", "empty", "dropped", "limit", "offset", "runs", "scoring", "con",
     CAPTIONS, DISTRIBUTION, DOUBTS, QUESTIONS, SERVED}
)  # fmt: skip
"""Fields of the signature that say what was judged, or what came of it, not who judged."""

_WORDS: Final = re.compile(r"[^-_/ ]+")
"""Words of a folder's name."""


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
    _name_judges(judges)
    present = {task for run in own for task in run.tasks}
    return Panel(
        name,
        benchmark,
        tuple(task for task in benchmark.tasks if task in present),
        tuple(_captioner_names(own, captioners)),
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
        same.sort(key=lambda judge: _served(next(iter(judge.runs.values()))) != _served(run))
        if not same:
            same = [Judge(_judge_name(run))]
            judges.append(same[0])
        same[0].runs[captioner] = run
    return judges


def _is_beside(run: JudgedRun, other: JudgedRun | None) -> bool:
    return other is not None and run.folder == other.folder and _served(run) == _served(other)


def _is_same_judge(first: JudgedRun, second: JudgedRun) -> bool:
    shared = first.tasks.keys() & second.tasks.keys()
    equal = all(
        _fields(first.tasks[task], _NOT_OF_JUDGE) == _fields(second.tasks[task], _NOT_OF_JUDGE)
        for task in shared
    )
    return equal and _judge_name(first) == _judge_name(second)


def _fields(task: TaskVerdicts, left_out: frozenset[str] | set[str]) -> dict[str, str]:
    """The fields of a task's signature, but for some."""
    if task.signature is None:
        return {"judge": task.captions[0].judge, "protocol": str(task.captions[0].protocol)}
    return {name: value for name, value in task.signature.fields.items() if name not in left_out}


def _judge_name(run: JudgedRun) -> str:
    names = {_fields(task, frozenset())["judge"]: None for task in run.tasks.values()}
    return " + ".join(names)


def _served(run: JudgedRun) -> set[str]:
    served = (_fields(task, frozenset()).get(SERVED, "") for task in run.tasks.values())
    return set(filter(None, served))


def _name_judges(judges: Sequence[Judge]) -> None:
    """Make the judges' names different, by the fields that differ, else by their folders."""
    for name in dict.fromkeys(judge.name for judge in judges):
        alike = [judge for judge in judges if judge.name == name]
        if len(alike) == 1:
            continue
        details = [_details(next(iter(judge.runs.values()))) for judge in alike]
        differing = [
            key
            for key in dict.fromkeys(key for fields in details for key in fields)
            if len({fields.get(key) for fields in details}) > 1
        ]
        words = [
            ", ".join(f"{key} {fields[key]}" for key in differing if key in fields)
            for fields in details
        ]
        for judge, text in zip(alike, words, strict=True):
            is_clear = words.count(text) == 1
            shown = text if is_clear else next(iter(judge.runs.values())).name
            judge.name = f"{name} ({shown or 'plain'})"


def _details(run: JudgedRun) -> dict[str, str]:
    """What sets a judge apart from others of its name."""
    left_out = _NOT_OF_JUDGE - {SERVED, "runs"} | {"judge"}
    fields: dict[str, str] = {}
    for task in run.tasks.values():
        fields.update(_fields(task, left_out))
    return fields


def _captioner_names(runs: Sequence[JudgedRun], captioners: Sequence[int]) -> list[str]:
    """Names of the captioners, all different.

    Their models' folders; where these are the same, what the names of a captioner's folders have
    in common; else the first folder's name.
    """
    owned: list[list[JudgedRun]] = [[] for _ in range(max(captioners) + 1)]
    for run, place in zip(runs, captioners, strict=True):
        owned[place].append(run)
    for names in (
        [own[0].folder.name for own in owned],
        [_common([run.name for run in own]) for own in owned],
    ):
        if len(set(names)) == len(names) and all(names):
            return names
    return [own[0].name for own in owned]


def _common(names: Sequence[str]) -> str:
    """The words that some names begin with, else those that they end with.

    >>> _common(["qwen-by-gpt-4o", "qwen-by-gemma"]), _common(["gpt-4o_qwen_7b", "gemma_qwen_7b"])
    ('qwen-by', 'qwen_7b')
    """
    words = [_WORDS.findall(name) for name in names]
    n_first = _n_leading(words)
    n_last = 0 if n_first else _n_leading([own[::-1] for own in words])
    places = [match.span() for match in _WORDS.finditer(names[0])]
    shown = places[:n_first] or places[len(places) - n_last :]
    return names[0][shown[0][0] : shown[-1][1]] if shown else ""


def _n_leading(words: Sequence[Sequence[str]]) -> int:
    """How many words all lists begin with."""
    same = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return len(list(same))
