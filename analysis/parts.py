"""Metrics of verdict tables: what each video adds to them, which scores and intervals come from."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan, lcm
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, merged
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
from lmms_eval_captions.lmms_eval_tasks.verdict_file import CHEAP

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmms_eval_captions.metrics.parts import RatioParts

Group = tuple[str, str]
"""A section of the breakdown and the name of a group in it."""
_Lists = list[list[list[Any]]]
"""Values that a metric reads of each caption, shape (n_runs, n_captions, n_values)."""


class VideoParts(NamedTuple):
    """Contributions of each video to a metric."""

    videos: NDArray[np.object_]
    """Ids of the videos of any side, sorted."""
    sides: list[RatioParts]
    """An array per captioner or judge, as :data:`RatioParts` describes, over these videos."""


def parts_of(
    several: Sequence[Verdicts], metric: str, group: Group | None = None
) -> VideoParts | None:
    """Return what each video adds to a metric, for each captioner or judge.

    Args:
        several: Verdicts on the same task or group.
        metric: One of the benchmark's.
        group: Count the questions of this group only.

    Returns:
        ``None`` if the metric is no ratio of sums, or cannot be computed for one of them.
    """
    known = several[0].benchmark.metrics[metric]
    tables = [table for verdicts in several for table in verdicts.tables]
    is_available = all(known.unavailable(t.metric_captions) is None for t in tables)
    if known.ratios is None or not is_available:
        return None
    is_sampled = any(verdicts.is_sampled for verdicts in several)
    names = sorted({video for table in tables for video in table.rows["video"].unique()})
    videos = np.array(names, object)
    places = {video: place for place, video in enumerate(videos)}
    sides = [_parts(each, metric, group, places, is_sampled=is_sampled) for each in several]
    return VideoParts(videos, sides)


def _parts(
    verdicts: Verdicts,
    metric: str,
    group: Group | None,
    places: dict[str, int],
    *,
    is_sampled: bool,
) -> RatioParts:
    tables = [merged(verdicts.tables)] if verdicts.is_pooled else verdicts.tables
    terms = [_term(table, metric, group, places, is_sampled=is_sampled) for table in tables]
    if group is not None:
        # A task without a question of the group has no part in the group's mean.
        terms = [term for term in terms if term[..., 1].any()] or terms[:1]
    n_runs = lcm(*map(len, terms))
    return np.stack([np.repeat(term, n_runs // len(term), axis=0) for term in terms], axis=2)


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
    lists = values_of(table, metric, group) or [[[] for _ in captions]]
    if is_sampled:
        known, lists = _weighed(table, metric, group, known, lists)
    assert known.ratios is not None  # noqa: S101 - see parts_of
    of_captions = np.asarray([known.ratios(values, captions) for values in lists], np.float64)
    of_videos = np.zeros((len(places), len(lists), *of_captions.shape[2:]))
    owners = [places[caption.video_id] for caption in captions]
    np.add.at(of_videos, owners, of_captions.swapaxes(0, 1))
    found: RatioParts = of_videos.swapaxes(0, 1)
    return found


def values_of(table: TaskTable, metric: str, group: Group | None = None) -> _Lists:
    """Return what a metric reads of each caption in each judge run."""
    rows = table.rows
    is_read = rows["question_index"].notna()
    if group is not None:
        section, name = group
        if section not in rows:
            return []
        is_read &= rows[section] == name
    column = rows[table.head["values"][metric]]
    return _lists(table, is_read, column, table.benchmark.metrics[metric].n_values)


def _lists(
    table: TaskTable, is_read: pd.Series[Any], column: pd.Series[Any], n_values: int
) -> _Lists:
    import pandas as pd

    captions, known = pd.factorize(table.rows["caption"])
    lists: _Lists = [[[] for _ in known] for _ in range(table.n_runs)]
    runs = table.rows["run"].to_numpy()
    read = np.flatnonzero(is_read.to_numpy())
    values = column.to_numpy(object)
    for place in read.tolist():
        value = values[place]
        if value is not None and value != value:
            value = None
        of_caption = lists[int(runs[place])][captions[place]]
        if n_values == 1:
            of_caption.append(value)
        else:
            of_caption += (
                [None] * n_values
                if value is None
                else [None if one is None or one != one else one for one in value]
            )
    return lists


def _weighed(
    table: TaskTable, metric: str, group: Group | None, known: Metric, lists: _Lists
) -> tuple[Metric, _Lists]:
    """Return the metric and its values with each question counted for what it stands for."""
    from lmms_eval_captions.lmms_eval_tasks.sampling.weights import (
        Sample,
        weighted_metric,
        weighted_run,
    )

    samples = _samples(table, metric, group, Sample)
    weighed = [
        [
            weighted_run(known, metric, values, sample if values else None)
            for values, sample in zip(of_run, samples, strict=True)
        ]
        for of_run in lists
    ]
    return weighted_metric(known), weighed


def _samples(table: TaskTable, metric: str, group: Group | None, make: Any) -> list[Any]:  # noqa: ANN401
    """Return each caption's sample, ``None`` for one all of whose questions were asked."""
    rows = table.rows
    n_captions = rows["caption"].nunique()
    if not table.is_sampled:
        return [None] * n_captions
    is_read = rows["question_index"].notna() & (rows["run"] == 0)
    if group is not None:
        is_read &= rows[group[0]] == group[1]
    column = f"{CHEAP}{table.head['values'][metric]}"
    weights = _lists(table, is_read, rows["weight"], 1)[0]
    has_cheap = column in rows
    n_values = table.benchmark.metrics[metric].n_values
    cheap = _lists(table, is_read, rows[column], n_values)[0] if has_cheap else [[]] * n_captions
    lams = table.captions()["lam"].tolist()
    return [
        None
        if None in of or not of
        else make(weights=of, lam=lam, cheap={metric: [said]} if has_cheap else {})
        for of, said, lam in zip(weights, cheap, lams, strict=True)
    ]


def caption_scores(table: TaskTable, metric: str) -> list[float | None]:
    """Return a metric of each caption alone, mean over judge runs; ``None`` if it has none."""
    known = table.benchmark.metrics[metric]
    captions = table.metric_captions
    runs = values_of(table, metric)
    scores: list[float | None] = []
    for place, caption in enumerate(captions):
        if known.unavailable([caption]) is not None:
            scores.append(None)
            continue
        found = [known.score([run[place]], [caption]) for run in runs if run[place]]
        found = [score for score in found if not isnan(score)]
        value = fmean(found) if found else None
        scores.append(value if value is not None and isfinite(value) else None)
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


def groups_of(verdicts: Verdicts, section: str | None = None) -> list[Group]:
    """Return the groups of a section, by default of the first whose groups the benchmark names."""
    found = group_counts(verdicts)
    if section is None:
        named = verdicts.benchmark.sections
        section = next((name for name in found if named.get(name) and len(found[name]) > 1), None)
    return [(section, name) for name in found.get(section, ())] if section else []


def tasks_of_groups(verdicts: Verdicts, groups: Sequence[Group]) -> dict[Group, str]:
    """Return each group's task if every group is one task's questions, as VDC's aspects are."""
    if not groups or len(groups) != len(verdicts.tables):
        return {}
    section = groups[0][0]
    found: dict[Group, str] = {}
    for table in verdicts.tables:
        names = set(table.rows[section].dropna()) if section in table.rows else set()
        if len(names) == 1:
            found[section, names.pop()] = table.task
    return {group: found[group] for group in groups} if found.keys() == set(groups) else {}
