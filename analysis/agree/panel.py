"""Runs sorted into judges and captioners: who judged whose captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.captioners import captioners_of, members_of
from lmms_eval_captions.analysis.results_folder import (
    RunResults,
    read_all_results,
)
from lmms_eval_captions.analysis.task_table import TaskTable, read_table
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.signature import (
    CAPTIONS,
    COUNTS,
    DISTRIBUTION,
    DOUBTS,
    QUESTIONS,
    RESULTS,
    SERVED,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, our_benchmarks
from lmms_eval_captions.lmms_eval_tasks.verdict_file import verdict_path

_NOT_OF_JUDGE: Final = frozenset(
    {"unscored", *COUNTS, "limit", "offset", "runs", "scoring", "con",
     CAPTIONS, DISTRIBUTION, DOUBTS, QUESTIONS, SERVED}
)  # fmt: skip
"""Fields of the signature that say what was judged, or what came of it, not who judged."""

_Digests = dict[tuple[str, str, int], str]
"""Task, video and copy to the caption's digest."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """Verdicts of one judge on the captions of one captioner."""

    name: str
    """The folder as it is shown."""
    runs: tuple[RunResults, ...]
    """All of one model's folder, the newest last."""
    tables: Mapping[str, TaskTable]
    """By task."""

    @property
    def judge(self) -> str:
        """The judge as signatures name it, several if tasks have different ones."""
        return " + ".join(dict.fromkeys(str(t.head["judge"]) for t in self.tables.values()))

    @property
    def place(self) -> tuple[Path, frozenset[str]]:
        """Folder of the results, and the names under which the judge answered."""
        served = {t.signature.fields.get(SERVED, "") for t in self.tables.values()}
        return self.runs[-1].path.parent, frozenset(served - {""})

    def fields(self, left_out: frozenset[str] = _NOT_OF_JUDGE) -> dict[str, dict[str, str]]:
        """Return what the signature of each task says of the judge."""
        return {
            task: {
                name: value
                for name, value in {
                    "judge": str(table.head["judge"]),
                    "protocol": str(table.head["protocol"]),
                    **table.signature.fields,
                }.items()
                if name not in left_out
            }
            for task, table in self.tables.items()
        }

    def has_judge_of(self, other: JudgedRun) -> bool:
        """Return if the judge, and how it was asked, is the same in the tasks of both."""
        ours, theirs = self.fields(), other.fields()
        is_same = all(ours[task] == theirs[task] for task in ours.keys() & theirs.keys())
        return is_same and self.judge == other.judge


@dataclass(slots=True)
class Judge:
    """One judge with its runs over captioners."""

    name: str
    runs: dict[int, JudgedRun] = field(default_factory=dict)
    """By the captioner's place."""

    @property
    def n_runs(self) -> int:
        """Most judge runs of a table."""
        return max(table.n_runs for run in self.runs.values() for table in run.tables.values())


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges of one benchmark."""

    name: str
    benchmark: Benchmark[Any, Any]
    tasks: tuple[str, ...]
    captioners: tuple[str, ...]
    judges: tuple[Judge, ...]
    """The reference first."""


def runs_below(folders: Sequence[Path], chosen: set[str] | None) -> list[JudgedRun]:
    """Return every run of every model below some folders, those of a model from the oldest on.

    Args:
        folders: As lmms-eval's ``--output_path``.
        chosen: Tasks to look at; ``None`` for all.

    Raises:
        DataError: If one cannot be read, or there are no verdicts of these tasks.
    """
    # Several judges may have judged the captions of one model in one folder: all runs count.
    names = [captioner.name for captioner in captioners_of(folders)]
    models = [runs for folder in folders for runs in read_all_results(folder)]
    found = []
    for name, runs in zip(names, models, strict=True):
        for run in runs:
            stamp = run.path.name.removesuffix(RESULTS)
            tables = {}
            for task in run.tasks:
                path = verdict_path(run.path.parent, stamp, task)
                is_wanted = task in our_benchmarks() and (chosen is None or task in chosen)
                if is_wanted and members_of(run, task) and (path.is_file() or run is runs[-1]):
                    tables[task] = read_table(path, task)
                    if tables[task].is_sampled:
                        raise DataError(
                            f"{path.name}: only a sample of the questions was judged, and this "
                            "needs all: score the captions again without LMMS_CAPTIONS_PRECISION"
                        )
            if tables:
                found.append(JudgedRun(name, (run,), tables))
    if not found:
        raise DataError(f"no verdicts of these tasks in {', '.join(map(str, folders))}")
    return found


def panels_of(runs: Sequence[JudgedRun]) -> list[Panel]:
    """Return the judges of every benchmark, that of the first run first.

    Runs are of one captioner if most captions that both hold are equal. They are of one judge if
    the fields of their signatures are equal that say who judged, and how.
    """
    panels = []
    for name, benchmark in all_benchmarks().items():
        own = [
            replace(run, tables=tables)
            for run in runs
            if (tables := {t: of for t, of in run.tables.items() if t in benchmark.tasks})
        ]
        if own:
            captioners = _captioners(own)
            present = {task for run in own for task in run.tables}
            tasks = tuple(task for task in benchmark.tasks if task in present)
            names = _captioner_names(own, captioners)
            panels.append(Panel(name, benchmark, tasks, names, tuple(_judges(own, captioners))))
    return panels


def _captioners(runs: Sequence[JudgedRun]) -> list[int]:
    """Return the place of each run's captioner among them."""
    known: list[_Digests] = []
    places: list[int] = []
    for run in runs:
        own: _Digests = {
            (task, video, copy): digest
            for task, table in run.tables.items()
            for video, copy, digest in table.captions()[
                ["video", "copy", "caption_digest"]
            ].itertuples(index=False)
        }
        place = next((i for i, other in enumerate(known) if _are_same(own, other)), len(known))
        if place == len(known):
            known.append({})
        known[place] = {**own, **known[place]}
        places.append(place)
    return places


def _are_same(first: _Digests, second: _Digests) -> bool:
    shared = [(first[key], second[key]) for key in first.keys() & second.keys()]
    n_equal = sum(a == b != "" for a, b in shared)
    return 2 * n_equal > sum(a != "" or b != "" for a, b in shared)


def _judges(runs: Sequence[JudgedRun], captioners: Sequence[int]) -> list[Judge]:
    """Return the judges, each with at most one run over a captioner's captions.

    Of several runs in one model's folder the newest counts; in different folders they are judges of
    their own, whose agreement is that of a judge with itself.
    """
    judges: list[Judge] = []
    for run, captioner in zip(runs, captioners, strict=True):
        alike = [j for j in judges if all(run.has_judge_of(other) for other in j.runs.values())]
        for judge in alike:
            before = judge.runs.get(captioner)
            if before is not None and before.place == run.place:
                judge.runs[captioner] = replace(
                    run, runs=(*before.runs, *run.runs), tables={**before.tables, **run.tables}
                )
                break
        else:
            free = [judge for judge in alike if captioner not in judge.runs]
            # Prefer the one that answered under the same name.
            free.sort(key=lambda judge: next(iter(judge.runs.values())).place[1] != run.place[1])
            if not free:
                free = [Judge(run.judge)]
                judges += free
            free[0].runs[captioner] = run
    _name_judges(judges)
    return judges


def _name_judges(judges: Sequence[Judge]) -> None:
    """Tell judges of the same name apart, by the fields that differ, else by their folders."""
    left_out = _NOT_OF_JUDGE - {SERVED, "runs"} | {"judge"}
    for name in dict.fromkeys(judge.name for judge in judges):
        alike = [judge for judge in judges if judge.name == name]
        if len(alike) == 1:
            continue
        firsts = [next(iter(judge.runs.values())) for judge in alike]
        details = [
            {key: value for of in first.fields(left_out).values() for key, value in of.items()}
            for first in firsts
        ]
        keys = [
            key
            for key in dict.fromkeys(key for of in details for key in of)
            if len({of.get(key) for of in details}) > 1
        ]
        words = [", ".join(f"{k} {of[k]}" for k in keys if k in of) for of in details]
        for judge, first, text in zip(alike, firsts, words, strict=True):
            shown = text if words.count(text) == 1 else first.name
            judge.name = f"{name} ({shown or 'plain'})"


def _captioner_names(runs: Sequence[JudgedRun], captioners: Sequence[int]) -> tuple[str, ...]:
    """Name the captioners by what their folders have in common, else by their first folder."""
    owned: list[list[str]] = [[] for _ in range(max(captioners) + 1)]
    for run, place in zip(runs, captioners, strict=True):
        owned[place].append(run.name)
    ends = [{name.rpartition("/")[2] for name in own} for own in owned]
    names = tuple(of.pop() if len(of) == 1 else "" for of in ends)
    is_clear = len(set(names)) == len(names) and all(names)
    return names if is_clear else tuple(own[0] for own in owned)
