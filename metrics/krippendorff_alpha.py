"""Krippendorff's alpha: agreement of any number of raters, of labels, ranks or numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from lmms_eval_captions.metrics.ratings import Floats, Rating, Ratings, ratings_of

Level = Literal["nominal", "ordinal", "interval"]
"""What ratings are: labels; labels in an order, worst first; numbers."""


def krippendorff_alpha(
    ratings: Sequence[Sequence[Rating | None]], *, level: Level, categories: Sequence[Rating] = ()
) -> float:
    """One less the disagreement within units, of that which chance would give.

    Args:
        ratings: Shape (n_units, n_raters); ``None`` is missing. Units with fewer than two ratings
            count nowhere.
        level: How far apart two ratings are: nominal 0 or 1; ordinal by how many ratings lie
            between them; interval by the square of their difference.
        categories: Order of the ratings for ``ordinal``; without, the values sorted.

    Returns:
        At most 1, higher is better, 0 is chance; ``nan`` where no unit has two ratings, or all
        ratings are equal.

    Raises:
        TypeError: If ratings of the level ``interval`` are no numbers.

    Source:
        Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E. The
        example is that of section C: nominal 0.743, ordinal 0.815, interval 0.849.

    >>> a, b = "123321412...", "1233224125.3"
    >>> c, d = ".3332342251.", "1233244125 1.".replace(" ", "")
    >>> units = [[None if each == "." else int(each) for each in unit] for unit in zip(a, b, c, d)]
    >>> [round(krippendorff_alpha(units, level=level), 3) for level in ("nominal", "ordinal")]
    [0.743, 0.815]
    >>> round(krippendorff_alpha(units, level="interval"), 3)
    0.849
    """
    coded = ratings_of(ratings, categories)
    return float(alpha_value(level)(alpha_parts(coded, level=level).sum(axis=0)))


def alpha_parts(ratings: Ratings, *, level: Level) -> Floats:
    """What each unit adds to alpha.

    Returns:
        For ``nominal`` and ``ordinal`` the unit's coincidences, shape (n_units, n_categories,
        n_categories), see Krippendorff's section C. For ``interval``, whose values may be many,
        shape (n_units, 4): number of ratings, their sum and sum of squares, and the squared
        differences of its pairs over its number of ratings less 1. All 0 where a unit has fewer
        than two ratings.
    """
    if level == "interval":
        return _moments(ratings)
    counts = ratings.counts()
    n_ratings = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    places = np.arange(counts.shape[1])
    pairs[:, places, places] -= counts
    weights = np.where(n_ratings >= 2, 1.0 / np.maximum(n_ratings - 1, 1), 0.0)
    coincidences: Floats = pairs * weights[:, None, None]
    return coincidences


def alpha_value(level: Level) -> Callable[[Floats], Floats]:
    """From sums of :func:`alpha_parts`, shape (..., as there), to alpha, shape (...)."""
    if level == "interval":
        return _of_moments
    return partial(_of_coincidences, is_ordinal=level == "ordinal")


def _of_coincidences(sums: Floats, *, is_ordinal: bool) -> Floats:
    totals = sums.sum(axis=-1)
    distances = _ordinal_distances(totals) if is_ordinal else 1.0 - np.eye(totals.shape[-1])
    observed = (sums * distances).sum(axis=(-2, -1))
    expected = (totals[..., :, None] * totals[..., None, :] * distances).sum(axis=(-2, -1))
    return _alpha(observed, expected, totals.sum(axis=-1))


def _ordinal_distances(totals: Floats) -> Floats:
    """Squared number of ratings from one category to another, half of both ends."""
    middles = totals.cumsum(axis=-1) - totals / 2
    distances: Floats = (middles[..., :, None] - middles[..., None, :]) ** 2
    return distances


def _moments(ratings: Ratings) -> Floats:
    if not all(isinstance(each, int | float) for each in ratings.categories):
        raise TypeError(f"krippendorff_alpha: expected numbers, got {ratings.categories!r:.80}")
    is_there = ratings.codes >= 0
    is_there &= is_there.sum(axis=1, keepdims=True) >= 2
    numbers = np.array([*ratings.categories, 0.0], dtype=np.float64)
    # From one of them, so that equal ratings are exactly 0 and squares of large ones do not swallow
    # the differences.
    origin = numbers[ratings.codes[is_there][0]] if is_there.any() else 0.0
    values = np.where(is_there, numbers[ratings.codes] - origin, 0.0)
    n_ratings = is_there.sum(axis=1).astype(np.float64)
    first, second = values.sum(axis=1), (values**2).sum(axis=1)
    apart = 2 * (n_ratings * second - first**2) / np.maximum(n_ratings - 1, 1)
    return np.column_stack([n_ratings, first, second, apart])


def _of_moments(sums: Floats) -> Floats:
    n_ratings, first, second, observed = np.moveaxis(sums, -1, 0)
    return _alpha(observed, 2 * (n_ratings * second - first**2), n_ratings)


def _alpha(observed: Floats, expected: Floats, n_ratings: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(expected > 0, (n_ratings - 1) * observed / expected, np.nan)
    return np.asarray(1 - ratio)
