"""Metrics of verdict tables: what each video adds to them, which scores and intervals come from."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, lcm
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, merged
from lmms_eval_captions.lmms_eval_tasks.results.verdict_file import CHEAP
from lmms_eval_captions.metrics.parts import values_of_runs

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
    from lmms_eval_captions.metrics.parts import RatioParts

Group = tuple[str, str]
"""A section of the breakdown and the name of a group in it."""


class VideoParts(NamedTuple):
    """Contributions of each video to a metric."""

    videos: NDArray[np.object_]
    """Ids of the videos of any side, sorted."""
    sides: list[RatioParts]
    """An array per captioner or judge, as :data:`RatioParts` describes, over these videos."""


def parts_of(
    several: Sequence[Verdicts], metric: str, group: Group | None = None
) -> VideoParts | None:
    """Return what each video adds to a metric, for several verdicts on the same task or group.

    With a group of the breakdown, its questions count only. ``None`` if the metric is no ratio of
    sums, or cannot be computed for one of them.
    """
    known = several[0].benchmark.metrics[metric]
    tables = [table for verdicts in several for table in verdicts.tables]
    is_missing = any(known.unavailable(t.metric_captions) is not None for t in tables)
    if known.ratios is None or is_missing:
        return None
    is_sampled = any(verdicts.is_sampled for verdicts in several)
    videos = np.array(sorted(set().union(*(verdicts.videos() for verdicts in several))), object)
    places = {video: place for place, video in enumerate(videos)}
    sides = []
    for verdicts in several:
        terms = [
            _term(table, metric, group, places, is_sampled=is_sampled)
            for table in ([merged(verdicts.tables)] if verdicts.is_pooled else verdicts.tables)
        ]
        if group is not None:
            # A task without a question of the group has no part in the group's mean.
            terms = [term for term in terms if term[..., 1].any()] or terms[:1]
        n_runs = lcm(*map(len, terms))
        repeated = [np.repeat(term, n_runs // len(term), axis=0) for term in terms]
        sides.append(np.stack(repeated, axis=2))
    return VideoParts(videos, sides)


def score_of(verdicts: Verdicts, metric: str, group: Group | None = None) -> float | None:
    """Return a metric, mean over judge runs; ``None`` as :func:`parts_of`."""
    found = parts_of([verdicts], metric, group)
    scale = verdicts.benchmark.metrics[metric].scale
    return None if found is None else float(values_of_runs(found.sides[0], scale=scale).mean())


def _term(
    table: TaskTable,
    metric: str,
    group: Group | None,
    places: dict[str, int],
    *,
    is_sampled: bool,
) -> RatioParts:
    """Return what videos add to one term, shape (n_runs, n_videos, n_factors, 2)."""
    known = table.benchmark.metrics[metric]
    captions = table.metric_captions
    runs = _values(table, table.head["values"][metric], known.n_values, group)
    if is_sampled:
        known, runs = _weighted(table, metric, group, runs)
    assert known.ratios is not None  # noqa: S101 - see parts_of
    of_captions = np.asarray([known.ratios(values, captions) for values in runs], np.float64)
    of_videos = np.zeros((len(places), len(runs), *of_captions.shape[2:]))
    owners = [places[caption.video_id] for caption in captions]
    np.add.at(of_videos, owners, of_captions.swapaxes(0, 1))
    found: RatioParts = of_videos.swapaxes(0, 1)
    return found


def _values(
    table: TaskTable, column: str, n_values: int, group: Group | None = None
) -> list[list[list[Any]]]:
    """Return a column's values by judge run and caption, several of each question in a row."""
    import pandas as pd

    rows = table.rows
    places, captions = pd.factorize(rows["caption"])
    is_read = rows["question_index"].notna()
    if group is not None:
        is_read &= rows[group[0]] == group[1] if group[0] in rows else False
    found: list[list[list[Any]]] = [[[] for _ in captions] for _ in range(table.n_runs or 1)]
    chosen = rows.loc[is_read, ["run", column]]
    values = chosen[column].astype(object).where(chosen[column].notna(), None)
    runs = chosen["run"].astype(int)
    for run, place, value in zip(runs, places[is_read.to_numpy()].tolist(), values, strict=True):
        if n_values == 1:
            found[run][place].append(value)
        else:
            found[run][place] += [None] * n_values if value is None else value
    return found


def _weighted(
    table: TaskTable, metric: str, group: Group | None, runs: list[list[list[Any]]]
) -> tuple[Metric, list[list[list[Any]]]]:
    """Return a metric and its values with each question counted for those that it stands for."""
    from lmms_eval_captions.lmms_eval_tasks.records import Sample
    from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighted_metric, weighted_run

    known, column = table.benchmark.metrics[metric], table.head["values"][metric]
    samples: list[Sample | None] = [None] * len(table.metric_captions)
    if table.is_sampled:
        weights = _values(table, "weight", 1, group)[0]
        has_cheap = f"{CHEAP}{column}" in table.rows
        cheap = (
            _values(table, f"{CHEAP}{column}", known.n_values, group)[0] if has_cheap else weights
        )
        samples = [
            Sample(weights=of, lam=lam, cheap={metric: [said]} if has_cheap else {})
            if of and None not in of
            else None
            for of, said, lam in zip(weights, cheap, table.captions()["lam"], strict=True)
        ]
    weighted = [
        [
            weighted_run(known, metric, values, sample if values else None)
            for values, sample in zip(of_run, samples, strict=True)
        ]
        for of_run in runs
    ]
    return weighted_metric(known), weighted


def caption_scores(table: TaskTable, metric: str) -> list[float | None]:
    """Return a metric of each caption alone, mean over judge runs; ``None`` if it has none."""
    known = table.benchmark.metrics[metric]
    runs = _values(table, table.head["values"][metric], known.n_values)
    scores: list[float | None] = []
    for place, caption in enumerate(table.metric_captions):
        is_available = known.unavailable([caption]) is None
        values = [run[place] for run in runs if run[place] and is_available]
        found = [known.score([of_run], [caption]) for of_run in values]
        finite = [score for score in found if isfinite(score)]
        scores.append(fmean(finite) if finite else None)
    return scores


def ordered_groups(values: pd.Series[Any], named: Sequence[str]) -> dict[str, int]:
    """Return the groups of a section with their questions: those named first, then the largest."""
    # Groups with as many questions come in the order of the file.
    counts = values.dropna().astype(object).value_counts(sort=False)
    first = [name for name in named if name in counts.index]
    others = sorted(counts.index.drop(first), key=lambda name: -counts[name])
    return {name: int(counts[name]) for name in (*first, *others)}


def group_counts(verdicts: Verdicts) -> dict[str, dict[str, int]]:
    """Return each section's groups with their questions in a judge run, in the paper's order."""
    rows = verdicts.rows()
    rows = rows[rows["question_index"].notna() & (rows["run"] == 0)]
    named = verdicts.benchmark.sections
    sections = dict.fromkeys([*named, *(s for t in verdicts.tables for s in t.head["sections"])])
    found = {s: ordered_groups(rows[s], named.get(s, ())) for s in sections if s in rows}
    return {section: counts for section, counts in found.items() if counts}


def is_by_task(rows: pd.DataFrame, section: str, n_tasks: int) -> bool:
    """Return True if each group of a section is the questions of one task, as VDC's aspects are."""
    pairs = rows[["task", section]].dropna().drop_duplicates()
    return bool(len(pairs) == pairs["task"].nunique() == pairs[section].nunique() == n_tasks)
