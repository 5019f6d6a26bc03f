"""How sure a rank correlation with human ratings is."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.kendall_tau import Variant

Floats = NDArray[np.float64]


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
