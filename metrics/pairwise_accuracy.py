"""How often a metric prefers the better one of two captions."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan


def pairwise_accuracy(better: Sequence[float], worse: Sequence[float]) -> float:
    """Share of pairs in which the better caption has the higher score.

    Args:
        better: Shape (n_pairs,), scores of the captions that are better.
        worse: Shape (n_pairs,), those of the other captions of the same pairs.

    Returns:
        Share in [0, 1]; a tie is no right answer. ``nan`` where there is no pair.

    Raises:
        ValueError: If the numbers of scores differ.

    Source:
        G-VEval, appendix E; as its released code counts ties (ztangaj/gveval@fee3fd7:
        compute_foil.py).

    >>> pairwise_accuracy([0.5, 0.5, 0.9], [0.1, 0.5, 1.0])
    0.3333333333333333
    """
    if len(better) != len(worse):
        raise ValueError(
            f"pairwise_accuracy: expected as many scores, got {len(better)} and {len(worse)}"
        )
    if not better:
        return nan
    return sum(one > other for one, other in zip(better, worse, strict=True)) / len(better)
