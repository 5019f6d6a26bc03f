"""Ratings by cluster (video): jackknife intervals and slopes over clusters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.intervals import FEW_VIDEOS, Interval

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where a coefficient is spread nearly as a normal number: the interval is made there."""

    name: str
    to: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


CORRELATION: Final = Line(name="Fisher's z", to=np.arctanh, back=np.tanh)
"""Of a correlation."""


def jackknife_interval(
    sums: Floats, value_of: Callable[[Floats], Floats], *, line: Line, level: float = 0.95
) -> Interval:
    """A coefficient of at most 1 with its interval over clusters.

    Args:
        sums: Shape (n_clusters, ...), what each cluster adds; those that add nothing do not count.
        value_of: From sums, shape (k, ...), to values, shape (k,).
        line: Where the interval is made.
        level: Share of such intervals that cover, in (0, 1).

    Returns:
        Value, standard error on the coefficient's own scale and ends, from -1 to 1.

    Source:
        Delete-one-cluster jackknife: Efron and Tibshirani, An Introduction to the Bootstrap (1993),
        chapter 11, with a t quantile of n_clusters - 1 degrees.

    >>> sums = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]])
    >>> found = jackknife_interval(sums, lambda s: s[..., 0] / s[..., 1], line=CORRELATION)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.5, -0.12, 0.839)
    """
    from scipy.special import stdtrit

    sums = sums[sums.any(axis=tuple(range(1, sums.ndim)))]
    n_clusters = len(sums)
    total = sums.sum(axis=0)
    value = float(value_of(total)) if n_clusters else float("nan")
    left_out = value_of(total - sums) if n_clusters else np.empty(0)
    note = _why_none(value, left_out)
    if note:
        return Interval(
            value=value, low=None, high=None, standard_error=None, n_videos=n_clusters,
            method="none", note=note,
        )  # fmt: skip
    reach = float(stdtrit(n_clusters - 1, (1 + level) / 2)) * _error(line.to(left_out))
    low, high = line.back(line.to(np.array(value)) + np.array([-reach, reach])).tolist()
    return Interval(
        value=value,
        low=max(-1.0, min(low, high)),
        high=min(1.0, max(low, high)),
        standard_error=_error(left_out),
        n_videos=n_clusters,
        method=f"jackknife over videos of {line.name}",
        note=f"only {n_clusters} videos: a rough guess" if n_clusters < FEW_VIDEOS else "",
    )


def _why_none(value: float, left_out: Floats) -> str:
    """Why there is no interval, empty where there is one."""
    if np.isnan(value):
        return "no value: too few units, or all of them are alike"
    if len(left_out) < 2:
        return "no interval: fewer than 2 videos count"
    if value >= 1:
        return "no interval: not one disagreement"
    if np.ptp(left_out) == 0:
        return "no interval: all videos are alike"
    if not np.isfinite(left_out).all() or (np.abs(left_out) >= 1).any():
        return "no interval: without one of the videos there is no disagreement, or no value"
    return ""


def _error(values: Floats) -> float:
    n_values = len(values)
    return float(np.sqrt((n_values - 1) / n_values * ((values - values.mean()) ** 2).sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A line's slope with its interval."""

    slope: float
    """Growth of y for 1 of x; ``nan`` where all x are equal."""
    low: float | None
    high: float | None
    """Ends of the 95 % interval; ``None`` where none can be given."""
    p_value: float | None
    """Two-sided, of no slope; ``None`` where there is no interval."""
    n_units: int


def clustered_slope(
    x: Sequence[float], y: Sequence[float], clusters: NDArray[np.intp], *, level: float = 0.95
) -> Slope:
    """The slope of the line of least squares, with its error by clusters.

    Args:
        x: Shape (n_units,).
        y: Shape (n_units,).
        clusters: Shape (n_units,), the cluster of each unit, from 0, such as its video.
        level: Share of such intervals that cover, in (0, 1).

    Source:
        Cluster-robust variance of least squares, Liang and Zeger (1986), with the correction
        G / (G - 1) (n - 1) / (n - 2) and a t quantile of G - 1 degrees, as Stata and statsmodels
        have it.

    >>> found = clustered_slope([0, 1, 2, 3], [0, 2, 3, 6], np.array([0, 0, 1, 1]))
    >>> round(found.slope, 3)
    1.9
    """
    from scipy.special import stdtr, stdtrit

    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n_units, n_clusters = len(xs), len(np.unique(clusters))
    away = xs - xs.mean() if n_units else xs
    spread = float((away**2).sum())
    if not spread:
        return Slope(slope=float("nan"), low=None, high=None, p_value=None, n_units=n_units)
    slope = float((away * ys).sum() / spread)
    if n_clusters < 2 or n_units < 3:
        return Slope(slope=slope, low=None, high=None, p_value=None, n_units=n_units)
    residuals = ys - ys.mean() - slope * away
    scores = np.bincount(clusters, weights=away * residuals)
    correction = n_clusters / (n_clusters - 1) * (n_units - 1) / (n_units - 2)
    error = float(np.sqrt(correction * (scores**2).sum()) / spread)
    if not error:
        return Slope(slope=slope, low=None, high=None, p_value=None, n_units=n_units)
    reach = float(stdtrit(n_clusters - 1, (1 + level) / 2)) * error
    p_value = float(2 * stdtr(n_clusters - 1, -abs(slope) / error))
    return Slope(
        slope=slope, low=slope - reach, high=slope + reach, p_value=p_value, n_units=n_units
    )
