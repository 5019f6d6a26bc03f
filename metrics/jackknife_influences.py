"""What each caption adds to any metric, found by leaving it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum


def jackknife_influences(
    n_captions: int, score_of: Callable[[Sequence[int]], float]
) -> list[float]:
    """Effect of each caption on a metric of any form, by computing it without that caption.

    Args:
        n_captions: How many there are, >= 2.
        score_of: The metric of the captions at some places in [0, n_captions); it is computed
            n_captions times.

    Returns:
        Shape (n_captions,), in the unit of the metric, summing to 0; ``nan`` for all where the
        metric has no value without one of the captions.

    Source:
        The delete-one jackknife (Efron and Stein, The Jackknife Estimate of Variance, 1981); for a
        mean it is exact.

    >>> values = [1.0, 2.0, 6.0]
    >>> jackknife_influences(3, lambda places: sum(values[i] for i in places) / len(places))
    [-0.6666666666666666, -0.3333333333333333, 1.0]
    """
    everyone = range(n_captions)
    without = [score_of([place for place in everyone if place != left]) for left in everyone]
    mean = fsum(without) / n_captions
    return [(mean - score) * (n_captions - 1) / n_captions for score in without]
