"""How two raters' numbers go together: Pearson's correlation with its interval over videos."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.metrics.clustered_jackknife import CORRELATION, jackknife_interval
from lmms_eval_captions.metrics.interval import Interval
from lmms_eval_captions.metrics.ratings import Floats, sums_of_clusters


def pearson_interval(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, videos: NDArray[np.intp]
) -> Interval:
    """Pearson's correlation of two raters' numbers, clustered by video.

    Args:
        first: Shape (n_units,), one rater's.
        second: The other's of the same units.
        videos: Shape (n_units,), the place of each unit's video, from 0.

    Returns:
        Correlation in [-1, 1]; ``nan`` where one of them is the same for all units.

    Source:
        Pearson (1895); :func:`jackknife_interval` of Fisher's z.

    >>> found = pearson_interval([1, 2, 3, 5, 4], [2, 2, 4, 5, 3], np.arange(5))
    >>> round(found.value, 4)
    0.8489
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not len(x):
        return jackknife_interval(np.empty((0, 6)), _pearson, line=CORRELATION)
    # From one of them, so that equal numbers are exactly 0.
    x, y = x - x[0], y - y[0]
    parts = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    return jackknife_interval(sums_of_clusters(parts, videos), _pearson, line=CORRELATION)


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.maximum((n * xx - x * x) * (n * yy - y * y), 0.0))
        return np.asarray(np.where(spread > 0, (n * xy - x * y) / spread, np.nan))
