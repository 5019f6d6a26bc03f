"""What each caption adds to a ratio of sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, nan, prod

Parts = Sequence[tuple[float, float]]
"""What one caption adds to the numerator and to the denominator of each ratio."""


def ratio_influences(captions: Sequence[Parts], *, scale: float) -> list[float]:
    """First-order effect of each caption on a ratio of sums, or on a product of such ratios.

    The value is ``scale`` times the product over ratios of the sum of numerators over the sum of
    denominators. A caption's influence is the value's derivative along what the caption adds.

    Args:
        captions: Shape (n_captions, n_ratios, 2), n_captions >= 1, the same n_ratios for all.
        scale: What is printed for a product of 1.

    Returns:
        Shape (n_captions,), in the unit of the value, summing to 0; ``nan`` for all where a
        denominator is 0.

    Source:
        Linearisation (delta method, Taylor series) of a ratio: Cochran, Sampling Techniques (1977),
        section 2.11; for evaluations whose questions come in clusters, arXiv 2411.00640.

    >>> ratio_influences([[(1.0, 2.0)], [(2.0, 2.0)]], scale=100.0)
    [-12.5, 12.5]
    """
    if not captions:
        raise ValueError("ratio_influences: expected at least 1 caption, got 0")
    n_ratios = len(captions[0])
    tops = [fsum(parts[k][0] for parts in captions) for k in range(n_ratios)]
    bottoms = [fsum(parts[k][1] for parts in captions) for k in range(n_ratios)]
    if 0.0 in bottoms:
        return [nan] * len(captions)
    ratios = [top / bottom for top, bottom in zip(tops, bottoms, strict=True)]
    others = [prod(ratios[:k] + ratios[k + 1 :]) for k in range(n_ratios)]
    slopes = [scale * other / bottom for other, bottom in zip(others, bottoms, strict=True)]
    return [
        fsum(
            slope * (top - ratio * bottom)
            for slope, ratio, (top, bottom) in zip(slopes, ratios, parts, strict=True)
        )
        for parts in captions
    ]
