"""Share of verdicts that a judge repeats, by captioner and group, and the noise of scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.captioners import Captioner, captioners_of, names_to_show
from lmms_eval_captions.analysis.parts import is_by_task, ordered_groups, parts_of, score_of
from lmms_eval_captions.analysis.tables import listed, plural
from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, differences
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.metrics.agreement import consistent_times, unstable_that_pass
from lmms_eval_captions.metrics.intervals import Interval, intervals
from lmms_eval_captions.metrics.paired import noise_floor
from lmms_eval_captions.metrics.parts import Floats, values_of_runs

Document = dict[str, Any]

KEY: Final = ["task", "video", "question", "asked_before"]
"""Columns that identify a question; a text may be asked about a video more than once."""
TASKS: Final = "tasks"
METRICS: Final = "metrics"
"""Section of values that the headline does not read, such as VDC's scores."""
_MAX_GROUPS: Final = 40
WITHIN: Final = 0.05
"""Numbers are the same if they differ by at most this share of their scale."""
_ROUNDING: Final = 1e-9
NOISE_RUNS: Final = (1, 3, 5)
PAPER_RUNS: Final = 3
PAPER_CAPTIONERS: Final = 5
"""Judge runs and captioners on which VidCapBench's split rests (section 3.2)."""


class Repeated(NamedTuple):
    """Questions of a task or group, and if they got the same verdict in every judge run."""

    name: str
    captioners: list[str]
    verdicts: list[Verdicts]
    results: list[Path]
    """Results file of each captioner's run."""
    n_runs: int
    """Judge runs that are compared: as many as every captioner has."""
    questions: pd.DataFrame
    """A row per question: :data:`KEY` and a column per section of the breakdown."""
    same: Mapping[str, pd.DataFrame]
    """Metric, the headline first, to questions x captioners: ``True``, ``False``, or missing if two
    runs do not differ and one has no verdict."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return self.verdicts[0].benchmark

    @property
    def headline(self) -> pd.DataFrame:
        """The headline's member of ``same``."""
        return next(iter(self.same.values()))

    @property
    def tables(self) -> list[TaskTable]:
        """The tables of all captioners."""
        return [table for verdicts in self.verdicts for table in verdicts.tables]

    @property
    def judges(self) -> list[str]:
        """The judges of all captions."""
        return list(dict.fromkeys(str(table.head["judge"]) for table in self.tables))


def stability(folders: Sequence[Path], names: Sequence[str]) -> list[Repeated]:
    """Find out how often verdicts repeat, for each task and group, by default all with a judge.

    Raises:
        SettingsError: If a name is not among what all have.
        DataError: If there is one judge run, no judge, or verdicts cannot be followed.
    """
    captioners = captioners_of(folders)
    shown = names_to_show(captioners, names)
    firsts = {name: captioners[0].verdicts(name, sampled=False) for name in shown}
    measured = [name for name, of in firsts.items() if of.benchmark.measure is not None]
    if measured and (names or len(measured) == len(shown)):
        raise DataError(
            f"stability: expected tasks with a judge, got {', '.join(measured)}, whose captions "
            "are measured without one"
        )
    own = [name for name, of in firsts.items() if not of.benchmark.counts_ahead]
    followed = [name for name in shown if name not in (*measured, *own)]
    if own and (names or not followed):
        raise DataError(
            f"{', '.join(own)}: the judge's replies say what it is asked, so no question can be "
            "followed from run to run; name other tasks with --tasks"
        )
    found = [_repeated(name, captioners) for name in followed]
    if max(of.n_runs for of in found) < 2:
        raise DataError(
            "stability: expected at least 2 judge runs, got 1, which cannot tell whether a verdict "
            f"is stable; set LMMS_CAPTIONS_JUDGE_RUNS={PAPER_RUNS} and score the same captions "
            "again, which asks only what was not asked before"
        )
    return found


def _repeated(name: str, captioners: Sequence[Captioner]) -> Repeated:
    verdicts = [captioner.verdicts(name, sampled=False) for captioner in captioners]
    benchmark = verdicts[0].benchmark
    n_runs = min(max(table.n_runs for table in of.tables) for of in verdicts)
    if not n_runs:
        raise DataError(f"{name}: expected judged captions, and one captioner has none")
    sides = []
    for of in verdicts:
        asked = pd.concat([_keyed(table, table.asked(), n_runs) for table in of.tables])
        sides.append(asked[asked["run"] < n_runs])
        if sides[-1]["question"].isna().any():
            raise DataError(
                f"{name}: expected the text of each question; score the captions again, which asks "
                "the judge nothing that it was asked before"
            )
    questions = pd.concat(sides).drop_duplicates(KEY).reset_index(drop=True)
    index = pd.MultiIndex.from_frame(questions[KEY])
    sources = map(benchmark.source_of_values, (benchmark.headline, *benchmark.metrics))
    same = {
        metric: pd.concat(
            [_same(rows, metric, verdicts[0], n_runs).reindex(index) for rows in sides],
            axis=1,
            keys=range(len(sides)),
        )
        for metric in dict.fromkeys(sources)
    }
    n_tasks = len(verdicts[0].tables)
    by_task = (is_by_task(questions, s, n_tasks) for s in benchmark.sections if s in questions)
    if n_tasks > 1 and not any(by_task):
        questions[TASKS] = questions["task"]
    names, paths = [c.name for c in captioners], [c.runs[name].path for c in captioners]
    return Repeated(name, names, verdicts, paths, n_runs, questions, same)


def _keyed(table: TaskTable, rows: pd.DataFrame, n_runs: int) -> pd.DataFrame:
    """Return rows of captions with enough judge runs, with what identifies their questions."""
    is_complete = rows.groupby("caption")["run"].transform("max") >= n_runs - 1
    rows = rows[is_complete].assign(task=table.task)
    texts = rows["question"].fillna("")
    return rows.assign(asked_before=rows.groupby(["video", "run", texts]).cumcount())


def _same(rows: pd.DataFrame, metric: str, verdicts: Verdicts, n_runs: int) -> pd.Series[Any]:
    """Return whether each question has the same value in every judge run, indexed by KEY.

    Source: VidCapBench, section 3.2 ("consistent across all three trials"). The rule for numbers
    and for unscored questions is ours.
    """
    known = verdicts.benchmark.metrics[metric]
    column = rows[verdicts.tables[0].head["values"][metric]]
    lists = [of if isinstance(of, list) else [of] * known.n_values for of in column]
    values = pd.DataFrame(lists, rows.index, dtype=object if known.labels else float)
    of_questions = values.groupby([rows[name] for name in KEY], sort=False)
    if known.labels:
        differs = of_questions.nunique() > 1
    else:
        apart = WITHIN * known.span / known.scale + _ROUNDING
        differs = of_questions.max() - of_questions.min() > apart
    found = pd.Series(pd.NA, differs.index, dtype="boolean")
    found[(of_questions.count() == n_runs).all(axis=1) & (n_runs > 1)] = True
    found[differs.any(axis=1)] = False
    return found


def document_of(repeated: Repeated) -> Document:
    """Return everything that is found of a task or a group, as JSON."""
    captioners = repeated.captioners
    rows, n_others = _rows(repeated)
    codes = repeated.headline.astype("Int8").fillna(-1).to_numpy(np.int8)
    times = consistent_times(codes.T)
    total = sum(times)
    return {
        "name": repeated.name,
        "benchmark": repeated.benchmark.name,
        "judges": repeated.judges,
        "captioners": captioners,
        "n_runs": repeated.n_runs,
        "n_videos": repeated.questions["video"].nunique(),
        "n_questions": len(repeated.questions),
        "same_verdict": rows,
        "groups_left_out": n_others,
        "consistent_times": [
            {
                "captioners": len(captioners) - place,
                "n_questions": n,
                "proportion": 100 * n / total if total else None,
            }
            for place, n in enumerate(times)
        ],
        "scores": list(_scores(repeated)),
        "noise_floor": _noise(repeated),
        "notes": list(notes_of(repeated)),
    }


def _rows(repeated: Repeated) -> tuple[list[Document], dict[str, int]]:
    """Return the shares of every group, and each section's groups that are left out."""
    questions, n_others = repeated.questions, {}
    everything = np.ones(len(questions), dtype=bool)
    cells: list[tuple[str, str, Any, pd.DataFrame]] = [(*ALL, everything, repeated.headline)]
    named = repeated.benchmark.sections
    others = [section for table in repeated.tables for section in table.head["sections"]]
    for section in dict.fromkeys((TASKS, *named, *others)):
        own = named.get(section, ())
        groups = list(ordered_groups(questions[section], own)) if section in questions else []
        most = max(_MAX_GROUPS, len(own))
        if len(groups) > most:
            n_others[section] = len(groups) - most
        for group in groups[:most]:
            is_in = (questions[section] == group).to_numpy()
            cells.append((section, group, is_in, repeated.headline))
    for metric, same in list(repeated.same.items())[1:]:
        cells.append((METRICS, metric, everything, same))
    videos = np.unique(questions["video"].to_numpy(str), return_inverse=True)[1]
    parts = [of for *_, mask, same in cells for of in _parts(same[mask], videos[mask])]
    found = intervals(parts, scale=100.0, bounds=(0.0, 100.0))
    shares = map(_share, found, (of.sum(axis=(0, 1, 2, 3)) for of in parts))
    rows = [
        {
            "section": section,
            "group": group,
            "n_questions": int(mask.sum()),
            "captioners": {name: next(shares) for name in repeated.captioners},
            "all_captioners": next(shares),
        }
        for section, group, mask, _ in cells
    ]
    return rows, n_others


def _share(found: Interval, counts: Floats) -> Document:
    n_same, n_known = map(int, counts)
    share = {"percent": found.value, "low": found.low, "high": found.high}
    share |= {"n_known": n_known, "n_same": n_same, "n_videos": found.n_videos}
    return share | {"method": found.method} | ({"note": found.note} if found.note else {})


def _parts(same: pd.DataFrame, videos: Any) -> Iterator[Floats]:  # noqa: ANN401 - of numpy
    """Yield what videos add to the share of each captioner, and of all captioners together."""
    of_all = same.all(axis=1).where(same.notna().all(axis=1))
    for column in (*(same[place] for place in same), of_all):
        flags = (column.fillna(value=False).to_numpy(bool), column.notna())
        counts = [np.bincount(videos, weights=of, minlength=1) for of in flags]
        yield np.stack(counts, axis=-1, dtype=float)[None, :, None, None]


def _scores(repeated: Repeated) -> Iterator[Document]:
    """Yield every score over all questions, and over those that are stable for all captioners."""
    same = repeated.headline.fillna(value=False).all(axis=1)
    stable = same[same].index
    for name, verdicts in zip(repeated.captioners, repeated.verdicts, strict=True):
        tables = []
        for table in verdicts.tables:
            rows = _keyed(table, table.rows, repeated.n_runs)
            is_stable = pd.MultiIndex.from_frame(rows[KEY]).isin(stable)
            marks = np.where(is_stable, "stable", "")
            tables.append(table.only(rows.assign(stability=marks)))
        marked = Verdicts(verdicts.name, tuple(tables), verdicts.is_pooled)
        for metric in repeated.benchmark.metrics:
            full = score_of(verdicts, metric)
            part = score_of(marked, metric, ("stability", "stable"))
            if full is not None and part is not None:
                yield {"captioner": name, "metric": metric, "full": full, "stable": part}


def _noise(repeated: Repeated) -> Document:
    """Return how far each metric moves by the judge's noise alone."""
    moves = {}
    for name, metric in repeated.benchmark.metrics.items():
        found = [parts_of([verdicts], name) for verdicts in repeated.verdicts]
        parts = [of.sides[0] for of in found if of is not None]
        runs = [values_of_runs(of, scale=metric.scale) for of in parts]
        if len(parts) == len(found) and not any(np.isnan(values).any() for values in runs):
            floors = [noise_floor(parts, scale=metric.scale, n_runs=n) for n in NOISE_RUNS]
            moves[name] = {
                "runs": dict(zip(map(str, NOISE_RUNS), floors, strict=True)),
                "largest_seen": max(float(np.ptp(values)) for values in runs),
                "scores": dict(zip(repeated.captioners, (of.tolist() for of in runs), strict=True)),
            }
    return moves


def notes_of(repeated: Repeated) -> Iterator[str]:
    """Yield what limits these shares."""
    n_captioners, n_runs = len(repeated.captioners), repeated.n_runs
    if n_runs < PAPER_RUNS or n_captioners < PAPER_CAPTIONERS:
        passing = unstable_that_pass(0.1, n_runs=n_runs, n_captioners=n_captioners)
        in_paper = unstable_that_pass(0.1, n_runs=PAPER_RUNS, n_captioners=PAPER_CAPTIONERS)
        yield (
            f"{plural(n_captioners, 'captioner')} with {plural(n_runs, 'judge run')} are few: "
            f"VidCapBench's split rests on {PAPER_CAPTIONERS} with {PAPER_RUNS} each. If a judge "
            "gives the other of two verdicts one time in ten, a question passes as stable with a "
            f"probability of {passing:.0%} here, {in_paper:.0%} there"
        )
    runs = sorted({max(table.n_runs for table in of.tables) for of in repeated.verdicts})
    if len(runs) > 1:
        numbers = listed(list(map(str, runs)))
        yield f"the captioners have {numbers} judge runs: the first {n_runs} are compared"
    for tables in zip(*(of.tables for of in repeated.verdicts), strict=False):
        for field, values in differences([table.signature for table in tables]).items():
            if field != "runs":
                shown = [f"{v} for {c}" for v, c in zip(values, repeated.captioners, strict=True)]
                yield f"the captioners were judged differently: {field} is {', '.join(shown)}"
    n_unknown = int(repeated.headline.isna().any(axis=1).sum())
    if n_unknown:
        yield (
            f"{n_unknown:,} of {len(repeated.questions):,} questions are not known to be stable or "
            "not for every captioner: one was not asked, or has a run without a verdict"
        )
    n_empty = sum(int(table.captions()["is_empty"].sum()) for table in repeated.tables)
    if n_empty:
        yield (
            f"{plural(n_empty, 'caption')} {'is' if n_empty == 1 else 'are'} empty, whose verdicts "
            "are the same in every run by definition"
        )
