"""Whether two captioners differ: the difference of a metric on the same videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.metrics.ratio_parts import influences_of_videos, values_of_runs

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.ratio_parts import RatioParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A metric of one captioner less that of another on the same videos."""

    difference: float
    """In the metric's unit; ``nan`` where one of them has no value."""
    low: float | None
    high: float | None
    """Ends of the interval; ``None`` where none can be given."""
    standard_error: float | None
    """Over videos; ``None`` where there is no interval."""
    p_value: float | None
    """Two-sided, of no difference, in [0, 1]; ``None`` where there is no interval."""
    n_videos: int
    """Videos that have a part in either."""
    method: str
    """How the ends were found, in a few words."""
    note: str = ""
    """Why there is no interval, or what a reader must know of it; else empty."""


def paired_interval(
    a: RatioParts, b: RatioParts, *, scale: float, level: float = 0.95
) -> Difference:
    """The difference a - b of a metric, and its interval, clustered by video.

    Args:
        a: What each video adds for one captioner, see :data:`RatioParts`.
        b: The same for the other, with the same videos in the same order; judge runs may differ.
        scale: What is printed for a share of 1.
        level: Share of such intervals that cover, in (0, 1).
    """
    from scipy.special import stdtr, stdtrit

    has_part = a.any(axis=(0, 2, 3, 4)) | b.any(axis=(0, 2, 3, 4))
    n_videos = int(has_part.sum())
    kept = [parts[:, has_part] for parts in (a, b)]
    means = [values_of_runs(parts, scale=scale).mean() if n_videos else np.nan for parts in kept]
    difference = float(means[0] - means[1])
    if n_videos < 2 or np.isnan(difference):
        return Difference(
            difference=difference, low=None, high=None, standard_error=None, p_value=None,
            n_videos=n_videos, method="none", note="no interval: fewer than 2 videos count",
        )  # fmt: skip
    first, second = (influences_of_videos(parts, scale=scale).mean(axis=0) for parts in kept)
    influences = first - second
    error = float(np.sqrt((influences**2).sum() * n_videos / (n_videos - 1)))
    reach = float(stdtrit(n_videos - 1, (1 + level) / 2)) * error
    p_value = float(2 * stdtr(n_videos - 1, -abs(difference) / error)) if error else None
    return Difference(
        difference=difference, low=difference - reach, high=difference + reach,
        standard_error=error, p_value=p_value, n_videos=n_videos,
        method="paired linearised t over videos",
    )  # fmt: skip
