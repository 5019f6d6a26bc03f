"""Agreement of judges on the same captions, their leniency, and their ranking of captioners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, combinations, groupby, product
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.agree.panel import Judge, Panel, panels_of, runs_below
from lmms_eval_captions.analysis.parts import caption_scores, ordered_groups, parts_of, score_of
from lmms_eval_captions.analysis.results_folder import RunResults, member
from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, align_task, merged
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
from lmms_eval_captions.metrics.parts import Indices, values_of_runs

Document = dict[str, Any]
"""Findings of JSON's types, with intervals and differences as their records."""
_KEY: Final = ["video", "copy", "question", "occurrence"]
_MAX_GROUPS: Final = 20
"""Groups of a section that the benchmark does not name."""
_MIN_UNITS: Final = 20
"""Units that such a group must have."""
_ALPHA: Final = 0.05
_NOT_JUDGED: Final = "captions that not all of the judges have"
_OTHER_ANSWERS: Final = "captions kept whose questions have other gold answers: do not trust these"


class Shared(NamedTuple):
    """Captions that several judges judged."""

    benchmark: Benchmark[Any, Any]
    tables: list[tuple[str, list[TaskTable]]]
    """Captioner, and each judge's verdicts on the same questions of one task."""
    left_out: Counter[str]
    """Number of captions and questions by the reason for which they were left out or doubted."""

    def side(self, place: int, captioner: str = "", task: str = "") -> Verdicts:
        """Return one judge's verdicts over all or some captions, as terms of a mean."""
        by_owner = [
            [of[place] for _, of in own if task in ("", of[place].task)]
            for owner, own in groupby(self.tables, lambda pair: pair[0])
            if captioner in ("", owner)
        ]
        is_pooled = self.benchmark.pooled_group is not None
        tables = map(merged, filter(None, by_owner)) if is_pooled else chain(*by_owner)
        return Verdicts("", tuple(tables), is_pooled=False)


class Units(NamedTuple):
    """Verdicts of several judges, or of the runs of one, on the same questions."""

    metric: str
    labels: Sequence[str]
    """All possible verdicts; empty for numbers."""
    raters: list[int]
    """Columns of ``rows`` that hold each rater's verdict."""
    rows: pd.DataFrame
    """Other columns hold the video, captioner, and groups."""

    def scored(self) -> Units:
        """Return the units that all raters scored."""
        return self._replace(rows=self.rows.dropna(subset=self.raters))

    def ratings(self) -> Ratings:
        """Return the verdicts as indices of categories."""
        values = self.rows[self.raters]
        found = ratings_of(values.to_numpy().tolist(), self.labels)
        return replace(found, codes=found.codes.reshape(values.shape))

    def videos(self) -> Indices:
        """Return the index of each unit's video."""
        return np.unique(self.rows["video"].to_numpy(str), return_inverse=True)[1]

    def interval(self, coefficient: Coefficient) -> Interval:
        """Return an agreement with its interval over videos."""
        return agreement_interval(self.ratings(), self.videos(), coefficient=coefficient)

    def main(self) -> Interval:
        """Return kappa of two raters' labels, or alpha of their numbers."""
        return self.scored().interval("kappa" if self.labels else "interval")

    def agreement(self) -> Document:
        """Return all coefficients, over the units that all raters scored."""
        scored = self.scored()
        values = scored.rows[self.raters]
        is_pair, is_label = len(self.raters) == 2, bool(self.labels)
        correlation = None
        if is_pair and not is_label:
            first, second = values.to_numpy(float).T
            correlation = pearson_interval(first, second, scored.videos())
        is_same = values.eq(values[0], axis=0).all(axis=1)
        return {
            "measure": "verdict" if is_label else self.metric,
            "n_units": len(values),
            "n_unscored": len(self.rows) - len(values),
            "same": float(is_same.mean()) if len(values) else None,
            "kappa": scored.interval("kappa") if is_label and is_pair else None,
            "ac1": scored.interval("ac1") if is_label else None,
            "alpha": scored.interval("nominal" if is_label else "interval"),
            "correlation": correlation,
        }

    def confusion(self) -> Document:
        """Return the table of two raters' labels, a row per label of the first."""
        counts = kappa_parts(self.scored().ratings()).sum(axis=0)
        return {"labels": list(self.labels), "counts": counts.astype(int).tolist()}


def agree(folders: Sequence[Path], *, tasks: str | None = None) -> list[Document]:
    """Compare the judges of every benchmark in some folders with the judge of the first folder.

    Tasks and groups are separated by commas, by default all.

    Raises:
        DataError: If a folder cannot be read, or no caption was judged twice.
        SettingsError: If a task is not known.
    """
    chosen = None if tasks is None else set(tasks_of(tasks))
    panels = panels_of(runs_below(folders, chosen))
    found, other = [], []
    for panel in panels:
        # Measured twice, it is the same.
        is_judged = panel.benchmark.measure is None
        has_pair = any(a.runs.keys() & b.runs.keys() for a, b in combinations(panel.judges, 2))
        if is_judged and (has_pair or any(judge.n_runs > 1 for judge in panel.judges)):
            found.append(_findings(panel))
        by = f"judged by {', '.join(judge.name for judge in panel.judges)}"
        by = by if is_judged else "measured without a judge"
        other.append(f"{panel.name}: {by}, captions of {', '.join(panel.captioners)}")
    if not found:
        raise DataError(
            "expected captions that several judges judged, or one judge in several runs; these "
            f"folders hold {'; '.join(other)}. Give the folders of the same captions scored by "
            "another judge (LMMS_CAPTIONS_JUDGE), or score with LMMS_CAPTIONS_JUDGE_RUNS=3"
        )
    return found


def _findings(panel: Panel) -> Document:
    reference, *rest = panel.judges
    return {
        "benchmark": panel.name,
        "headline": panel.benchmark.headline,
        "tasks": panel.tasks,
        "captioners": panel.captioners,
        "judges": [_judge(panel, judge) for judge in panel.judges],
        "pairs": [
            _pair(panel, reference, other)
            for other in rest
            if reference.runs.keys() & other.runs.keys()
        ],
        "others": [
            (first.name, second.name, of)
            for first, second in combinations(rest, 2)
            for of in _agreements(_shared(panel, (first, second)))[:1]
        ],
        "together": _agreements(_shared(panel, panel.judges)) if len(rest) > 1 else [],
    }


def _shared(panel: Panel, judges: Sequence[Judge]) -> Shared:
    """Return the captions that all of some judges judged, word for word the same."""
    found = Shared(panel.benchmark, [], Counter())
    for (place, captioner), task in product(enumerate(panel.captioners), panel.tasks):
        runs = [judge.runs[place].tables for judge in judges if place in judge.runs]
        tables = [of[task] for of in runs if task in of]
        if len(tables) < len(judges):
            continue
        aligned, counts = align_task(_same_captions(tables, found.left_out))
        left_out = {
            _NOT_JUDGED: counts.n_other_captions,
            "questions that not all of the judges were asked": counts.n_other_questions,
            "questions that one of the judges left unscored": counts.n_unscored,
            _OTHER_ANSWERS: counts.n_other_answers,
        }
        found.left_out.update(left_out)
        if len(aligned[0].rows):
            found.tables.append((captioner, aligned))
    return found


def _same_captions(tables: Sequence[TaskTable], left_out: Counter[str]) -> list[TaskTable]:
    """Return the captions that are the same for all judges, and count others."""
    captions = pd.concat([table.captions().assign(side=i) for i, table in enumerate(tables)])
    is_missing = captions["is_empty"] | captions["is_dropped"] | captions["no_caption"].notna()
    by_video = captions.assign(is_missing=is_missing).groupby("video", sort=False)
    is_judged = by_video["side"].nunique() == len(tables)
    differs = is_judged & (by_video["caption_digest"].nunique() > 1)
    is_silent = is_judged & ~differs & by_video["is_missing"].any()
    left_out[_NOT_JUDGED] += int((~is_judged).sum())
    left_out["captions that differ between the judges"] += int(differs.sum())
    left_out["captions without a word, which no judge is asked about"] += int(is_silent.sum())
    kept = is_judged.index[is_judged & ~differs & ~is_silent]
    return [table.only(table.rows[table.rows["video"].isin(kept)]) for table in tables]


def _all_units(shared: Shared, n_runs: int = 0) -> dict[str, Units]:
    """Return the units of each metric that reads something different, the headline's first.

    None if the judge's replies say what was asked: there is nothing to match. Raters are the runs
    of the only judge, or with 0 runs the judges.
    """
    benchmark = shared.benchmark
    if not benchmark.counts_ahead:
        return {}
    names = map(benchmark.source_of_values, (benchmark.headline, *benchmark.metrics))
    return {name: _units(shared, name, n_runs) for name in dict.fromkeys(names)}


def _units(shared: Shared, metric: str, n_runs: int) -> Units:
    raters = list(range(n_runs or (len(shared.tables[0][1]) if shared.tables else 0)))
    key = ["captioners", "tasks", *_KEY, "run"]
    found = [pd.DataFrame(columns=[*key, "rater", "value"])]
    for captioner, tables in shared.tables:
        most = max(table.n_runs for table in tables)
        for place, table in enumerate(tables):
            rows = _singles(table, metric).assign(captioners=captioner, rater=place)
            if n_runs:
                is_complete = rows.groupby("caption")["run"].transform("max") == n_runs - 1
                rows = rows[is_complete].assign(rater=rows["run"], run=0)
            else:
                # Fewer judge runs count again.
                again = [rows.assign(run=rows["run"] + at) for at in range(0, most, table.n_runs)]
                rows = pd.concat([of[of["run"] < most] for of in again])
            found.append(rows)
    rows = pd.concat(found).set_index(key)
    values = rows.set_index("rater", append=True)["value"].unstack("rater")
    firsts = rows[rows["rater"] == 0].drop(columns=["rater", "value"])
    labels = shared.benchmark.metrics[metric].labels
    return Units(metric, labels, raters, firsts.join(values).reset_index())


def _singles(table: TaskTable, metric: str) -> pd.DataFrame:
    """Return the rows with a question, with one value: the mean if a metric reads several."""
    rows = table.asked()
    values = rows[table.head["values"][metric]]
    if table.benchmark.metrics[metric].n_values > 1:
        values = values.map(lambda of: None if of is None or None in of else fmean(of))
    text = rows["question"].fillna("")
    return rows.assign(value=values.astype(object), question=text, tasks=table.task)


def _agreements(shared: Shared) -> list[Document]:
    return [of.agreement() for of in _all_units(shared).values()] if shared.tables else []


def _judge(panel: Panel, judge: Judge) -> Document:
    shared, n_runs = _shared(panel, (judge,)), judge.n_runs
    units = _all_units(shared, n_runs) if n_runs > 1 else {}
    return {
        "name": judge.name,
        "n_runs": n_runs,
        "n_captions": sum(len(table.captions()) for _, (table,) in shared.tables),
        "price": _price(run for of in judge.runs.values() for run in of.runs),
        "own_runs": [of.agreement() for of in units.values()],
    }


def _pair(panel: Panel, reference: Judge, other: Judge) -> Document:
    shared = _shared(panel, (reference, other))
    units = _all_units(shared) if shared.tables else {}
    label = next((of for of in units.values() if of.labels), None)
    rows, n_left_out = _leniency(shared, units) if shared.tables else ([], 0)
    owners = list(dict.fromkeys(captioner for captioner, _ in shared.tables))
    return {
        "reference": reference.name,
        "other": other.name,
        "captioners": owners,
        "n_captions": sum(len(table.captions()) for _, (table, _) in shared.tables),
        "n_videos": len(shared.side(0).videos()),
        "left_out": dict(+shared.left_out),
        "agreements": [of.agreement() for of in units.values()],
        "confusion": None if label is None else label.confusion(),
        "leniency": rows,
        "n_groups_left_out": n_left_out,
        "slope": _slope(shared),
        "ranking": _ranking(shared, owners),
    }


def _leniency(shared: Shared, units: Mapping[str, Units]) -> tuple[list[Document], int]:
    """Return every metric under both judges over all captions, and verdicts in every group.

    Also returns the number of groups that are left out.
    """
    benchmark = shared.benchmark
    metrics = dict.fromkeys((benchmark.headline, *benchmark.metrics))
    rows = [row for metric in metrics for row in _row(shared, *ALL, metric, units.get(metric))]
    groups, n_left_out = _groups(benchmark, next(iter(units.values())).rows) if units else ([], 0)
    families: dict[tuple[str, str], list[Document]] = {}
    for (section, group), (metric, of) in product(groups, units.items()):
        own = of._replace(rows=of.rows[of.rows[section] == group])
        families.setdefault((section, metric), []).extend(
            found := list(_row(shared, section, group, metric, own))
        )
        rows += found
    for family in families.values():
        corrected = holm([row["difference"].p_value for row in family])
        for row, p_value in zip(family, corrected, strict=True):
            row["p_holm"] = p_value
    return rows, n_left_out


def _row(
    shared: Shared, section: str, group: str, metric: str, units: Units | None
) -> Iterator[Document]:
    """Yield a metric under both judges over a part; nothing without a value there."""
    captioner, task = (group if section == of else "" for of in ("captioners", "tasks"))
    sides = [shared.side(place, captioner, task) for place in (1, 0)]
    is_whole = section == ALL[0] or captioner or task
    found = parts_of(sides, metric, None if is_whole else (section, group))
    if found is None:
        return
    scale = shared.benchmark.metrics[metric].scale
    difference = paired_interval(*found.sides, scale=scale)
    other, reference = (float(values_of_runs(of, scale=scale).mean()) for of in found.sides)
    if not isnan(difference.difference):
        yield {
            "section": section,
            "group": group,
            "metric": metric,
            "n_units": None if units is None else len(units.scored().rows),
            "agreement": None if units is None else units.main(),
            "reference": reference,
            "other": other,
            "difference": difference,
            "p_holm": None,
        }


def _groups(
    benchmark: Benchmark[Any, Any], rows: pd.DataFrame
) -> tuple[list[tuple[str, str]], int]:
    """Return the groups to look at, captioners and tasks first, and how many are left out."""
    chosen: list[tuple[str, str]] = []
    n_left_out = 0
    # The breakdown has a group per aspect.
    has_aspects = all(task.aspect is not None for task in benchmark.tasks.values())
    for section in ("captioners", *(() if has_aspects else ("tasks",))):
        names = ordered_groups(rows[section], ())
        chosen += [(section, name) for name in names] if len(names) > 1 else []
    for section, named in benchmark.sections.items():
        counts = ordered_groups(rows[section], named) if section in rows else {}
        others = [name for name in counts if name not in named]
        large = [name for name in others[:_MAX_GROUPS] if counts[name] >= _MIN_UNITS]
        n_left_out += len(others) - len(large)
        chosen += [(section, name) for name in counts if name in (*named, *large)]
    return chosen, n_left_out


def _slope(shared: Shared) -> Document | None:
    """Return how the judges' difference grows with a caption's words, for 100 words more."""
    headline = shared.benchmark.headline
    if shared.benchmark.metrics[headline].ratios is None or not shared.tables:
        return None
    rows = pd.concat(
        [
            first.captions()[["video", "n_words"]].assign(
                first=caption_scores(first, headline), other=caption_scores(other, headline)
            )
            for _, (first, other) in shared.tables
        ]
    ).dropna()
    if rows.empty:
        return None
    words, first, other = rows[["n_words", "first", "other"]].to_numpy(float).T
    clusters = np.unique(rows["video"].to_numpy(str), return_inverse=True)[1]
    return asdict(clustered_slope((words / 100).tolist(), (other - first).tolist(), clusters))


def _ranking(shared: Shared, captioners: Sequence[str]) -> Document | None:
    """Return the captioners by the headline under both judges; ``None`` for fewer than two."""
    headline = shared.benchmark.headline
    metric = shared.benchmark.metrics[headline]
    scores: dict[str, list[float]] = {}
    for name in captioners:
        values = [score_of(shared.side(side, name), headline) for side in (0, 1)]
        known = [value for value in values if value is not None and not isnan(value)]
        scores |= {name: known} if len(known) == 2 else {}
    if len(scores) < 2:
        return None
    sign = -1 if metric.higher_is_better else 1
    first, other = (
        sorted(((c, of[side]) for c, of in scores.items()), key=lambda row: sign * row[1])
        for side in (0, 1)
    )
    swaps = []
    for pair in combinations(scores, 2):
        apart = [scores[pair[0]][side] - scores[pair[1]][side] for side in (0, 1)]
        if apart[0] * apart[1] < 0:
            a, b = pair if apart[0] > 0 else pair[::-1]
            sides = [_difference(shared, a, b, side) for side in (0, 1)]
            swaps.append({"captioners": [a, b], "reference": sides[0], "other": sides[1]})
    by_first, by_other = zip(*scores.values(), strict=True)
    tau = kendall_tau(by_first, [[score] for score in by_other], variant="b")
    return {"metric": headline, "reference": first, "other": other, "tau_b": tau, "swaps": swaps}


def is_significant(swap: Document) -> bool:
    """Return whether both judges' opposite differences are significant."""
    sides = (swap["reference"], swap["other"])
    return all(side.p_value is not None and side.p_value < _ALPHA for side in sides)


def _difference(shared: Shared, first: str, second: str, side: int) -> Difference:
    """Return the first captioner's headline minus the second's under a judge, on shared videos."""
    both = [shared.side(side, name) for name in (first, second)]
    videos = both[0].videos() & both[1].videos()
    cut = [
        Verdicts("", tuple(t.only(t.rows[t.rows["video"].isin(videos)]) for t in of.tables), False)
        for of in both
    ]
    headline = shared.benchmark.headline
    found = parts_of(cut, headline)
    sides = [np.zeros((1, 0, 1, 1, 2))] * 2 if found is None else found.sides
    return paired_interval(*sides, scale=shared.benchmark.metrics[headline].scale)


def _price(runs: Iterable[RunResults]) -> Document:
    """Return what some runs cost together, by their judging documents."""
    documents = [run.judging for run in runs]
    dollars = [member(of, "judging", "usd") for of in documents]
    is_known = all(isinstance(usd, int | float) for usd in dollars)
    usd = float(sum(dollars)) if is_known else None
    n_calls = n_unpaid = n_verdicts = 0
    for of in documents:
        n_calls += member(of, "judging", "calls") or 0
        n_unpaid += member(of, "judging", "shared") or 0
        n_unpaid += sum((member(of, "judging", "from_store") or {}).values())
        for task in (member(of, "tasks") or {}).values():
            # Groups count their tasks' questions again.
            n_verdicts += 0 if member(task, "tasks") else member(task, "unscored", "of") or 0
    price = None
    if usd is not None and n_calls and n_verdicts:
        price = 1000 * usd / n_calls * (n_calls + n_unpaid) / n_verdicts
    return {
        "usd": usd, "n_calls": n_calls, "n_unpaid": n_unpaid, "usd_per_1000_verdicts": price,
    }  # fmt: skip


def units_of(found: Document) -> Iterator[tuple[tuple[str, str], Document]]:
    """Yield the names of the raters of every agreement of a benchmark's findings, and it."""
    for pair in found["pairs"]:
        yield from (((pair["reference"], pair["other"]), of) for of in pair["agreements"])
    yield from (((first, second), of) for first, second, of in found["others"])
    yield from ((("", "all judges together"), of) for of in found["together"])
    for judge in found["judges"]:
        yield from ((("its own runs", judge["name"]), of) for of in judge["own_runs"])
