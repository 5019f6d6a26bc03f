"""How much a number grows with another, where units come in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
