"""Kendall's rank correlation of a metric with human ratings."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Literal

Variant = Literal["b", "c"]


def kendall_tau(
    scores: Sequence[float], ratings: Sequence[Sequence[float]], *, variant: Variant
) -> float:
    """Kendall's tau of one score per item with the ratings of several annotators.

    Args:
        scores: Shape (n_items,), what a metric says of each item.
        ratings: Shape (n_items, n_annotators), n_annotators >= 1, may differ between items. Every
            score counts once for each annotator: nothing is averaged over annotators.
        variant: ``b`` or ``c``, which differ in how ties are accounted for.

    Returns:
        Correlation in [-1, 1], higher is better; ``nan`` where scores or ratings are all equal.

    Raises:
        ValueError: If the numbers of scores and of rated items differ.

    Source:
        G-VEval, section 4.1; on the published ratings this pairing reproduces its Table 4.
        Kendall (1945), Stuart (1953), computed by scipy.

    >>> kendall_tau([0.1, 0.2, 0.3], [[1, 1], [2, 3], [3, 3]], variant="b")
    0.8703882797784893
    """
    from scipy.stats import kendalltau

    if len(scores) != len(ratings):
        raise ValueError(
            f"kendall_tau: expected one score per rated item, got {len(ratings)} and {len(scores)}"
        )
    pairs = [(score, rating) for score, row in zip(scores, ratings, strict=True) for rating in row]
    if len({score for score, _ in pairs}) < 2 or len({rating for _, rating in pairs}) < 2:
        return nan
    return float(kendalltau(*zip(*pairs, strict=True), variant=variant).statistic)
