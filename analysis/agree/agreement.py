"""How far judges of the same captions agree, who is more lenient, and how they rank captioners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.analysis.agree.panel import Judge, Panel, panels_of, runs_below
from lmms_eval_captions.analysis.alignment import align_task
from lmms_eval_captions.analysis.parts import caption_scores, parts_of
from lmms_eval_captions.analysis.results_folder import RunResults
from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, merged
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of
from lmms_eval_captions.metrics.agreement import (
    Coefficient,
    Ratings,
    agreement_interval,
    kappa_parts,
    ratings_of,
)
from lmms_eval_captions.metrics.correlation import clustered_slope, kendall_tau, pearson_interval
from lmms_eval_captions.metrics.intervals import Interval
from lmms_eval_captions.metrics.paired import Difference, holm, paired_interval
from lmms_eval_captions.metrics.parts import values_of_runs

if TYPE_CHECKING:
    import pandas as pd

Document = dict[str, Any]
"""Findings of JSON's types, with intervals and differences as their records."""
_MAX_GROUPS: Final = 20
"""Groups of a section that the benchmark does not name."""
_MIN_UNITS: Final = 20
"""Units that such a group must have."""
_ALPHA: Final = 0.05
_NOT_JUDGED: Final = "captions that not all of the judges have"
_OTHER_ANSWERS: Final = "captions kept whose questions have other gold answers: do not trust these"


@dataclass(frozen=True, slots=True)
class Shared:
    """Captions that several judges judged."""

    tables: list[tuple[str, tuple[TaskTable, ...]]]
    """Captioner, and each judge's verdicts on the same questions of one task."""
    left_out: Counter[str]
    """What was left out, or must be known, with its number."""

    def side(self, place: int, captioner: str | None = None, task: str | None = None) -> Verdicts:
        """Return one judge's verdicts over captioners and tasks, as terms of a mean."""
        benchmark = self.tables[0][1][0].benchmark
        chosen = [
            (owner, of[place])
            for owner, of in self.tables
            if captioner in (None, owner) and task in (None, of[place].task)
        ]
        tables = [table for _, table in chosen]
        if benchmark.pooled_group:
            owners = dict.fromkeys(owner for owner, _ in chosen)
            tables = [merged([t for owner, t in chosen if owner == name]) for name in owners]
        return Verdicts("", tuple(tables), is_pooled=False)


def agree(
    folders: Sequence[Path], *, tasks: str | None = None, reference: str | None = None
) -> list[Document]:
    """Compare the judges of every benchmark in some folders.

    Args:
        folders: As lmms-eval's ``--output_path``.
        tasks: Names of tasks and groups, separated by commas; ``None`` for all.
        reference: The judge to compare with, by its name or a part that no other has; ``None`` for
            that of the first folder.

    Raises:
        DataError: If a folder cannot be read, or no caption was judged twice.
        SettingsError: If a task or the reference is not known.
    """
    chosen = None if tasks is None else set(tasks_of(tasks))
    panels = panels_of(runs_below(folders, chosen), reference)
    found = [_findings(panel) for panel in panels if _is_compared(panel)]
    if not found:
        held = "; ".join(
            f"{panel.name}: {_judged(panel)}, captions of {', '.join(panel.captioners)}"
            for panel in panels
        )
        raise DataError(
            "expected captions that several judges judged, or one judge in several runs; these "
            f"folders hold {held}. Give the folders of the same captions scored by another judge "
            "(LMMS_CAPTIONS_JUDGE), or score with LMMS_CAPTIONS_JUDGE_RUNS=3"
        )
    return found


def _is_compared(panel: Panel) -> bool:
    if panel.benchmark.measure is not None:
        return False  # measured twice, it is the same
    has_pair = any(a.runs.keys() & b.runs.keys() for a, b in combinations(panel.judges, 2))
    return has_pair or any(_n_runs(judge) > 1 for judge in panel.judges)


def _judged(panel: Panel) -> str:
    if panel.benchmark.measure is not None:
        return "measured without a judge"
    return f"judged by {', '.join(judge.name for judge in panel.judges)}"


def _n_runs(judge: Judge) -> int:
    return max(table.n_runs for run in judge.runs.values() for table in run.tables.values())


def _findings(panel: Panel) -> Document:
    judges = panel.judges
    others = [
        (first.name, second.name, found)
        for first, second in combinations(judges[1:], 2)
        for found in _agreements(panel, (first, second))[:1]
    ]
    return {
        "benchmark": panel.name,
        "headline": panel.benchmark.headline,
        "tasks": panel.tasks,
        "captioners": panel.captioners,
        "judges": [_judge(panel, judge) for judge in judges],
        "pairs": [p for other in judges[1:] if (p := _pair(panel, judges[0], other))],
        "others": others,
        "together": _agreements(panel, judges) if len(judges) > 2 else [],
    }


def shared_captions(panel: Panel, judges: Sequence[Judge]) -> Shared:
    """Return the captions that all of some judges judged, word for word the same."""
    tables = []
    left_out: Counter[str] = Counter()
    for place, captioner in enumerate(panel.captioners):
        if any(place not in judge.runs for judge in judges):
            continue
        runs = [judge.runs[place].tables for judge in judges]
        for task in panel.tasks:
            if all(task in of for of in runs):
                same, reasons = _same_captions([of[task] for of in runs])
                aligned, counts = align_task(same)
                left_out.update(reasons)
                left_out.update(
                    {
                        _NOT_JUDGED: counts.n_other_captions,
                        "questions that not all of the judges were asked": counts.n_other_questions,
                        "questions that one of the judges left unscored": counts.n_unscored,
                        _OTHER_ANSWERS: counts.n_other_answers,
                    }
                )
                if len(aligned[0].rows):
                    tables.append((captioner, tuple(aligned)))
    return Shared(tables, +left_out)


def _same_captions(tables: Sequence[TaskTable]) -> tuple[list[TaskTable], Counter[str]]:
    """Return the captions that are the same for all judges, and why others are left out."""
    captions = [table.captions().set_index("video") for table in tables]
    left_out: Counter[str] = Counter()
    kept = set()
    for video in dict.fromkeys(video for of in captions for video in of.index):
        if not all(video in of.index for of in captions):
            left_out[_NOT_JUDGED] += 1
            continue
        rows = [of.loc[[video]] for of in captions]
        if len({digest for row in rows for digest in row["caption_digest"]}) > 1:
            left_out["captions that differ between the judges"] += 1
        elif any(_is_empty(row) for row in rows):
            left_out["captions without a word, which no judge is asked about"] += 1
        else:
            kept.add(video)
    return [table.only(table.rows[table.rows["video"].isin(kept)]) for table in tables], left_out


def _is_empty(rows: pd.DataFrame) -> bool:
    is_missing = rows["is_empty"] | rows["is_dropped"] | rows["no_caption"].notna()
    return bool(is_missing.any())


def _sources(benchmark: Benchmark[Any, Any]) -> list[str]:
    """Return the metrics that read something different, the headline's first.

    None if the judge's replies say what was asked: there is nothing to match.
    """
    if not benchmark.counts_ahead:
        return []
    names = dict.fromkeys(map(benchmark.source_of_values, benchmark.metrics))
    main = benchmark.source_of_values(benchmark.headline)
    return sorted(names, key=lambda name: name != main)


@dataclass(frozen=True, slots=True)
class Units:
    """Verdicts of several judges, or of the runs of one, on the same questions."""

    metric: str
    is_label: bool
    rows: pd.DataFrame
    """Columns 0, 1, ... hold each rater's label or number; others the video, captioner, groups."""
    ratings: Ratings

    @classmethod
    def of(cls, benchmark: Benchmark[Any, Any], metric: str, rows: pd.DataFrame, n: int) -> Units:
        """Return the units of a table with a column for each of n raters."""
        columns = [rows[place].tolist() for place in range(n)] if len(rows) else [[]] * n
        known = next((v for column in columns for v in column if v is not None), None)
        labels = tuple(benchmark.metrics[metric].labels)
        values = list(zip(*columns, strict=True))
        ratings = ratings_of(values, labels)
        if not values:
            ratings = Ratings(np.empty((0, n), dtype=np.intp), ratings.categories)
        return cls(metric, bool(labels) or isinstance(known, str), rows, ratings)

    def only(self, chosen: Any) -> Units:  # noqa: ANN401 - a mask of numpy or pandas
        """Return some of the units."""
        mask = np.asarray(chosen, dtype=bool)
        ratings = Ratings(self.ratings.codes[mask], self.ratings.categories)
        return Units(self.metric, self.is_label, self.rows[mask], ratings)

    def scored(self) -> Units:
        """Return the units that all raters scored."""
        return self.only((self.ratings.codes >= 0).all(axis=1))

    def interval(self, coefficient: Coefficient) -> Interval:
        """Return an agreement with its interval over videos."""
        _, videos = np.unique(self.rows["video"].to_numpy(str), return_inverse=True)
        return agreement_interval(self.ratings, videos, coefficient=coefficient)

    def main(self) -> Interval:
        """Return kappa of two raters' labels, or alpha of their numbers."""
        return self.scored().interval("kappa" if self.is_label else "interval")

    def agreement(self) -> Document:
        """Return all coefficients, over the units that all raters scored."""
        scored = self.scored()
        codes = scored.ratings.codes
        is_pair = codes.shape[1] == 2
        n = len(codes)
        correlation = None
        if is_pair and not self.is_label:
            sides = [scored.rows[side].astype(float).tolist() if n else [] for side in (0, 1)]
            _, videos = np.unique(scored.rows["video"].to_numpy(str), return_inverse=True)
            correlation = pearson_interval(sides[0], sides[1], videos)
        return {
            "measure": "verdict" if self.is_label else self.metric,
            "n_units": n,
            "n_unscored": len(self.rows) - n,
            "same": float((codes == codes[:, :1]).all(axis=1).mean()) if n else None,
            "kappa": scored.interval("kappa") if self.is_label and is_pair else None,
            "ac1": scored.interval("ac1") if self.is_label else None,
            "alpha": scored.interval("nominal" if self.is_label else "interval"),
            "correlation": correlation,
        }

    def confusion(self) -> Document:
        """Return the table of two raters' labels, a row per label of the first."""
        counts = kappa_parts(self.scored().ratings).sum(axis=0)
        labels = list(map(str, self.ratings.categories))
        return {"labels": labels, "counts": counts.astype(int).tolist()}


def _units(shared: Shared, benchmark: Benchmark[Any, Any], metric: str, n_judges: int) -> Units:
    """Return the verdicts of judges; runs of a judge with fewer runs than others count again."""
    import pandas as pd

    found = [
        _matched(
            captioner,
            [_singles(table, metric) for table in tables],
            max(table.n_runs for table in tables),
        )
        for captioner, tables in shared.tables
    ]
    rows = pd.concat(found, ignore_index=True) if found else pd.DataFrame({"video": []})
    return Units.of(benchmark, metric, rows, n_judges)


def _units_of_runs(shared: Shared, benchmark: Benchmark[Any, Any], metric: str, n: int) -> Units:
    """Return the verdicts of one judge in its runs, of captions that have all of them."""
    import pandas as pd

    found = []
    for captioner, (table,) in shared.tables:
        rows = _singles(table, metric)
        complete = rows.groupby("caption")["run"].transform("max") == n - 1
        sides = [rows[complete & (rows["run"] == run)].assign(run=0) for run in range(n)]
        found.append(_matched(captioner, sides, 1))
    rows = pd.concat(found, ignore_index=True) if found else pd.DataFrame({"video": []})
    return Units.of(benchmark, metric, rows, n)


def _singles(table: TaskTable, metric: str) -> pd.DataFrame:
    """Return the rows with a question, with one value: the mean if a metric reads several."""
    rows = table.asked()
    values = rows[table.head["values"][metric]]
    if table.benchmark.metrics[metric].n_values > 1:
        values = values.map(lambda of: None if of is None or None in of else fmean(of))
    text = rows["question"].fillna("")
    return rows.assign(value=values.astype(object), question=text, task=table.task)


def _matched(captioner: str, sides: Sequence[pd.DataFrame], n_runs: int) -> pd.DataFrame:
    """Match questions and judge runs of several raters, a column each."""
    import pandas as pd

    key = ["video", "copy", "question", "occurrence"]
    pieces = []
    for run in range(n_runs):
        runs = [
            of[of["run"] == run % (int(of["run"].max()) + 1)] if len(of) else of for of in sides
        ]
        base = runs[0].drop(columns="value").set_index(key)
        for place, of in enumerate(runs):
            base[place] = of.set_index(key)["value"]
        pieces.append(base.reset_index())
    found = pd.concat(pieces, ignore_index=True).assign(captioners=captioner)
    found["tasks"] = found["task"]
    for place in range(len(sides)):
        found[place] = found[place].astype(object).where(found[place].notna(), None)
    return found


def _agreements(panel: Panel, judges: Sequence[Judge]) -> list[Document]:
    shared = shared_captions(panel, judges)
    if not shared.tables:
        return []
    return [
        _units(shared, panel.benchmark, metric, len(judges)).agreement()
        for metric in _sources(panel.benchmark)
    ]


def _judge(panel: Panel, judge: Judge) -> Document:
    shared = shared_captions(panel, (judge,))
    n_runs = _n_runs(judge)
    metrics = _sources(panel.benchmark) if n_runs > 1 else []
    n_captions = sum(len(table.captions()) for _, (table,) in shared.tables)
    return {
        "name": judge.name,
        "n_runs": n_runs,
        "n_captions": n_captions,
        "price": price_of(run for of in judge.runs.values() for run in of.runs),
        "own_runs": [
            _units_of_runs(shared, panel.benchmark, metric, n_runs).agreement()
            for metric in metrics
        ],
    }


def _pair(panel: Panel, reference: Judge, other: Judge) -> Document | None:
    if not reference.runs.keys() & other.runs.keys():
        return None
    benchmark = panel.benchmark
    shared = shared_captions(panel, (reference, other))
    found: Document = {
        "reference": reference.name, "other": other.name, "captioners": [], "n_captions": 0,
        "n_videos": 0, "left_out": dict(shared.left_out), "agreements": [], "confusion": None,
        "leniency": [], "n_groups_left_out": 0, "slope": None, "ranking": None,
    }  # fmt: skip
    if not shared.tables:
        return found
    units = {name: _units(shared, benchmark, name, 2) for name in _sources(benchmark)}
    label = next((of for of in units.values() if of.is_label), None)
    rows, n_left_out = _leniency(shared, units)
    captions = [table.captions() for _, (table, _) in shared.tables]
    owners = dict.fromkeys(captioner for captioner, _ in shared.tables)
    return found | {
        "captioners": [name for name in panel.captioners if name in owners],
        "n_captions": sum(map(len, captions)),
        "n_videos": len({video for of in captions for video in of["video"]}),
        "agreements": [of.agreement() for of in units.values()],
        "confusion": None if label is None else label.confusion(),
        "leniency": rows,
        "n_groups_left_out": n_left_out,
        "slope": _slope(shared, benchmark),
        "ranking": _ranking(shared, list(owners)),
    }


def _leniency(shared: Shared, units: Mapping[str, Units]) -> tuple[list[Document], int]:
    """Return every metric under both judges over all captions, and verdicts in every group."""
    benchmark = shared.tables[0][1][0].benchmark
    metrics = sorted(benchmark.metrics, key=lambda name: name != benchmark.headline)
    rows = [_row(shared, *ALL, metric, units.get(metric)) for metric in metrics]
    groups, n_left_out = _groups(benchmark, next(iter(units.values()))) if units else ([], 0)
    for section, group in groups:
        for metric, of in units.items():
            rows.append(_row(shared, section, group, metric, of.only(of.rows[section] == group)))
    found = [row for row in rows if row is not None]
    families: dict[tuple[str, str], list[Document]] = {}
    for row in found:
        if (row["section"], row["group"]) != ALL:
            families.setdefault((row["section"], row["metric"]), []).append(row)
    for family in families.values():
        corrected = holm([row["difference"].p_value for row in family])
        for row, p_value in zip(family, corrected, strict=True):
            row["p_holm"] = p_value
    return found, n_left_out


def _row(
    shared: Shared, section: str, group: str, metric: str, units: Units | None
) -> Document | None:
    """Return a metric under both judges over a part; ``None`` without a value there."""
    captioner = group if section == "captioners" else None
    task = group if section == "tasks" else None
    is_whole = (section, group) == ALL or captioner is not None or task is not None
    sides = [shared.side(place, captioner, task) for place in (1, 0)]
    found = parts_of(sides, metric, None if is_whole else (section, group))
    if found is None:
        return None
    scale = sides[0].benchmark.metrics[metric].scale
    other, reference = found.sides
    difference = paired_interval(other, reference, scale=scale)
    if isnan(difference.difference):
        return None
    return {
        "section": section,
        "group": group,
        "metric": metric,
        "n_units": None if units is None else len(units.scored().rows),
        "agreement": None if units is None else units.main(),
        "reference": _score(reference, scale),
        "other": _score(other, scale),
        "difference": difference,
        "p_holm": None,
    }


def _score(parts: Any, scale: float) -> float:  # noqa: ANN401 - numpy's arrays
    """Return a metric over the videos that have a part in it, mean over judge runs."""
    return float(values_of_runs(parts, scale=scale).mean())


def _groups(benchmark: Benchmark[Any, Any], units: Units) -> tuple[list[tuple[str, str]], int]:
    """Return the groups to look at, captioners and tasks first, and how many are left out."""
    chosen: list[tuple[str, str]] = []
    n_left_out = 0
    has_aspects = all(task.aspect is not None for task in benchmark.tasks.values())
    for section in ("captioners", "tasks", *benchmark.sections):
        if section not in units.rows or (section == "tasks" and has_aspects):
            continue  # the breakdown has a group per aspect
        counts = Counter(units.rows[section].dropna().tolist())
        if section in ("captioners", "tasks") and len(counts) < 2:
            continue
        named = [name for name in benchmark.sections.get(section, ()) if name in counts]
        others = [name for name, _ in counts.most_common() if name not in named]
        large = others
        if section in benchmark.sections:
            large = [name for name in others[:_MAX_GROUPS] if counts[name] >= _MIN_UNITS]
        n_left_out += len(others) - len(large)
        chosen += [(section, name) for name in (*named, *large)]
    return chosen, n_left_out


def _slope(shared: Shared, benchmark: Benchmark[Any, Any]) -> Document | None:
    """Return how the judges' difference grows with a caption's words, for 100 words more."""
    if benchmark.metrics[benchmark.headline].ratios is None:
        return None
    words, apart, videos = [], [], []
    for _, tables in shared.tables:
        captions = tables[0].captions()
        scores = [caption_scores(table, benchmark.headline) for table in tables]
        rows = zip(captions["n_words"], captions["video"], *scores, strict=True)
        for n_words, video, reference, other in rows:
            if n_words is not None and reference is not None and other is not None:
                words.append(n_words / 100)
                apart.append(other - reference)
                videos.append(video)
    if not words:
        return None
    _, clusters = np.unique(videos, return_inverse=True)
    return asdict(clustered_slope(words, apart, clusters))


def _ranking(shared: Shared, captioners: Sequence[str]) -> Document | None:
    """Return the captioners by the headline under both judges; ``None`` for fewer than two."""
    benchmark = shared.tables[0][1][0].benchmark
    metric = benchmark.metrics[benchmark.headline]
    scores: dict[str, tuple[float, ...]] = {}
    for name in captioners:
        found = [parts_of([shared.side(s, name)], benchmark.headline) for s in (0, 1)]
        values = tuple(_score(of.sides[0], metric.scale) for of in found if of is not None)
        if len(values) == 2 and not any(map(isnan, values)):
            scores[name] = values
    if len(scores) < 2:
        return None
    sign = -1 if metric.higher_is_better else 1
    tables = [
        sorted(((c, of[side]) for c, of in scores.items()), key=lambda row: sign * row[1])
        for side in (0, 1)
    ]
    swaps = []
    for a, b in combinations(scores, 2):
        if (scores[a][0] - scores[b][0]) * (scores[a][1] - scores[b][1]) < 0:
            first, second = (a, b) if scores[a][0] > scores[b][0] else (b, a)
            sides = [_difference(shared, first, second, side) for side in (0, 1)]
            swaps.append({"captioners": [first, second], "reference": sides[0], "other": sides[1]})
    first_judge, other_judge = zip(*scores.values(), strict=True)
    tau = kendall_tau(first_judge, [[score] for score in other_judge], variant="b")
    return {
        "metric": benchmark.headline, "reference": tables[0], "other": tables[1], "tau_b": tau,
        "swaps": swaps,
    }  # fmt: skip


def is_significant(swap: Document) -> bool:
    """Return whether both judges' opposite differences are significant."""
    sides = (swap["reference"], swap["other"])
    return all(side.p_value is not None and side.p_value < _ALPHA for side in sides)


def _difference(shared: Shared, first: str, second: str, side: int) -> Difference:
    """Return the first captioner's headline minus the second's under a judge, on shared videos."""
    both = [shared.side(side, name) for name in (first, second)]
    videos = set.intersection(*({v for t in of.tables for v in t.rows["video"]} for of in both))
    cut = [
        Verdicts("", tuple(t.only(t.rows[t.rows["video"].isin(videos)]) for t in of.tables), False)
        for of in both
    ]
    benchmark = cut[0].benchmark
    found = parts_of(cut, benchmark.headline)
    sides = [np.zeros((1, 0, 1, 1, 2))] * 2 if found is None else found.sides
    return paired_interval(*sides, scale=benchmark.metrics[benchmark.headline].scale)


def price_of(runs: Iterable[RunResults]) -> Document:
    """Return what some runs cost together, by their judging documents."""
    documents = [run.judging for run in runs]
    totals = [_object(document, "judging") for document in documents]
    dollars = [of.get("usd") for of in totals]
    known = [float(usd) for usd in dollars if isinstance(usd, int | float)]
    usd = sum(known) if len(known) == len(dollars) else None
    n_calls = sum(_count(of, "calls") for of in totals)
    stored = [_object(of, "from_store") for of in totals]
    n_unpaid = sum(_count(of, "shared") for of in totals)
    n_unpaid += sum(_count(of, endpoint) for of in stored for endpoint in of)
    n_verdicts = sum(_n_verdicts(document) for document in documents)
    is_priced = usd is not None and n_calls and n_verdicts
    return {
        "usd": usd,
        "n_calls": n_calls,
        "n_unpaid": n_unpaid,
        "usd_per_1000_verdicts": 1000 * usd / n_calls * (n_calls + n_unpaid) / n_verdicts
        if is_priced and usd is not None
        else None,
    }


def _n_verdicts(document: Mapping[str, object]) -> int:
    tasks = _object(document, "tasks")
    entries = [_object(tasks, name) for name in tasks]
    # Groups count their tasks' questions again.
    return sum(_count(_object(of, "unscored"), "of") for of in entries if not of.get("tasks"))


def _object(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    member = document.get(name)
    return member if isinstance(member, Mapping) else {}


def _count(document: Mapping[str, object], name: str) -> int:
    count = document.get(name)
    return count if isinstance(count, int) else 0


def units_of(found: Document) -> Iterator[Document]:
    """Yield every agreement of a benchmark's findings, with the names of its raters."""
    for pair in found["pairs"]:
        yield from ({"of": (pair["reference"], pair["other"]), **a} for a in pair["agreements"])
    yield from ({"of": (first, second), **a} for first, second, a in found["others"])
    yield from ({"of": ("", "all judges together"), **a} for a in found["together"])
    for judge in found["judges"]:
        yield from ({"of": ("its own runs", judge["name"]), **a} for a in judge["own_runs"])
