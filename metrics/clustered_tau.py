"""Kendall's tau of a metric with many ratings, and its interval where items come in clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.kendall_tau import Variant

Floats = NDArray[np.float64]


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
    value = _tau(x, y, variant, by_annotator=by_annotator)
    draws = []
    for _ in range(n_resamples):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        draws.append(_tau(x[drawn], y[drawn], variant, by_annotator=by_annotator))
    finite = np.asarray(draws)[np.isfinite(draws)]
    if not finite.size:
        return value, nan, nan
    low, high = np.percentile(finite, [2.5, 97.5])
    return value, float(low), float(high)


def _tau(x: Floats, y: Floats, variant: Variant, *, by_annotator: bool) -> float:
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
