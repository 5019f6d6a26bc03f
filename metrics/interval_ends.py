"""The ends of intervals of a metric in many samples at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lmms_eval_captions.metrics.arcsine import arcsine, arcsine_slope, share_of_arcsine
from lmms_eval_captions.metrics.bootstrap_t import bootstrap_t, influences_of, sums_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEW_VIDEOS: Final = 10
"""With fewer, a bootstrap has too few videos to draw from, and an interval is a rough guess."""


class Ends(NamedTuple):
    """Metrics as shares of their range, and their intervals; arrays of shape (n_samples,)."""

    shares: Floats
    errors: Floats
    """Standard errors over videos, as shares of the range."""
    lows: Floats
    highs: Floats


def interval_ends(parts: Floats, *, scale: float, n_videos: int, level: float) -> Ends:
    """Intervals of samples of as many videos each, see :func:`interval`.

    Args:
        parts: Shape (n_samples, n_videos, n_terms, n_factors, 2), as :func:`merged_terms` gives it.
        scale: What a sum over terms of 1 is as a share of the metric's range, lowest value 0.
        n_videos: Videos that the metric rests on, >= 2.
        level: Share of intervals that cover, in (0, 1).

    Returns:
        The ends, ``nan`` where a metric has no value or no error.

    >>> parts = np.array([[1.0, 2.0], [2.0, 2.0], [0.0, 2.0], [1.0, 2.0]]).reshape(1, 4, 1, 1, 2)
    >>> ends = interval_ends(parts, scale=1.0, n_videos=4, level=0.95)
    >>> [round(float(one[0]), 3) for one in ends]
    [0.5, 0.204, 0.069, 0.931]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = sums_of(parts)
        shares = sums.values(scale)
        influences = influences_of(parts, sums, scale=scale)
        errors = np.sqrt((influences**2).sum(axis=-1) * n_videos / (n_videos - 1))
        find = _by_log_odds if n_videos < FEW_VIDEOS else _by_arcsine
        lows, highs = find(parts, shares, errors, scale=scale, n_videos=n_videos, level=level)
    return Ends(shares, errors, lows, highs)


def _by_arcsine(
    parts: Floats, shares: Floats, errors: Floats, *, scale: float, n_videos: int, level: float
) -> tuple[Floats, Floats]:
    """The bootstrap-t; what lies above the truth in the draws lies above the metric in the ends."""
    del n_videos
    low, high = bootstrap_t(parts, scale=scale, level=level)
    angles, steps = arcsine(shares), errors * arcsine_slope(shares)
    return share_of_arcsine(angles - high * steps), share_of_arcsine(angles - low * steps)


def _by_log_odds(
    parts: Floats, shares: Floats, errors: Floats, *, scale: float, n_videos: int, level: float
) -> tuple[Floats, Floats]:
    del parts, scale
    from scipy.special import expit, logit, stdtrit

    steps = stdtrit(n_videos - 1, (1 + level) / 2) * errors / (shares * (1 - shares))
    return expit(logit(shares) - steps), expit(logit(shares) + steps)
