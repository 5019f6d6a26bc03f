"""How many videos an open comparison needs."""

from __future__ import annotations

from math import ceil

from lmms_eval_captions.metrics.paired_interval import Difference


def videos_to_settle(
    found: Difference, *, margin: float = 0.0, level: float = 0.95, power: float = 0.8
) -> int | None:
    """Videos at which a difference would be told from a margin, were it what it seems now.

    Args:
        found: A difference over some videos.
        margin: What it is to be told from, in the metric's unit: 0 for "which is better", a gate's
            bound for "may this be shipped".
        level: Of the interval that is to leave out the margin, in (0, 1).
        power: Chance that it does with so many videos, in (0, 1); 0.5 is where the interval would
            just leave it out if nothing moved.

    Returns:
        Videos like these, >= 2, those that there are among them; ``None`` where it cannot be told:
        the difference is the margin, or has no standard error.

    Source:
        The standard error falls with the root of the number of videos: Cohen, Statistical Power
        Analysis (1988), section 2.4, by normal quantiles.

    A difference of 1.0 with a standard error of 1.0 over 100 videos:

    >>> found = Difference(difference=1.0, low=-1.0, high=3.0, standard_error=1.0, p_value=0.32,
    ...                    n_videos=100, method="")
    >>> videos_to_settle(found), videos_to_settle(found, margin=1.0)
    (785, None)
    """
    from scipy.special import ndtri

    error, away = found.standard_error, abs(found.difference - margin)
    if not error or not away > 0:
        return None
    quantiles = float(ndtri((1 + level) / 2)) + float(ndtri(power))
    return max(2, ceil(found.n_videos * (quantiles * error / away) ** 2))
