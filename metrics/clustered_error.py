"""Standard error of a mean whose values come in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, nan, sqrt


def clustered_error(influences: Sequence[float]) -> float:
    """Standard error of a metric from what each cluster of captions adds to it.

    Args:
        influences: Shape (n_clusters,): for each cluster, such as a video, the sum of its
            captions' influences, in the metric's unit; together they sum to 0.

    Returns:
        Standard error in the metric's unit, >= 0; ``nan`` for fewer than 2 clusters. For a mean
        over clusters it is their standard deviation over the root of their number.

    Source:
        Cluster-robust variance with the correction n / (n - 1): Liang and Zeger, Longitudinal Data
        Analysis Using Generalized Linear Models (1986); arXiv 2411.00640, section 2.2.

    >>> clustered_error([-12.5, 12.5])
    25.0
    """
    n = len(influences)
    if n < 2:
        return nan
    return sqrt(fsum(value * value for value in influences) * n / (n - 1))
