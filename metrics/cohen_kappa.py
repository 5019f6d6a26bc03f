"""Cohen's kappa: agreement of two raters beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from lmms_eval_captions.metrics.ratings import Floats, Rating, Ratings, ratings_of


def cohen_kappa(first: Sequence[Rating | None], second: Sequence[Rating | None]) -> float:
    """Agreement of two raters beyond what their own shares of categories give by chance.

    Args:
        first: Shape (n_units,), labels of one rater; ``None`` is missing.
        second: The same units by the other rater. A unit that lacks a label counts nowhere.

    Returns:
        (p_o - p_e) / (1 - p_e) in [-1, 1], higher is better, 0 is chance; ``nan`` where no unit
        has both labels, or both raters gave all of them one and the same category.

    Raises:
        ValueError: If the raters have different numbers of units.

    Source:
        Cohen, A Coefficient of Agreement for Nominal Scales (1960), equation 1. The example is
        Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions (2003), Table 18.1:
        0.68.

    >>> pairs = [("a", "a")] * 75 + [("a", "b")] + [("a", "c")] * 4 + [("b", "a")] * 5
    >>> pairs += [("b", "b")] * 4 + [("b", "c")] + [("c", "c")] * 10
    >>> round(cohen_kappa(*zip(*pairs)), 3)
    0.676
    """
    if len(first) != len(second):
        raise ValueError(f"cohen_kappa: expected equal lengths, got {len(first)} and {len(second)}")
    if not first:
        return nan
    parts = kappa_parts(ratings_of(list(zip(first, second, strict=True))))
    return float(kappa_of(parts.sum(axis=0)))


def kappa_parts(ratings: Ratings) -> Floats:
    """What each unit adds to the table of two raters' categories.

    Args:
        ratings: Of two raters.

    Returns:
        Shape (n_units, n_categories, n_categories): 1 at the categories of the first and the
        second rater; all 0 where one is missing.
    """
    if ratings.codes.shape[1] != 2:
        raise ValueError(f"cohen_kappa: expected 2 raters, got {ratings.codes.shape[1]}")
    marks = (np.arange(len(ratings.categories)) == ratings.codes[:, :, None]).astype(np.float64)
    parts: Floats = marks[:, 0, :, None] * marks[:, 1, None, :]
    return parts


def kappa_of(tables: Floats) -> Floats:
    """Kappa of tables of counts.

    Args:
        tables: Shape (..., n_categories, n_categories).

    Returns:
        Shape (...); ``nan`` where it has no value.

    >>> float(kappa_of(np.array([[20.0, 5.0], [10.0, 15.0]])))
    0.4
    """
    total = tables.sum(axis=(-2, -1))
    observed = np.trace(tables, axis1=-2, axis2=-1) * total
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: Floats = np.asarray((observed - expected) / (total**2 - expected))
    return kappa
