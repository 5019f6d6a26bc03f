"""What each caption adds to a metric that is any smooth function of sums over captions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, isnan, nan
from typing import Final

_STEP: Final = 1e-5
"""Share by which a sum is moved to see how the metric follows."""


def sum_influences(
    rows: Sequence[Sequence[float]], value_of: Callable[[Sequence[float]], float]
) -> list[float]:
    """First-order effect of each caption on a value of sums over captions.

    Args:
        rows: Shape (n_captions, n_sums), what each caption adds to each sum, >= 0.
        value_of: From the sums to the value, the same for twice all sums.

    Returns:
        Shape (n_captions,), in the value's unit, summing to 0; ``nan`` where there is no value.

    Source:
        Infinitesimal jackknife (Jaeckel, 1972), its gradient by central differences; for ratios
        :func:`ratio_influences` has it exactly.

    >>> [round(x, 6) for x in sum_influences([[1, 1], [0, 1]], lambda sums: sums[0] / sums[1])]
    [0.25, -0.25]
    """
    sums = [fsum(column) for column in zip(*rows, strict=True)]
    if not sums or isnan(value_of(sums)):
        return [nan] * len(rows)
    slopes = [_slope(sums, place, value_of) for place in range(len(sums))]
    effects = [fsum(s * x for s, x in zip(slopes, row, strict=True)) for row in rows]
    # What rounding leaves of their sum, which is 0.
    rest = fsum(effects) / len(effects)
    return [effect - rest for effect in effects]


def _slope(
    sums: Sequence[float], place: int, value_of: Callable[[Sequence[float]], float]
) -> float:
    step = _STEP * sums[place]
    if not step:
        return 0.0
    above, below = ([*sums[:place], sums[place] + way, *sums[place + 1 :]] for way in (step, -step))
    return (value_of(above) - value_of(below)) / (2 * step)
