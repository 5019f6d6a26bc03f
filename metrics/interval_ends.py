"""The ends of intervals of a metric in many samples at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

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
    is_rough: NDArray[np.bool_]
    """Whether so few videos differ from the others that draws without them tell no end."""


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
    >>> [round(float(one[0]), 3) for one in ends[:4]]
    [0.5, 0.204, 0.069, 0.931]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares, errors = _shares_and_errors(parts, scale, n_videos)
        is_rough = np.zeros(len(parts), dtype=bool)
        if n_videos < FEW_VIDEOS:
            lows, highs = _log_odds_ends(shares, errors, n_videos, level)
        else:
            below, above = bootstrap_t(parts, scale=scale, level=level)
            # What lies above the truth in the draws lies above the metric in the ends.
            angles, steps = arcsine(shares), errors * arcsine_slope(shares)
            lows = share_of_arcsine(angles - above * steps)
            highs = share_of_arcsine(angles - below * steps)
            is_rough = (np.isinf(below) | np.isinf(above)) & (errors > 0)
        if is_rough.any():
            wider = _shares_and_errors(_with_two(parts[is_rough], scale), scale, n_videos + 2)
            lows[is_rough], highs[is_rough] = _log_odds_ends(*wider, n_videos + 2, level)
    return Ends(shares, errors, lows, highs, is_rough)


def in_own_order(parts: Floats) -> Floats:
    """The videos of one sample in an order that depends on what they add, and on nothing else.

    So an interval does not depend on the order of videos in a file. Ordered by size, they would
    have the same chance errors of the draws in every sample; the order is drawn, by a seed made of
    what they add.

    >>> parts = np.arange(8.0).reshape(4, 1, 1, 2)
    >>> np.array_equal(in_own_order(parts), in_own_order(parts[::-1]))
    True
    """
    keys = parts.reshape(len(parts), -1)
    largest = np.maximum(keys.max(axis=0), np.finfo(np.float64).tiny)
    # Rounding errors of how the parts were added up move no seed.
    keys = np.round(keys / largest, 9)
    order = np.lexsort(keys.T)
    seed = crc32(np.ascontiguousarray(keys[order]).tobytes())
    return np.asarray(parts[order[np.random.default_rng(seed).permutation(len(order))]])


def _shares_and_errors(parts: Floats, scale: float, n_videos: int) -> tuple[Floats, Floats]:
    sums = sums_of(parts)
    influences = influences_of(parts, sums, scale=scale)
    errors = np.sqrt((influences**2).sum(axis=-1) * n_videos / (n_videos - 1))
    return sums.values(scale), errors


def _log_odds_ends(
    shares: Floats, errors: Floats, n_videos: int, level: float
) -> tuple[Floats, Floats]:
    from scipy.special import expit, logit, stdtrit

    steps = stdtrit(n_videos - 1, (1 + level) / 2) * errors / (shares * (1 - shares))
    return expit(logit(shares) - steps), expit(logit(shares) + steps)


def _with_two(parts: Floats, scale: float) -> Floats:
    """The samples with two more videos of mean size, one all right and one all wrong.

    As Agresti and Coull (1998) add two successes and two failures to a share of few.
    """
    size = parts[..., 1].mean(axis=1, keepdims=True)
    first = np.zeros(size.shape[-2:], dtype=bool)
    first[..., 0] = True
    tops = parts[..., 0].mean(axis=1, keepdims=True)
    # The terms of a video that is all right come to the whole range.
    most = size / (scale * size.shape[-2])
    wrong = np.stack([np.where(first, 0.0, tops), size], axis=-1)
    right = np.stack([np.where(first, most, tops), size], axis=-1)
    return np.concatenate([parts, wrong, right], axis=1)
