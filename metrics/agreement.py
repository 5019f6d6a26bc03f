"""Agreement of raters beyond chance with its interval, and of judge runs with one another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.intervals import Interval, jackknife_interval, sums_of_clusters
from lmms_eval_captions.metrics.parts import Floats, Indices

Rating = Hashable
"""A rater's verdict on a unit: a label, or a number."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """Raters' verdicts on units, as indices of categories."""

    codes: Indices
    """Shape (n_units, n_raters): the index of each rating's category; -1 is missing."""
    categories: tuple[Rating, ...]

    def counts(self) -> Floats:
        """Return how many raters gave each category, shape (n_units, n_categories)."""
        marks = np.arange(len(self.categories)) == self.codes[:, :, None]
        return np.asarray(marks.sum(axis=1, dtype=np.float64))


def ratings_of(
    rows: Sequence[Sequence[Rating | None]], categories: Sequence[Rating] = ()
) -> Ratings:
    """Return ratings, shape (n_units, n_raters), as arrays; ``None`` is a missing rating.

    Given categories come first, then others that occur, sorted if possible.

    >>> ratings_of([["yes", "no"], ["no", None]]).codes.tolist()
    [[1, 0], [0, -1]]
    """
    occur = dict.fromkeys(rating for row in rows for rating in row if rating is not None)
    try:
        others: list[Rating] = sorted(occur)  # type: ignore[type-var] # if they can be
    except TypeError:
        others = list(occur)
    known = tuple(dict.fromkeys((*categories, *others)))
    index_of: dict[Rating | None, int] = {None: -1} | {of: i for i, of in enumerate(known)}
    codes = np.array([[index_of[rating] for rating in row] for row in rows], dtype=np.intp)
    return Ratings(codes.reshape(len(rows), len(rows[0]) if rows else 0), known)


Coefficient = Literal["kappa", "ac1", "nominal", "interval"]
"""Cohen's kappa, Gwet's AC1, Krippendorff's alpha of labels, that of numbers."""


def agreement_interval(ratings: Ratings, videos: Indices, *, coefficient: Coefficient) -> Interval:
    """Return a coefficient, 0 for chance and at most 1, with its 95% interval over videos.

    Args:
        ratings: Of exactly two raters for ``kappa``. A unit with fewer than two ratings counts only
            in AC1's shares of categories.
        videos: Shape (n_units,), the index of each unit's video, from 0; videos are clusters.
        coefficient: Name of the coefficient.

    Source:
        Cohen, A Coefficient of Agreement for Nominal Scales (1960), equation 1. Gwet, Computing
        inter-rater reliability and its variance in the presence of high agreement (2008), equations
        5 to 7; missing ratings: Handbook of Inter-Rater Reliability (2014), chapter 2.
        Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C to E. Jackknife
        of log(1 - coefficient), which covers 94 to 97% with 30 videos in simulations.

    >>> pairs = [("a", "a"), ("b", "b"), ("a", "b"), ("b", "b"), ("b", "b"), ("a", "a")] * 4
    >>> found = agreement_interval(ratings_of(pairs), np.arange(24) // 2, coefficient="kappa")
    >>> [round(each, 3) for each in (found.value, found.low, found.high, found.standard_error)]
    [0.667, 0.103, 0.876, 0.142]
    """
    parts_of, value_of = _COEFFICIENTS[coefficient]
    sums = sums_of_clusters(parts_of(ratings), videos)
    return jackknife_interval(sums, value_of, scale="log(1 - agreement)")


def kappa_parts(ratings: Ratings) -> Floats:
    """Return each unit's table of two raters' categories, (n_units, n_categories, n_categories)."""
    first, second = np.arange(len(ratings.categories)) == ratings.codes.T[:, :, None]
    return np.asarray(first[:, :, None] * second[:, None, :], dtype=np.float64)


def _kappa(tables: Floats) -> Floats:
    total = tables.sum(axis=(-2, -1))
    observed = np.trace(tables, axis1=-2, axis2=-1) * total
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((observed - expected) / (total**2 - expected))


def _ac1_parts(ratings: Ratings) -> Floats:
    """Return each unit's share of agreeing pairs, 1 if it has pairs, and its category shares."""
    counts = ratings.counts()
    # Two categories at least, as raters could have disagreed.
    counts = np.pad(counts, ((0, 0), (0, max(0, 2 - counts.shape[1]))))
    n_raters = counts.sum(axis=1)
    n_pairs = n_raters * (n_raters - 1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.maximum(n_pairs, 1)
    return np.column_stack([agreeing, n_pairs > 0, counts / np.maximum(n_raters, 1)[:, None]])


def _ac1(sums: Floats) -> Floats:
    shares = sums[..., 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = sums[..., 0] / sums[..., 1]
        shares = shares / shares.sum(axis=-1, keepdims=True)
        expected = (shares * (1 - shares)).sum(axis=-1) / (shares.shape[-1] - 1)
        return np.asarray((observed - expected) / (1 - expected))


def _nominal_parts(ratings: Ratings) -> Floats:
    """Return each unit's pairs that differ, over its ratings minus 1, and its category counts."""
    counts = ratings.counts()
    counts *= counts.sum(axis=1, keepdims=True) >= 2
    n_ratings = counts.sum(axis=1)
    n_differing = n_ratings**2 - (counts**2).sum(axis=1)
    return np.column_stack([n_differing / np.maximum(n_ratings - 1, 1), counts])


def _nominal_alpha(sums: Floats) -> Floats:
    n_ratings = sums[..., 1:].sum(axis=-1)
    return _alpha(sums[..., 0], n_ratings**2 - (sums[..., 1:] ** 2).sum(axis=-1), n_ratings)


def _interval_parts(ratings: Ratings) -> Floats:
    """Return each unit's squared differences, number of ratings, their sum and sum of squares."""
    is_rated = ratings.codes >= 0
    is_rated &= is_rated.sum(axis=1, keepdims=True) >= 2
    numbers = np.array([*ratings.categories, 0.0], dtype=np.float64)
    # Relative to one of them, so that equal ratings are exactly 0 and large ones keep their digits.
    origin = numbers[ratings.codes[is_rated][0]] if is_rated.any() else 0.0
    values = np.where(is_rated, numbers[ratings.codes] - origin, 0.0)
    n_ratings, total, squares = is_rated.sum(axis=1), values.sum(axis=1), (values**2).sum(axis=1)
    apart = 2 * (n_ratings * squares - total**2) / np.maximum(n_ratings - 1, 1)
    return np.column_stack([apart, n_ratings, total, squares])


def _interval_alpha(sums: Floats) -> Floats:
    apart, n_ratings, total, squares = np.moveaxis(sums, -1, 0)
    return _alpha(apart, 2 * (n_ratings * squares - total**2), n_ratings)


def _alpha(observed: Floats, expected: Floats, n_ratings: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (n_ratings - 1) * observed / expected
        return np.asarray(1 - np.where(expected > 0, ratio, np.nan))


_COEFFICIENTS: Final[dict[str, tuple[Callable[[Ratings], Floats], Callable[[Floats], Floats]]]] = {
    "kappa": (kappa_parts, _kappa),
    "ac1": (_ac1_parts, _ac1),
    "nominal": (_nominal_parts, _nominal_alpha),
    "interval": (_interval_parts, _interval_alpha),
}
"""Contribution of each unit to a coefficient, and the coefficient of sums, shape (..., same)."""


def consistent_times(same: NDArray[np.int8]) -> list[int]:
    """Count the questions that are stable for all captioners, for all but one, down to none.

    ``same`` has shape (n_captioners, n_questions): 1 if a question's verdicts are the same in all
    judge runs, 0 if they differ, -1 if unknown, which is in no count.

    Source:
        VidCapBench, Table 8 ("Consistent Times", "# Samples").

    >>> consistent_times(np.array([[1, 1, 0, -1], [1, 0, 0, 1]], dtype=np.int8))
    [1, 1, 1]
    """
    times = same[:, (same >= 0).all(axis=0)].sum(axis=0)
    counts: list[int] = np.bincount(times, minlength=len(same) + 1)[::-1].tolist()
    return counts


def unstable_that_pass(flip: float, *, n_runs: int, n_captioners: int) -> float:
    """Return the chance that a question looks stable although its verdicts flip with a chance.

    It looks stable if each of ``n_captioners`` captions gets one of two verdicts in all ``n_runs``
    (VidCapBench, section 3.2).

    >>> round(unstable_that_pass(0.1, n_runs=3, n_captioners=5), 2)
    0.21
    """
    return float((flip**n_runs + (1 - flip) ** n_runs) ** n_captioners)
