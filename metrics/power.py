"""How likely a comparison is to find a difference that is there."""

from __future__ import annotations


def power(
    true_difference: float, *, standard_error: float, n_videos: int, level: float = 0.95
) -> float:
    """Chance that the interval of a paired difference leaves out 0, on the side of the truth.

    Args:
        true_difference: In the metric's unit.
        standard_error: Of the difference over so many videos, > 0, in the metric's unit.
        n_videos: >= 2.
        level: Of the interval, in (0, 1).

    Returns:
        In [0, 1]: (1 - level) / 2 where there is no difference, near 1 where it is many standard
        errors.

    Source:
        The noncentral t distribution: Cohen, Statistical Power Analysis (1988), section 2.2.

    >>> round(power(1.0, standard_error=0.357, n_videos=1027), 2)
    0.8
    """
    from scipy.special import nctdtr, stdtrit

    least = float(stdtrit(n_videos - 1, (1 + level) / 2))
    return 1.0 - float(nctdtr(n_videos - 1, abs(true_difference) / standard_error, least))


def smallest_difference(
    *, standard_error: float, n_videos: int, level: float = 0.95, power: float = 0.8
) -> float:
    """True difference that a comparison finds with a given chance, see :func:`power`.

    Args:
        standard_error: Of the difference over so many videos, >= 0, in the metric's unit.
        n_videos: >= 2.
        level: Of the interval, in (0, 1).
        power: Chance, in (0, 1).

    Returns:
        In the metric's unit, >= 0.

    >>> round(smallest_difference(standard_error=0.357, n_videos=1027), 3)
    1.001
    """
    from scipy.special import stdtrit

    quantiles = [float(stdtrit(n_videos - 1, q)) for q in ((1 + level) / 2, power)]
    return sum(quantiles) * standard_error
