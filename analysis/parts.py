"""Metrics of verdict tables: what each video adds to them, which scores and intervals come from."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmms_eval_captions.analysis.task_table import TaskTable, Verdicts, merged
from lmms_eval_captions.lmms_eval_tasks.records import Sample
from lmms_eval_captions.lmms_eval_tasks.results.intervals import (
    Runs,
    mean_of_terms,
    parts_by_video,
)
from lmms_eval_captions.lmms_eval_tasks.results.verdict_file import CHEAP
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighted_metric, weighted_run
from lmms_eval_captions.metrics.parts import values_of_runs

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

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
    is_sampled = any(verdicts.is_sampled for verdicts in several)
    read = weighted_metric(known) if is_sampled else known
    videos = sorted(set().union(*(verdicts.videos() for verdicts in several)))
    sides = []
    for verdicts in several:
        terms = []
        for table in [merged(verdicts.tables)] if verdicts.is_pooled else verdicts.tables:
            runs = _runs(table, metric, group, is_weighted=is_sampled)
            term = parts_by_video(read, runs, table.records, videos)
            if term is None:
                return None
            terms.append(term)
        if group is not None:
            # A task without a question of the group has no part in the group's mean.
            terms = [term for term in terms if term[..., 1].any()] or terms[:1]
        sides.append(mean_of_terms(terms))
    return VideoParts(np.array(videos, object), sides)


def score_of(verdicts: Verdicts, metric: str, group: Group | None = None) -> float | None:
    """Return a metric, mean over judge runs; ``None`` as :func:`parts_of`."""
    found = parts_of([verdicts], metric, group)
    scale = verdicts.benchmark.metrics[metric].scale
    return None if found is None else float(values_of_runs(found.sides[0], scale=scale).mean())


def caption_scores(table: TaskTable, metric: str) -> list[float | None]:
    """Return a metric of each caption alone, mean over judge runs; ``None`` if it has none."""
    known = table.benchmark.metrics[metric]
    scores: list[float | None] = []
    for record, *runs in zip(table.records, *_runs(table, metric), strict=True):
        is_known = known.unavailable([record]) is None
        found = [known.score([of_run], [record]) for of_run in runs if of_run and is_known]
        finite = [score for score in found if isfinite(score)]
        scores.append(fmean(finite) if finite else None)
    return scores


def _runs(
    table: TaskTable, metric: str, group: Group | None = None, *, is_weighted: bool = False
) -> Runs:
    """Return the values that a metric reads of a table's captions in each judge run.

    Weighted values are of questions of which a sample was judged.
    """
    known, column = table.benchmark.metrics[metric], table.head["values"][metric]
    values = _values(table, column, known.n_values, group)
    samples: list[Sample | None] = [None] * len(values)
    if table.is_sampled and is_weighted:
        cheap: Sequence[Any] = [()] * len(values)
        if f"{CHEAP}{column}" in table.rows:
            cheap = _values(table, f"{CHEAP}{column}", known.n_values, group)
        weights = _values(table, "weight", 1, group)
        for place, lam in enumerate(table.captions()["lam"]):
            of, said = weights[place][0], cheap[place][:1]
            if of and None not in of:
                samples[place] = Sample(weights=of, lam=lam, cheap={metric: said} if said else {})
    if is_weighted:
        values = [
            [weighted_run(known, metric, of_run, sample) for of_run in of_runs]
            for of_runs, sample in zip(values, samples, strict=True)
        ]
    return list(zip(*values, strict=True))


def _values(
    table: TaskTable, column: str, n_values: int, group: Group | None
) -> list[list[list[Any]]]:
    """Return a column's values by caption and judge run, several of each question in a row."""
    import pandas as pd

    rows = table.rows
    places, captions = pd.factorize(rows["caption"])
    is_read = rows["question_index"].notna()
    if group is not None:
        is_read &= rows[group[0]] == group[1] if group[0] in rows else False
    n_runs = table.n_runs or 1
    found: list[list[list[Any]]] = [[[] for _ in range(n_runs)] for _ in captions]
    values = rows[column].astype(object).where(rows[column].notna(), None)[is_read]
    runs = rows["run"][is_read].astype(int)
    for place, run, value in zip(places[is_read.to_numpy()].tolist(), runs, values, strict=True):
        if n_values == 1:
            found[place][run].append(value)
        else:
            found[place][run].extend([None] * n_values if value is None else value)
    return found


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
