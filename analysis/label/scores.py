"""Judge and people on labelled pairs: agreement, metrics, and corrected scores (PPI++)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import nan
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.label.labels import Domain
from lmms_eval_captions.analysis.parts import Group, parts_of
from lmms_eval_captions.analysis.task_table import Verdicts
from lmms_eval_captions.lmms_eval_tasks.task_names import leaves_of
from lmms_eval_captions.metrics.agreement import Coefficient, Rating, agreement_interval, ratings_of
from lmms_eval_captions.metrics.intervals import Interval, interval
from lmms_eval_captions.metrics.paired import paired_interval
from lmms_eval_captions.metrics.parts import values_of_runs
from lmms_eval_captions.metrics.ppi import Pairs, ppi_mean

_JUDGE = ["judge_numerator", "judge_denominator"]
_PEOPLE = ["people_numerator", "people_denominator"]

Document = dict[str, Any]
"""Findings of JSON's types, with intervals and differences as their records."""


def agreement(
    rows: Sequence[Sequence[Any]], videos: pd.Series[str], kinds: Sequence[Coefficient]
) -> dict[str, Interval]:
    """Return coefficients of agreement.

    Args:
        rows: Shape (n_items, n_raters); ``None`` is a missing rating.
        videos: Shape (n_items,): the cluster of each item.
        kinds: Names of the coefficients.
    """
    ratings, clusters = ratings_of(rows), pd.factorize(videos)[0]
    return {kind: agreement_interval(ratings, clusters, coefficient=kind) for kind in kinds}


def wide(judgements: pd.DataFrame, item: str | list[str]) -> pd.DataFrame:
    """Return the last ``rating`` of each item by each annotator, a column; ``None`` if missing."""
    last = judgements.groupby([*np.atleast_1d(item), "annotator"])["rating"].last()
    ratings = last.unstack().astype(object)
    return ratings.where(ratings.notna(), None)


def agreements_of(domain: Domain) -> Iterator[Document]:
    """Yield the agreement among annotators, of each with the judge, and of all with the judge.

    ``n_pairs`` counts the pairs that at least two of the raters rated.
    """
    headline = domain.table.benchmark.headline
    ratings = wide(domain.labels.assign(rating=list(map(_rating, domain.said(headline)))), "pair")
    pairs = domain.pairs.loc[ratings.index]
    # What the judge said in most of its runs; of equally frequent verdicts, the first.
    runs_of_pairs = pairs[domain.table.head["values"][headline]]
    judge = [_rating(Counter(runs).most_common(1)[0][0]) for runs in runs_of_pairs]
    people = ratings.to_numpy().tolist()
    raters: list[tuple[str, Sequence[Sequence[Any]], tuple[Coefficient, ...]]] = [
        (f"{name} with the judge", list(zip(ratings[name], judge, strict=True)), ("kappa", "ac1"))
        for name in ratings
    ]
    if len(raters) > 1:
        both = [(rating, said) for of, said in zip(people, judge, strict=True) for rating in of]
        raters.insert(0, ("annotators among one another", people, ("ac1", "nominal")))
        raters.append(("all with the judge", both, ("kappa", "ac1")))
    is_number = isinstance(judge[0], float)
    for who, rows, kinds in raters:
        videos = pairs["video"].repeat(len(rows) // len(pairs))
        yield {
            "who": who,
            "n_pairs": sum(len(row) - row.count(None) > 1 for row in rows),
            "coefficients": agreement(rows, videos, ("interval",) if is_number else kinds),
        }


def _rating(values: Sequence[Any] | None) -> Rating | None:
    """Return what the headline reads of a pair as one rating: a verdict, or a mean of numbers."""
    if values is None:
        return None
    return values[0] if isinstance(values[0], str) else fmean(map(float, values))


def score(name: str, domains: Sequence[Domain]) -> Document:
    """Compare all metrics of a task, or of a group of tasks, by people and by the judge.

    Returns:
        ``scores`` by metric, see :func:`_compare`, and for a task ``groups`` of the breakdown.
    """
    verdicts = domains[0].captioner.verdicts(name, sampled=False)
    metrics, pairs = verdicts.benchmark.metrics, domains[0].pairs
    added = {
        metric: pd.concat([_contributions(domain, metric) for domain in domains])
        for metric in metrics
    }
    lengths = {metric: _length_factor(verdicts, metric) for metric in metrics}

    def compare(group: Group | None) -> Document:
        return {m: _compare(verdicts, m, lengths[m], added[m], group) for m in metrics}

    found: Document = {"scores": compare(None)}
    if len(domains) == 1:
        labelled = pairs.loc[domains[0].labels["pair"]]
        found["groups"] = [
            {"section": section, "group": group, "scores": compare((section, group))}
            for section, names in verdicts.benchmark.sections.items()
            if section in pairs
            for group in names
            if (labelled[section] == group).any() and (pairs[section] != group).any()
        ]
    return found


def score_groups(domains: Sequence[Domain]) -> Iterator[Document]:
    """Score every group of tasks all of which have labels."""
    labelled = {(domain.captioner.name, domain.task): domain for domain in domains}
    for captioner in {domain.captioner.name: domain.captioner for domain in domains}.values():
        for name, run in captioner.runs.items():
            # Tasks of runs of different days are not one score.
            tasks = leaves_of(run.document, name)
            keys = [(captioner.name, task) for task in tasks if captioner.runs.get(task) is run]
            if 1 < len(tasks) == len(labelled.keys() & keys):
                who = {"group": name, "captioner": captioner.name, "tasks": tasks}
                yield {**who, **score(name, [labelled[key] for key in keys])}


def _contributions(domain: Domain, metric: str) -> pd.DataFrame:
    """Return the pairs that have a verdict for a metric, with what each adds to it.

    Numerators and denominators by the judge are means over judge runs, by people over annotators;
    missing without a label. ``values`` are of the first judge run, ``source`` is the caption.
    """
    ratios = domain.table.benchmark.metrics[metric].ratios
    captions = dict(zip(domain.table.captions()["caption"], domain.table.records, strict=True))
    sources = domain.pairs["caption"].map(captions)

    def adds(values: pd.Series[Any], columns: list[str]) -> pd.DataFrame:
        rows = [
            (nan, nan) if said is None or ratios is None else ratios([said], [sources[pair]])[0][0]
            for pair, said in values.items()
        ]
        return pd.DataFrame(rows, values.index, columns, float).groupby(level=0).mean()

    runs = domain.pairs[domain.table.head["values"][metric]].dropna()
    labels = pd.Series(domain.said(metric), domain.labels["pair"], dtype=object)
    pairs = domain.pairs.loc[runs.index].assign(values=[of[0] for of in runs], source=sources)
    pairs["has_label"] = pairs.index.isin(labels.index)
    return pairs.join([adds(runs.explode(), _JUDGE), adds(labels, _PEOPLE)])


def _length_factor(verdicts: Verdicts, metric: str) -> float | None:
    """Return what a metric multiplies its ratio over questions by; 1 for most metrics.

    ``None`` if it is not known, as for a ratio to tokens that were not counted, or differs between
    the tasks of a group.
    """
    parts = parts_of([verdicts], metric)
    if parts is None:
        return None
    sums = parts.sides[0][0].sum(axis=0)[:, 1:]
    factor, *others = set(np.prod(sums[..., 0] / sums[..., 1], axis=1).tolist())
    return None if others else factor


def _compare(
    verdicts: Verdicts, metric: str, length: float | None, rows: pd.DataFrame, group: Group | None
) -> Document:
    """Compare a metric of a task, or of the tasks of a group, by people and by the judge.

    Returns:
        ``judge_all``: by the judge on all pairs. ``labels_alone`` and ``corrected``: ``None`` if
        the metric is not a ratio of sums over pairs. ``judge``, ``people`` and ``difference``
        (people minus judge): on the labelled pairs.
    """
    known = verdicts.benchmark.metrics[metric]
    scale, bounds = known.scale, known.bounds
    parts = parts_of([verdicts], metric, group)
    if group is not None:
        rows = rows[rows[group[0]] == group[1]]
    n_labels = rows.groupby("task")[_PEOPLE[0]].count()
    found: Document = {
        "metric": metric,
        "group": group,
        "n_labels": int(n_labels.sum()),
        "judge_all": parts and interval(parts.sides[0], scale=scale, bounds=bounds),
        **dict.fromkeys(("labels_alone", "corrected", "difference")),
        **dict.fromkeys(("judge", "people"), nan),
        "note": "",
    }
    if (n_labels > 0).sum() < len(verdicts.tables):
        note = "no label" if len(verdicts.tables) == 1 else "not given: a task has no label"
        return {**found, "note": note}
    if length is None:
        return {**found, "note": "not given: the captions' length is not known or not the same"}
    rows = _weighted(verdicts, metric, rows)
    labelled = rows[rows["is_labelled"]]
    # Labelled pairs stand for all pairs of their task.
    of_tasks = [of.groupby("task")["weight"].sum() for of in (rows, labelled)]
    shares = labelled["weight"] * labelled["task"].map(of_tasks[0] / of_tasks[1])
    sums = np.zeros((2, rows["video"].max() + 1, rows["term"].max() + 1, 2))
    places = (labelled["video"].to_numpy(), labelled["term"].to_numpy())
    for of_side, columns in zip(sums, (_JUDGE, _PEOPLE), strict=True):
        np.add.at(of_side, places, labelled[columns].mul(shares, axis=0).to_numpy())
    judge, people = sums[:, None, :, :, None]
    found["judge"], found["people"] = (
        float(values_of_runs(side, scale=scale * length)[0]) for side in (judge, people)
    )
    if length != 1:
        note = "not corrected: it is a ratio to the captions' length; correct acc, and divide"
        return {**found, "note": note}
    n_silent = int(rows["has_label"].sum()) - len(labelled)
    if n_silent:
        found["note"] = (
            f"{n_silent} of {n_silent + len(labelled)} labelled pairs lack it: the others stand "
            "for all, which skews it if people gave it for some answers more than for others"
        )
    terms = [
        Pairs(
            judge=of[_JUDGE].to_numpy(),
            people=of[_PEOPLE].fillna(0.0).to_numpy(),
            strata=of.groupby("task").ngroup().to_numpy(),
            is_labelled=of["is_labelled"].to_numpy(),
            videos=of["video"].to_numpy(),
            weights=of["weight"].to_numpy(),
        )
        for _, of in rows.groupby("term")
    ]
    found["difference"] = paired_interval(people, judge, scale=scale)
    found["labels_alone"] = ppi_mean(*terms, scale=scale, bounds=bounds, lam=0.0)
    found["corrected"] = ppi_mean(*terms, scale=scale, bounds=bounds)
    return found


def _weighted(verdicts: Verdicts, metric: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return pairs with their weight, with a term for each task, or for all tasks as one.

    A pair's weight is 1 if a metric pools the questions of all videos. It is one over the number of
    its video's questions if the metric is a mean over videos of their own means: then a question
    that is asked twice adds no more to the denominator than one. Pooled tasks are strata: the page
    may have asked about more pairs of one of them.
    """
    ratios = verdicts.benchmark.metrics[metric].ratios
    assert ratios is not None  # noqa: S101 - see _length_factor
    rows = rows.reset_index(drop=True)
    first = rows.loc[rows[_JUDGE[1]].idxmax()]
    once, twice = (ratios([list(first["values"]) * n], [first["source"]])[0][0][1] for n in (1, 2))
    sizes = rows.groupby(["task", "video"])["video"].transform("size")
    return rows.assign(
        weight=1 / sizes if once == twice > 0 else 1.0,
        video=pd.factorize(rows["video"])[0],
        term=0 if verdicts.is_pooled else pd.factorize(rows["task"])[0],
        is_labelled=rows[_PEOPLE[0]].notna(),
    )
