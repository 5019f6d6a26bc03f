"""Runs sorted into judges and captioners: who judged whose captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from lmms_eval_captions.analysis.captioners import Captioner, captioners_of, members_of
from lmms_eval_captions.analysis.results_folder import RunResults, read_all_results
from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks import signature
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.signature import SERVED
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

_NOT_OF_JUDGE: Final = frozenset(
    {"unscored", *signature.COUNTS, "limit", "offset", "runs", "scoring", "con", SERVED,
     signature.CAPTIONS, signature.DISTRIBUTION, signature.DOUBTS, signature.QUESTIONS}
)  # fmt: skip
"""Fields of the signature that say what was judged, or what came of it, not who judged."""


class JudgedRun(NamedTuple):
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
    def origin(self) -> tuple[Path, frozenset[str]]:
        """Folder of the results, and the names under which the judge answered."""
        served = {t.signature.fields.get(SERVED, "") for t in self.tables.values()}
        return self.runs[-1].path.parent, frozenset(served - {""})

    def fields(self, left_out: frozenset[str] = _NOT_OF_JUDGE) -> dict[str, dict[str, str]]:
        """Return what the signature of each task says of the judge."""
        found = {}
        for task, table in self.tables.items():
            head = {name: str(table.head[name]) for name in ("judge", "protocol")}
            fields = {**head, **table.signature.fields}
            found[task] = {name: value for name, value in fields.items() if name not in left_out}
        return found

    def has_judge_of(self, other: JudgedRun) -> bool:
        """Return if the judge, and how it was asked, is the same in the tasks of both."""
        ours, theirs = self.fields(), other.fields()
        is_same = all(ours[task] == theirs[task] for task in ours.keys() & theirs.keys())
        return is_same and self.judge == other.judge


@dataclass(slots=True)
class Judge:
    """One judge with its runs over captioners."""

    name: str
    runs: dict[int, JudgedRun]
    """By the captioner's place."""

    @property
    def n_runs(self) -> int:
        """Most judge runs of a table."""
        return max(table.n_runs for run in self.runs.values() for table in run.tables.values())


class Panel(NamedTuple):
    """The judges of one benchmark."""

    name: str
    benchmark: Benchmark[Any, Any]
    tasks: list[str]
    captioners: list[str]
    judges: list[Judge]
    """The reference first."""


def runs_below(folders: Sequence[Path], chosen: set[str] | None) -> list[JudgedRun]:
    """Return every run of every model below some folders, those of a model from the oldest on.

    Only the chosen tasks are read, by default all.

    Raises:
        DataError: If one cannot be read, or there are no verdicts of these tasks.
    """
    # Several judges may have judged the captions of one model in one folder: all runs count.
    names = [captioner.name for captioner in captioners_of(folders)]
    models = [runs for folder in folders for runs in read_all_results(folder)]
    found = []
    for name, runs in zip(names, models, strict=True):
        for run in runs:
            one = Captioner(name, dict.fromkeys(run.tasks, run))
            tables = {
                task: one.verdicts(task, sampled=False).tables[0]
                for task in one.tasks
                if chosen is None or task in chosen
                if members_of(run, task)
                if run.verdict_path(task).is_file() or run is runs[-1]
            }
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
        tables = [{t: of for t, of in run.tables.items() if t in benchmark.tasks} for run in runs]
        own = [run._replace(tables=of) for run, of in zip(runs, tables, strict=True) if of]
        if own:
            captioners = _captioners(own)
            tasks = [task for task in benchmark.tasks if any(task in of for of in tables)]
            names = _captioner_names(own, captioners)
            panels.append(Panel(name, benchmark, tasks, names, _judges(own, captioners)))
    return panels


def _captioners(runs: Sequence[JudgedRun]) -> list[int]:
    """Return the place of each run's captioner among them."""
    known: list[dict[object, str]] = []
    places: list[int] = []
    for run in runs:
        own: dict[object, str] = {}
        for task, table in run.tables.items():
            captions = table.captions()[["video", "copy", "caption_digest"]]
            own |= {(task, *key): digest for *key, digest in captions.itertuples(index=False)}
        place = next((i for i, other in enumerate(known) if _are_same(own, other)), len(known))
        known += [{}] * (place == len(known))
        known[place] = {**own, **known[place]}
        places.append(place)
    return places


def _are_same(first: Mapping[object, str], second: Mapping[object, str]) -> bool:
    shared = [(first[key], second[key]) for key in first.keys() & second.keys()]
    return 2 * sum(a == b != "" for a, b in shared) > sum(any(pair) for pair in shared)


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
            if before is not None and before.origin == run.origin:
                tables = {**before.tables, **run.tables}
                judge.runs[captioner] = JudgedRun(run.name, (*before.runs, *run.runs), tables)
                break
        else:
            free = [judge for judge in alike if captioner not in judge.runs]
            # Prefer the one that answered under the same name.
            free.sort(key=lambda judge: next(iter(judge.runs.values())).origin[1] != run.origin[1])
            judge = free[0] if free else Judge(run.judge, {})
            judge.runs[captioner] = run
            judges += [] if free else [judge]
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
        details = [dict(chain(*map(dict.items, of.fields(left_out).values()))) for of in firsts]
        known = dict.fromkeys(key for of in details for key in of)
        keys = [key for key in known if len({of.get(key) for of in details}) > 1]
        words = [", ".join(f"{k} {of[k]}" for k in keys if k in of) for of in details]
        for judge, first, text in zip(alike, firsts, words, strict=True):
            shown = text if words.count(text) == 1 else first.name
            judge.name = f"{name} ({shown or 'plain'})"


def _captioner_names(runs: Sequence[JudgedRun], captioners: Sequence[int]) -> list[str]:
    """Name the captioners by what their folders have in common, else by their first folder."""
    owned: dict[int, list[str]] = {}
    for run, place in zip(runs, captioners, strict=True):
        owned.setdefault(place, []).append(run.name)
    ends = [{name.rpartition("/")[2] for name in own} for own in owned.values()]
    names = [of.pop() if len(of) == 1 else "" for of in ends]
    is_clear = len(set(names)) == len(names) and all(names)
    return names if is_clear else [own[0] for own in owned.values()]
