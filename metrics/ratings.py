"""Ratings of the same units by several raters, as arrays that agreement is computed from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rating = Hashable
"""What a rater may say of a unit: a label, or a number."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """What raters said of units, by the places of the categories."""

    codes: NDArray[np.intp]
    """Shape (n_units, n_raters): the place of each rating among the categories; -1 is missing."""
    categories: tuple[Rating, ...]
    """What ratings can be, in their order where they have one."""

    def counts(self) -> Floats:
        """Raters that gave each unit each category, shape (n_units, n_categories)."""
        marks = np.arange(len(self.categories)) == self.codes[:, :, None]
        counts: Floats = marks.sum(axis=1, dtype=np.float64)
        return counts

    def of_units(self, units: NDArray[np.bool_] | NDArray[np.intp]) -> Ratings:
        """The ratings of some of the units."""
        return Ratings(self.codes[units], self.categories)


def ratings_of(
    rows: Sequence[Sequence[Rating | None]], categories: Sequence[Rating] = ()
) -> Ratings:
    """Ratings as arrays.

    Args:
        rows: Shape (n_units, n_raters); ``None`` is a missing rating.
        categories: What ratings can be, in their order; others follow as they come. Without, the
            values that occur, sorted where they can be.

    Raises:
        ValueError: If the units differ in the number of raters.

    >>> ratings_of([["yes", "no"], ["no", None]]).codes.tolist()
    [[1, 0], [0, -1]]
    """
    n_raters = len(rows[0]) if rows else 0
    if any(len(row) != n_raters for row in rows):
        raise ValueError("ratings: expected as many ratings, None for missing ones, of every unit")
    occur = dict.fromkeys(rating for row in rows for rating in row if rating is not None)
    try:
        sorted_values: list[Rating] = sorted(occur)  # type: ignore[type-var] # where they can be
    except TypeError:
        sorted_values = list(occur)
    known = tuple(dict.fromkeys((*categories, *sorted_values)))
    places: dict[Rating | None, int] = {None: -1} | {each: i for i, each in enumerate(known)}
    flat = [places[rating] for row in rows for rating in row]
    return Ratings(np.array(flat, dtype=np.intp).reshape(len(rows), n_raters), known)


def sums_of_clusters(parts: Floats, clusters: NDArray[np.intp]) -> Floats:
    """What clusters of units add to an agreement.

    Args:
        parts: Shape (n_units, ...), what each unit adds.
        clusters: Shape (n_units,), the cluster of each unit, from 0.

    Returns:
        Shape (n_clusters, ...).

    >>> sums_of_clusters(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 0])).tolist()
    [[5.0], [2.0]]
    """
    n_clusters = int(clusters.max()) + 1 if clusters.size else 0
    flat = parts.reshape(len(parts), prod(parts.shape[1:]))
    columns = [np.bincount(clusters, weights=column, minlength=n_clusters) for column in flat.T]
    sums: Floats = np.array(columns).T.reshape((n_clusters, *parts.shape[1:]))
    return sums
