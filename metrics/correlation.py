"""Correlations and slopes, with intervals over clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import isnan, nan
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.clusters import (
    CORRELATION,
    Floats,
    jackknife_interval,
    sums_of_clusters,
)
from lmms_eval_captions.metrics.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlations:
    """Three correlations, each in [-1, 1].

    All are ``nan`` where one side has all values equal or there are fewer than 3 captioners.
    """

    pearson: float
    spearman: float
    kendall: float
    """Kendall's tau-b."""
    n: int
    """Captioners."""


def correlations(first: Sequence[float], second: Sequence[float]) -> Correlations:
    """Correlations of two numbers of each captioner.

    Args:
        first: Shape (n_captioners,), such as a metric.
        second: Shape (n_captioners,), such as people's Elo.

    Raises:
        ValueError: If the numbers of captioners differ.

    Source:
        AuroraCap, Figure 5 (Pearson); computed by scipy.

    >>> found = correlations([41.73, 38.21, 37.72], [1171.0, 1267.0, 1081.0])
    >>> round(found.pearson, 3), found.spearman, found.n
    (0.093, 0.5, 3)
    """
    from scipy.stats import kendalltau, pearsonr, spearmanr

    if len(first) != len(second):
        raise ValueError(f"correlations: expected equal lengths, got {len(first)}, {len(second)}")
    n = len(first)
    if n < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return Correlations(pearson=nan, spearman=nan, kendall=nan, n=n)
    found = (correlate(first, second).statistic for correlate in (pearsonr, spearmanr, kendalltau))
    pearson, spearman, kendall = map(float, found)
    return Correlations(pearson=pearson, spearman=spearman, kendall=kendall, n=n)


Variant = Literal["b", "c"]


def kendall_tau(
    scores: Sequence[float], ratings: Sequence[Sequence[float]], *, variant: Variant
) -> float:
    """Kendall's tau of one score per item with the ratings of several annotators.

    Args:
        scores: Shape (n_items,), what a metric says of each item.
        ratings: Shape (n_items, n_annotators), n_annotators >= 1, may differ between items. Every
            score counts once for each annotator: nothing is averaged over annotators.
        variant: ``b`` or ``c``, which differ in how ties are accounted for.

    Returns:
        Correlation in [-1, 1], higher is better; ``nan`` where scores or ratings are all equal.

    Raises:
        ValueError: If the numbers of scores and of rated items differ.

    Source:
        G-VEval, section 4.1; on the published ratings this pairing reproduces its Table 4.
        Kendall (1945), Stuart (1953), computed by scipy.

    >>> kendall_tau([0.1, 0.2, 0.3], [[1, 1], [2, 3], [3, 3]], variant="b")
    0.8703882797784893
    """
    from scipy.stats import kendalltau

    if len(scores) != len(ratings):
        raise ValueError(
            f"kendall_tau: expected one score per rated item, got {len(ratings)} and {len(scores)}"
        )
    pairs = [(score, rating) for score, row in zip(scores, ratings, strict=True) for rating in row]
    if len({score for score, _ in pairs}) < 2 or len({rating for _, rating in pairs}) < 2:
        return nan
    return float(kendalltau(*zip(*pairs, strict=True), variant=variant).statistic)


def kendall_interval(
    scores: Sequence[float],
    ratings: Sequence[Sequence[float]],
    *,
    variant: Variant,
    rng: np.random.Generator,
    n_resamples: int = 1000,
) -> tuple[float, float]:
    """95% interval of :func:`kendall_tau`, by resampling items with replacement.

    An item is drawn with all its ratings: those of one item are no independent evidence.

    Args:
        scores: Shape (n_items,), n_items >= 1.
        ratings: Shape (n_items, n_annotators).
        variant: ``b`` or ``c``.
        rng: Source of the draws; the same seed gives the same interval.
        n_resamples: Draws of n_items items each, >= 1.

    Returns:
        2.5th and 97.5th percentile of the correlation over the draws that have one; ``nan`` where
        none has.

    Source:
        Efron (1979), percentile bootstrap; the paper prints no intervals.

    >>> low, high = kendall_interval(
    ...     [1, 2, 3, 4], [[1], [2], [3], [4]], variant="b", rng=np.random.default_rng(0)
    ... )
    >>> round(low, 6), round(high, 6)
    (1.0, 1.0)
    """
    n_items = len(scores)
    owner = np.repeat(np.arange(n_items), [len(row) for row in ratings])
    x = np.asarray(scores, dtype=np.float64)[owner]
    y = np.asarray([rating for row in ratings for rating in row], dtype=np.float64)
    draws = rng.integers(0, n_items, size=(n_resamples, n_items))
    counts = np.stack([np.bincount(draw, minlength=n_items) for draw in draws])
    taus = _taus(x, y, counts[:, owner].astype(np.float64), variant)
    taus = taus[np.isfinite(taus)]
    if not taus.size:
        return nan, nan
    low, high = np.percentile(taus, [2.5, 97.5])
    return float(low), float(high)


def _taus(x: Floats, y: Floats, weights: Floats, variant: Variant) -> Floats:
    """Tau of every draw, shape (n_draws,), each pair weighted by how often it was drawn."""
    order_x, order_y = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    # Every pair is counted twice here, from both sides.
    concordance = _form(order_x * order_y, weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        if variant == "b":
            untied = _form(np.abs(order_x), weights) * _form(np.abs(order_y), weights)
            return np.asarray(concordance / np.sqrt(untied))
        n_classes = np.minimum(_n_distinct(x, weights), _n_distinct(y, weights))
        total = weights.sum(axis=1)
        return np.asarray(concordance / (total**2 * (n_classes - 1) / n_classes))


def _form(matrix: Floats, weights: Floats) -> Floats:
    return np.asarray(((weights @ matrix) * weights).sum(axis=1))


def _n_distinct(values: Floats, weights: Floats) -> Floats:
    """How many different values were drawn, for every draw."""
    same = values[:, None] == np.unique(values)
    return np.asarray((weights @ same > 0).sum(axis=1), dtype=np.float64)


def clustered_tau(
    scores: Sequence[float],
    ratings: Sequence[Sequence[float]],
    clusters: Sequence[Hashable],
    *,
    variant: Variant,
    by_annotator: bool,
    rng: np.random.Generator,
    n_resamples: int,
) -> tuple[float, float, float]:
    """Kendall's tau, and its 95% interval by resampling clusters with replacement.

    Args:
        scores: Shape (n_items,), n_items >= 1.
        ratings: Shape (n_items, n_annotators), ``nan`` or nothing where one has not rated.
        clusters: Shape (n_items,), such as the image that a caption is of.
        variant: ``b`` or ``c``.
        by_annotator: Whether it is the mean over annotators of the tau with each one's ratings;
            else every score counts once for each rating.
        rng: Source of the draws.
        n_resamples: Draws of as many clusters as there are, >= 1.

    Returns:
        The correlation in [-1, 1], and the 2.5th and 97.5th percentile over the draws; ``nan``
        where scores or ratings are all equal.

    Source:
        Kendall (1945), Stuart (1953), computed by scipy; percentile bootstrap (Efron, 1979). As
        :func:`kendall_interval`, for more items than a matrix of pairs can have.

    >>> rng = np.random.default_rng(0)
    >>> tau = clustered_tau([1, 2, 3], [[1], [2], [3]], "abc", variant="b", by_annotator=False,
    ...                     rng=rng, n_resamples=20)
    >>> [round(value, 4) for value in tau]
    [1.0, 1.0, 1.0]
    """
    x = np.asarray(scores, dtype=np.float64)
    y = np.full((len(x), max(map(len, ratings))), np.nan)
    for place, row in enumerate(ratings):
        y[place, : len(row)] = row
    _, owner = np.unique([str(cluster) for cluster in clusters], return_inverse=True)
    members = np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1])
    value = _tau_of_clusters(x, y, variant, by_annotator=by_annotator)
    draws = []
    for _ in range(n_resamples):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        draws.append(_tau_of_clusters(x[drawn], y[drawn], variant, by_annotator=by_annotator))
    finite = np.asarray(draws)[np.isfinite(draws)]
    if not finite.size:
        return value, nan, nan
    low, high = np.percentile(finite, [2.5, 97.5])
    return value, float(low), float(high)


def _tau_of_clusters(x: Floats, y: Floats, variant: Variant, *, by_annotator: bool) -> float:
    if by_annotator:
        return float(np.mean([_of_pairs(x, column, variant) for column in y.T]))
    return _of_pairs(np.repeat(x, y.shape[1]), y.ravel(), variant)


def _of_pairs(x: Floats, y: Floats, variant: Variant) -> float:
    from scipy.stats import kendalltau

    is_rated = ~np.isnan(y)
    x, y = x[is_rated], y[is_rated]
    if not x.size or (x == x[0]).all() or (y == y[0]).all():
        return nan
    return float(kendalltau(x, y, variant=variant).statistic)


def annotator_tau(
    ratings: Sequence[Sequence[float]], *, variant: Variant, are_known: bool = True
) -> float:
    """Kendall's tau of one annotator's ratings with another's, mean over pairs of annotators.

    It stands beside the correlation of a metric with the ratings of single annotators: a metric
    that agrees with an annotator as well as another annotator does is as good as one of them.

    Args:
        ratings: Shape (n_items, n_annotators), the annotators in the same order for all items;
            an item that one of a pair has not rated is no part of that pair.
        variant: ``b`` or ``c``, which differ in how ties are accounted for.
        are_known: Whether the n-th rating of all items is the same person's. Where it is not, every
            rating of an item counts once beside each other one of it, in one correlation: its order
            in the file, which may be that of the numbers, does not matter then.

    Returns:
        Correlation in [-1, 1]; ``nan`` where no two annotators have rated different items
        differently.

    Source:
        Of MSVD-Eval (G-VEval, section 4.3) the published ratings; the paper prints no such number.

    >>> round(annotator_tau([[1, 1], [2, 3], [3, 2]], variant="b"), 4)
    0.3333
    """
    n_annotators = max(map(len, ratings), default=0)
    if not are_known:
        pairs = [pair for row in ratings for pair in permutations(row, 2)]
        return _tau(pairs, variant)
    taus = [
        _tau([(row[one], row[other]) for row in ratings if len(row) > other], variant)
        for one, other in combinations(range(n_annotators), 2)
    ]
    scored = [tau for tau in taus if not isnan(tau)]
    return fmean(scored) if scored else nan


def _tau(pairs: Sequence[tuple[float, float]], variant: Variant) -> float:
    rated = [(one, other) for one, other in pairs if not isnan(one) and not isnan(other)]
    return kendall_tau([one for one, _ in rated], [[other] for _, other in rated], variant=variant)


def pearson_interval(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, videos: NDArray[np.intp]
) -> Interval:
    """Pearson's correlation of two raters' numbers, clustered by video.

    Args:
        first: Shape (n_units,), one rater's.
        second: The other's of the same units.
        videos: Shape (n_units,), the place of each unit's video, from 0.

    Returns:
        Correlation in [-1, 1]; ``nan`` where one of them is the same for all units.

    Source:
        Pearson (1895); :func:`jackknife_interval` of Fisher's z.

    >>> found = pearson_interval([1, 2, 3, 5, 4], [2, 2, 4, 5, 3], np.arange(5))
    >>> round(found.value, 4)
    0.8489
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not len(x):
        return jackknife_interval(np.empty((0, 6)), _pearson, line=CORRELATION)
    # From one of them, so that equal numbers are exactly 0.
    x, y = x - x[0], y - y[0]
    parts = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return jackknife_interval(sums_of_clusters(parts, videos), _pearson, line=CORRELATION)


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum((n * xx - x * x) * (n * yy - y * y), 0.0))
        return np.asarray(np.where(spread > 0, (n * xy - x * y) / spread, np.nan))
