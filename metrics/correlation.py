"""Correlations and slopes, with intervals over clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import nan, prod, sqrt
from typing import Literal

import numpy as np

from lmms_eval_captions.metrics.intervals import Interval, jackknife_interval, sums_of_clusters
from lmms_eval_captions.metrics.parts import Floats, Indices, t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlations:
    """Three correlations over captioners, each in [-1, 1], the last one Kendall's tau-b.

    All are ``nan`` if one side has all values equal or there are fewer than 3 captioners.
    """

    pearson: float
    spearman: float
    kendall: float
    n: int


def correlations(first: Sequence[float], second: Sequence[float]) -> Correlations:
    """Return the correlations of two numbers of each captioner (AuroraCap, Figure 5).

    >>> found = correlations([41.73, 38.21, 37.72], [1171.0, 1267.0, 1081.0])
    >>> round(found.pearson, 3), found.spearman, found.n
    (0.093, 0.5, 3)
    """
    from scipy.stats import kendalltau, pearsonr, spearmanr

    n = len(first)
    if n < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return Correlations(pearson=nan, spearman=nan, kendall=nan, n=n)
    tests = [correlate(first, second) for correlate in (pearsonr, spearmanr, kendalltau)]
    pearson, spearman, kendall = (float(test.statistic) for test in tests)
    return Correlations(pearson=pearson, spearman=spearman, kendall=kendall, n=n)


Variant = Literal["b", "c"]
"""Variants of Kendall's tau, which treat ties differently."""


def kendall_tau(
    scores: Sequence[float],
    ratings: Sequence[Sequence[float]],
    *,
    variant: Variant,
    by_annotator: bool = False,
) -> float:
    """Return Kendall's tau of one score per item with the ratings of several annotators.

    ``ratings`` has shape (n_items, n_annotators); an item may have fewer, or ``nan``. Every score
    counts once for each rating, or ``by_annotator`` takes the mean over annotators of the tau with
    each one's ratings. ``nan`` if scores or ratings are all equal.

    Source:
        G-VEval, section 4.1, whose Table 4 it reproduces on the published ratings.

    >>> round(kendall_tau([0.1, 0.2, 0.3], [[1, 1], [2, 3], [3, 3]], variant="b"), 6)
    0.870388
    """
    x, y = _ranks(np.asarray(scores, dtype=np.float64)), _ranks(_table(ratings))
    return _tau_of_ranks(x, y, variant, by_annotator=by_annotator)


def kendall_interval(
    scores: Sequence[float],
    ratings: Sequence[Sequence[float]],
    *,
    variant: Variant,
    rng: np.random.Generator,
    n_resamples: int = 1000,
    clusters: Sequence[Hashable] | None = None,
    by_annotator: bool = False,
) -> tuple[float, float]:
    """Return the 95% interval of :func:`kendall_tau` by a percentile bootstrap over clusters.

    ``clusters`` has shape (n_items,), such as the image of each caption; by default every item is
    one. ``nan`` if no draw has a correlation.

    >>> rng = np.random.default_rng(0)
    >>> low, high = kendall_interval([1, 2, 3, 4], [[1], [2], [3], [4]], variant="b", rng=rng)
    >>> round(low, 6), round(high, 6)
    (1.0, 1.0)
    """
    x, y = _ranks(np.asarray(scores, dtype=np.float64)), _ranks(_table(ratings))
    owners = np.arange(len(x))
    if clusters is not None:
        owners = np.unique([str(cluster) for cluster in clusters], return_inverse=True)[1]
    members = np.split(np.argsort(owners, kind="stable"), np.cumsum(np.bincount(owners))[:-1])
    taus = []
    for _ in range(n_resamples):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        taus.append(_tau_of_ranks(x[drawn], y[drawn], variant, by_annotator=by_annotator))
    finite = np.asarray(taus)[np.isfinite(taus)]
    low, high = np.percentile(finite, [2.5, 97.5]) if finite.size else (nan, nan)
    return float(low), float(high)


def annotator_tau(
    ratings: Sequence[Sequence[float]], *, variant: Variant, are_known: bool = True
) -> float:
    """Return Kendall's tau of one annotator's ratings with another's, mean over pairs of them.

    It is the ceiling of :func:`kendall_tau`, which has the same arguments; our own. If annotators
    are not known, the n-th ratings of items are not one person's: every rating of an item counts
    once with each other one of it, in one correlation. ``nan`` if no pair has a correlation.

    >>> round(annotator_tau([[1, 1], [2, 3], [3, 2]], variant="b"), 4)
    0.3333
    """
    columns = list(_ranks(_table(ratings)).T)
    if not are_known and len(columns) > 1:
        first, second = zip(*permutations(columns, 2), strict=True)
        return _tau(np.concatenate(first), np.concatenate(second), variant)
    taus = np.array([_tau(x, y, variant) for x, y in combinations(columns, 2)])
    taus = taus[~np.isnan(taus)]
    return float(taus.mean()) if taus.size else nan


def _table(ratings: Sequence[Sequence[float]]) -> Floats:
    """Return ratings as shape (n_items, n_annotators), with ``nan`` for missing ones."""
    table = np.full((len(ratings), max(map(len, ratings), default=0)), nan)
    for row, of_item in zip(table, ratings, strict=True):
        row[: len(of_item)] = of_item
    return table


def _ranks(values: Floats) -> Indices:
    """Return the index of each value among the sorted different ones, -1 for ``nan``."""
    ranks = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    return np.where(np.isnan(values), -1, ranks)


def _tau_of_ranks(x: Indices, y: Indices, variant: Variant, *, by_annotator: bool) -> float:
    if by_annotator:
        return float(np.mean([_tau(x, column, variant) for column in y.T]))
    return _tau(np.repeat(x, y.shape[1]), y.ravel(), variant)


def _tau(x: Indices, y: Indices, variant: Variant) -> float:
    """Return tau from the table of ranks; an interval takes thousands, too many for scipy."""
    is_rated = (x >= 0) & (y >= 0)
    x, n, n_ranks = x[is_rated], int(is_rated.sum()), y.max(initial=-1) + 1
    counts = np.bincount(x * n_ranks + y[is_rated], minlength=(x.max(initial=-1) + 1) * n_ranks)
    counts = counts.reshape(-1, max(n_ranks, 1))
    before = counts.cumsum(axis=0) - counts
    smaller = before.cumsum(axis=1) - before
    larger = before.sum(axis=1, keepdims=True) - before - smaller
    concordance = 2 * int((counts * (smaller - larger)).sum())
    margins = [counts.sum(axis=axis) for axis in (0, 1)]
    n_classes = min(int(np.count_nonzero(margin)) for margin in margins)
    if n_classes < 2:
        return nan
    if variant == "b":
        return float(concordance / prod(sqrt(n * n - int((of**2).sum())) for of in margins))
    return concordance / (n * n * (n_classes - 1) / n_classes)


def pearson_interval(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, videos: Indices
) -> Interval:
    """Return Pearson's correlation of two raters' numbers, a jackknife of Fisher's z over videos.

    All have shape (n_units,); ``videos`` holds the index of each unit's video, from 0. The value is
    ``nan`` if one rater gave all units the same.

    >>> found = pearson_interval([1, 2, 3, 5, 4], [2, 2, 4, 5, 3], np.arange(5))
    >>> round(found.value, 4)
    0.8489
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    # Relative to one of them, so that equal numbers are exactly 0.
    x, y = x - x[:1], y - y[:1]
    parts = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return jackknife_interval(sums_of_clusters(parts, videos), _pearson, scale="Fisher's z")


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum((n * xx - x * x) * (n * yy - y * y), 0.0))
        return np.asarray(np.where(spread > 0, (n * xy - x * y) / spread, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A line's slope with its 95% interval."""

    slope: float
    """Growth of y for 1 of x; ``nan`` if all x are equal."""
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    """Two-sided, of no slope; ``None`` without an interval."""
    n_units: int


def clustered_slope(x: Sequence[float], y: Sequence[float], clusters: Indices) -> Slope:
    """Return the slope of the line of least squares, with its error clustered.

    All have shape (n_units,); ``clusters`` holds the index of each unit's cluster, from 0.

    Source:
        Liang and Zeger (1986), with the correction G / (G - 1) (n - 1) / (n - 2) and a t quantile
        of G - 1 degrees of freedom, as in statsmodels.

    >>> found = clustered_slope([0, 1, 2, 3], [0, 2, 3, 6], np.array([0, 0, 1, 1]))
    >>> round(found.slope, 3)
    1.9
    """
    from scipy.special import stdtr

    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n_units, n_clusters = len(xs), len(np.unique(clusters))
    away = xs - xs.mean()
    spread = float((away**2).sum())
    slope = float((away * ys).sum() / spread) if spread else nan
    found = Slope(slope=slope, n_units=n_units)
    if not spread or n_clusters < 2 or n_units < 3:
        return found
    scores = np.bincount(clusters, weights=away * (ys - ys.mean() - slope * away))
    correction = n_clusters / (n_clusters - 1) * (n_units - 1) / (n_units - 2)
    error = float(np.sqrt(correction * (scores**2).sum()) / spread)
    if not error:
        return found
    reach = t_quantile(n_clusters - 1) * error
    p_value = float(2 * stdtr(n_clusters - 1, -abs(slope) / error))
    return replace(found, low=slope - reach, high=slope + reach, p_value=p_value)
