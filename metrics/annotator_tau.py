"""How well annotators agree among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from math import isnan, nan
from statistics import fmean

from lmms_eval_captions.metrics.kendall_tau import Variant, kendall_tau


def annotator_tau(
    ratings: Sequence[Sequence[float]], *, variant: Variant, are_known: bool = True
) -> float:
    """Kendall's tau of one annotator's ratings with another's, mean over pairs of annotators.

    It stands beside the correlation of a metric with the ratings of single annotators: a metric
    that agrees with an annotator as well as another annotator does is as good as one of them.

    Args:
        ratings: Shape (n_items, n_annotators), the annotators in the same order for all items;
            an item that one of a pair has not rated is no part of that pair.
        variant: ``b`` or ``c``, which differ in how ties are accounted for.
        are_known: Whether the n-th rating of all items is the same person's. Where it is not, every
            rating of an item counts once beside each other one of it, in one correlation: its order
            in the file, which may be that of the numbers, does not matter then.

    Returns:
        Correlation in [-1, 1]; ``nan`` where no two annotators have rated different items
        differently.

    Source:
        Of MSVD-Eval (G-VEval, section 4.3) the published ratings; the paper prints no such number.

    >>> round(annotator_tau([[1, 1], [2, 3], [3, 2]], variant="b"), 4)
    0.3333
    """
    n_annotators = max(map(len, ratings), default=0)
    if not are_known:
        pairs = [pair for row in ratings for pair in permutations(row, 2)]
        return _tau(pairs, variant)
    taus = [
        _tau([(row[one], row[other]) for row in ratings if len(row) > other], variant)
        for one, other in combinations(range(n_annotators), 2)
    ]
    scored = [tau for tau in taus if not isnan(tau)]
    return fmean(scored) if scored else nan


def _tau(pairs: Sequence[tuple[float, float]], variant: Variant) -> float:
    rated = [(one, other) for one, other in pairs if not isnan(one) and not isnan(other)]
    return kendall_tau([one for one, _ in rated], [[other] for _, other in rated], variant=variant)
