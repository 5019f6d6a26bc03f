"""Numbers of a run that asked a sample: each verdict counts for the questions it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any, Final, NamedTuple, cast

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric, Videos
from lmms_eval_captions.lmms_eval_tasks.ratios import (
    NEITHER,
    FunctionOfSums,
    MeanOfMeans,
    Parts,
    Ratios,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Sample
from lmms_eval_captions.metrics.parts import Floats, Indices

_Z_95: Final = 1.96
_FEW_ASKED: Final = 50
"""Questions of a group below which the cheap judge's verdicts on the others do not count."""
_NOBODY: Final = CaptionRecord(
    task="", video_id="", judge="", runs=0, protocol=0, extras={}, n_questions=0, n_unscored=0
)
"""Stands for a caption if verdicts alone are read."""


class Weighted(NamedTuple):
    """One question in one judge run: its parts of a metric by the judge and by the cheap judge."""

    top: float
    bottom: float
    cheap_top: float
    cheap_bottom: float
    weight: float
    """Questions that it stands for, 0 if it was not asked."""
    lam: float
    """Trust in the cheap judge, 0 without one."""
    is_unscored: bool
    """Asked, and without a verdict."""


def weighted(
    benchmark: Benchmark[Any, Any], sets: Sequence[Sequence[CaptionRecord]]
) -> tuple[Benchmark[Any, Any], Sequence[Sequence[CaptionRecord]]]:
    """Return a benchmark whose metrics read weighted values, and records that hold them.

    Both are returned unchanged if all questions were asked.
    """
    if not any(record.sample for records in sets for record in records):
        return benchmark, sets

    def with_weights(record: CaptionRecord) -> CaptionRecord:
        values = {
            name: [weighted_run(benchmark.metrics[name], name, run, record.sample) for run in runs]
            for name, runs in record.values.items()
        }
        return replace(record, values=values, sample=None)

    metrics = {name: weighted_metric(metric) for name, metric in benchmark.metrics.items()}
    return benchmark.variant(metrics=metrics), [[*map(with_weights, records)] for records in sets]


def weighted_metric(metric: Metric) -> Metric:
    """Return the metric that reads weighted values."""
    metric = replace(metric, n_values=1, labels=())
    if not can_be_weighted(metric):
        why = "it is no ratio of sums, and cannot be computed of a sample of the questions"
        return replace(metric, unavailable=lambda _records: why)
    ratios = partial(_ratios, metric)
    return replace(metric, ratios=ratios, score=partial(_score, ratios, metric.scale))


def weighted_run(
    metric: Metric, name: str, values: Sequence[object], sample: Sample | None
) -> list[Weighted]:
    """Return the questions of a caption in one judge run, as parts of a metric."""
    if not can_be_weighted(metric):
        return []
    pairs, is_unscored = _pairs(metric, values)
    sample = sample or Sample(weights=[1.0] * len(pairs))
    lam, cheap = 0.0, [NEITHER] * len(pairs)
    if name in sample.cheap:
        lam, (cheap, _) = sample.lam, _pairs(metric, sample.cheap[name][0])
    return [
        Weighted(*pair, *cheap_pair, weight, lam, weight > 0 and unscored)
        for pair, cheap_pair, weight, unscored in zip(
            pairs, cheap, sample.weights, is_unscored, strict=True
        )
    ]


def counts_in(runs: Sequence[Sequence[Sequence[object]]], n_values: int) -> tuple[int, int]:
    """Count the asked questions of the judge run with most, and the unscored ones of all runs.

    ``runs`` are the values that a metric reads, weighted or not, ``n_values`` of each question.
    """
    verdicts = [[value for values in run for value in values[::n_values]] for run in runs]
    asked = [[v for v in run if not isinstance(v, Weighted) or v.weight > 0] for run in verdicts]
    unscored = [v for run in asked for v in run if v is None or getattr(v, "is_unscored", False)]
    return max(map(len, asked)), len(unscored)


def can_be_weighted(metric: Metric) -> bool:
    """Return whether a metric is a ratio of sums over questions."""
    return metric.ratios is not None and not isinstance(metric.ratios, FunctionOfSums)


def _pairs(
    metric: Metric, values: Sequence[object]
) -> tuple[list[tuple[float, float]], list[bool]]:
    """Return what each question adds to the first ratio of a metric, and if it is unscored."""
    n, ratios = metric.n_values, cast("Ratios", metric.ratios)
    questions = [values[at : at + n] for at in range(0, len(values), n)]
    parts = ratios(questions, [_NOBODY] * len(questions))
    return [part[0] for part in parts], [{*map(type, q)} == {type(None)} for q in questions]


def _ratios(
    metric: Metric, videos: Sequence[Sequence[Weighted]], records: Sequence[CaptionRecord]
) -> list[Parts]:
    """Return what each caption adds: the first ratio is weighted, others are the captions' own."""
    rows = [(index, *question) for index, video in enumerate(videos) for question in video]
    indices, *columns = np.array(rows, np.float64).reshape(-1, 1 + len(Weighted._fields)).T
    cell = indices.astype(np.intp)
    tops, bottoms = (
        np.bincount(cell, part, len(videos)) for part in _scaled(metric, cell, *columns)[-2:]
    )
    first: list[tuple[float, float]] = list(zip(tops, bottoms, strict=True))
    if not metric.reads_fields or metric.ratios is None:
        return [[pair] for pair in first]
    others = metric.ratios([()] * len(records), records)
    first += [NEITHER] * (len(records) - len(first))
    return [[pair, *parts[1:]] for pair, parts in zip(first, others, strict=True)]


def _scaled(metric: Metric, cell: Indices, *columns: Floats) -> tuple[Floats, ...]:
    """Return the columns of :class:`Weighted` such that a metric is a ratio of their sums.

    In a mean over videos, each caption counts once, and its scored questions stand for its unscored
    ones. ``cell`` is a question's caption and judge run. The last two columns are those to sum.
    """
    top, bottom, cheap_top, cheap_bottom, weight, lam, is_unscored = columns
    if isinstance(metric.ratios, MeanOfMeans):
        asked = np.bincount(cell, weight)[cell]
        scored = np.bincount(cell, weight * (1 - is_unscored))[cell]
        share = 1 / np.bincount(cell)[cell]
        factor = share * np.divide(asked, scored, out=np.ones(len(asked)), where=scored > 0)
        top, bottom = factor * top, factor * bottom
        cheap_top, cheap_bottom = share * cheap_top, share * cheap_bottom
    if (weight > 0).sum() < _FEW_ASKED:
        lam = np.zeros_like(lam)
    rest = lam * (1 - weight)
    sums = weight * top + rest * cheap_top, weight * bottom + rest * cheap_bottom
    return top, bottom, cheap_top, cheap_bottom, lam, *sums


def _score(ratios: Ratios, scale: float, videos: Videos, records: Sequence[CaptionRecord]) -> float:
    parts = np.array(ratios(videos, records), np.float64)
    tops, bottoms = parts.sum(axis=0).T if len(parts) else (np.zeros(1), np.zeros(1))
    # A weighted denominator may be negative if a cheap judge stands for nearly all.
    return scale * float(np.prod(tops / bottoms)) if (bottoms > 0).all() else nan


class Estimate(NamedTuple):
    """Headline that all questions would give, as far as a sample tells."""

    score: float
    """Mean over terms; ``nan`` if one has no value."""
    half_width: float
    """Half of the 95% interval; 0 if all questions were asked."""
    trust: float
    """Trust in the cheap judge that gives the least variance, in [0, 1]."""


def estimate(
    metric: Metric, captions: Sequence[tuple[int, int, Sequence[list[Weighted]]]]
) -> Estimate:
    """Return the mean over terms of a metric, as far as a sample of the questions tells.

    ``captions`` have the term of the mean (a task, or 0 for pooled tasks), the stratum that the
    questions were drawn in, and the questions in each judge run.

    Source:
        Cochran, Sampling Techniques (1977), theorem 5.3 (strata, without replacement), sections
        2.11 (linearised ratio) and 7.5 (difference estimator); with a cheap judge this is
        prediction-powered inference, PPI++, arXiv 2311.01453, its trust that of equation 6.
    """
    rows, n_questions = [], 0
    for index, (term, stratum, runs) in enumerate(captions):
        for run, questions in enumerate(runs):
            for at, question in enumerate(questions):
                rows.append((term, stratum, index, run, n_questions + at, *question))
        n_questions += max(map(len, runs), default=0)
    if not rows:
        return Estimate(nan, nan, 0.0)
    columns = np.array(rows, np.float64).T
    term, stratum, caption, run, question = columns[:5].astype(np.intp)
    n_runs = int(run.max()) + 1
    top, bottom, cheap_top, cheap_bottom, trust, *sums = _scaled(
        metric, caption * n_runs + run, *columns[5:]
    )
    cell = term * n_runs + run
    tops, bottoms = (np.bincount(cell, part) for part in sums)
    bottoms = np.where(bottoms > 0, bottoms, np.nan)
    ratios = tops / bottoms
    scales = metric.scale / (bottoms[cell] * len(ratios))
    # Effect of each question on the score, by the judge's and by the cheap judge's verdict.
    judge = np.bincount(question, scales * (top - ratios[cell] * bottom))
    cheap = np.bincount(question, scales * (cheap_top - ratios[cell] * cheap_bottom))
    first = np.unique(question, return_index=True)[1]
    _, _, _, _, weight, *_ = columns[5:, first]
    stratum, residuals = stratum[first], judge - trust[first] * cheap
    is_drawn, variance = np.zeros(n_questions, dtype=bool), 0.0
    for number in np.unique(stratum):
        drawn, size = (stratum == number) & (weight > 0), int((stratum == number).sum())
        n = int(drawn.sum())
        if 1 < n < size:
            variance += size * (size - n) / n * residuals[drawn].var(ddof=1)
            is_drawn |= drawn
    score = float(metric.scale * ratios.mean())
    if not is_drawn.any():
        return Estimate(score, 0.0, 0.0)
    # The error of one more verdict: if two judges hardly ever differ, a sample may hold none of the
    # questions on which they do.
    is_scored = is_drawn & (bottom[first] != 0)
    variance += (metric.span / max(1, int(is_scored.sum()))) ** 2
    best_trust, spread = 0.0, cheap[is_drawn].var(ddof=1)
    if spread > 0:
        slope = np.cov(judge[is_drawn], cheap[is_drawn])[0, 1] / spread
        best_trust = float(np.clip(slope, 0.0, 1.0))
    return Estimate(score, _Z_95 * float(np.sqrt(variance)), best_trust)
