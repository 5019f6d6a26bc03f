"""How a metric goes with people's ratings over captioners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlations:
    """Three correlations, each in [-1, 1].

    All are ``nan`` where one side has all values equal or there are fewer than 3 captioners.
    """

    pearson: float
    spearman: float
    kendall: float
    """Kendall's tau-b."""
    n: int
    """Captioners."""


def correlations(first: Sequence[float], second: Sequence[float]) -> Correlations:
    """Correlations of two numbers of each captioner.

    Args:
        first: Shape (n_captioners,), such as a metric.
        second: Shape (n_captioners,), such as people's Elo.

    Raises:
        ValueError: If the numbers of captioners differ.

    Source:
        AuroraCap, Figure 5 (Pearson); computed by scipy.

    >>> found = correlations([41.73, 38.21, 37.72], [1171.0, 1267.0, 1081.0])
    >>> round(found.pearson, 3), found.spearman, found.n
    (0.093, 0.5, 3)
    """
    from scipy.stats import kendalltau, pearsonr, spearmanr

    if len(first) != len(second):
        raise ValueError(f"correlations: expected equal lengths, got {len(first)}, {len(second)}")
    n = len(first)
    if n < 3 or len(set(first)) < 2 or len(set(second)) < 2:
        return Correlations(pearson=nan, spearman=nan, kendall=nan, n=n)
    found = (correlate(first, second).statistic for correlate in (pearsonr, spearmanr, kendalltau))
    pearson, spearman, kendall = map(float, found)
    return Correlations(pearson=pearson, spearman=spearman, kendall=kendall, n=n)
