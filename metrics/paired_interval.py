"""Whether two captioners differ: the difference of a metric on the same videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.metrics.interval_ends import FEW_VIDEOS
from lmms_eval_captions.metrics.ratio_parts import (
    influences_of_videos,
    n_videos_of,
    values_of_runs,
)

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.ratio_parts import RatioParts

_FEWEST_MOVED: Final = 6
"""Videos that must differ for a sign test to tell at 95 %: 2 x 0.5^5 > 0.05."""
_SAME: Final = 1e-9
"""Standard error, as a share of the scale, below which all videos differ by the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A metric of one captioner less that of another on the same videos."""

    difference: float
    """In the metric's unit; ``nan`` where one of them has no value."""
    low: float | None
    high: float | None
    """Ends of the interval; ``None`` where none can be given."""
    standard_error: float | None
    """Over videos, the judge's part in it; ``None`` where fewer than 2 videos count."""
    p_value: float | None
    """Two-sided, of no difference, in [0, 1]: below 1 - level where the interval leaves out 0, and
    only there. 1 where the captioners are identical; ``None`` where there is no interval."""
    n_videos: int
    """Videos that both metrics rest on; where these have several ratios, that of the one with
    fewest."""
    method: str
    """How the ends were found, in a few words."""
    note: str = ""
    """Why there is no interval, or what a reader must know of it; else empty."""
    n_moved: int = 0
    """Videos that add something else for one captioner than for the other."""


def paired_interval(
    a: RatioParts, b: RatioParts, *, scale: float, level: float = 0.95
) -> Difference:
    """The difference a - b of a metric, and its interval, clustered by video.

    What a video adds to one metric is set against what it adds to the other: what makes a video
    hard for both cancels, so that this interval is narrower than those of the metrics apart, and
    two intervals that overlap say nothing of the difference. Both sides of the difference are
    linearised; skewness, for which single metrics need a bootstrap, cancels as well, and the t
    interval covers best of those tried (``benchmarks/coverage.py``; a bootstrap-t of the difference
    covers 86 to 92 % at 30 videos where few of them differ).

    Args:
        a: What each video adds for one captioner, see :data:`RatioParts`.
        b: The same for the other, with the same videos in the same order; judge runs may differ.
        scale: What is printed for a share of 1.
        level: Share of such intervals that cover, in (0, 1).

    Returns:
        The difference; without ends where fewer than 2 videos count or all differ by the same,
        which tells nothing of other videos.

    Source:
        Paired differences by cluster: arXiv 2411.00640, section 4.2 (paired analysis) with the
        clustered errors of section 2.2; linearisation as :func:`influences_of_videos`; t with
        n - 1 degrees of freedom as for n independent clusters, Cameron and Miller, A Practitioner's
        Guide to Cluster-Robust Inference (2015), section VI.

    Four videos of two questions each; the first captioner answers one more of two of them:

    >>> def of(counts):
    ...     return np.array([[[[[n, 2.0]]] for n in counts]])
    >>> found = paired_interval(of([2, 1, 2, 1]), of([1, 1, 1, 1]), scale=100.0)
    >>> found.difference, round(found.standard_error, 2), round(found.p_value, 3), found.note
    (25.0, 14.43, 0.182, 'only 4 videos: a rough guess')
    """
    has_part = a.any(axis=(0, 2, 3, 4)) | b.any(axis=(0, 2, 3, 4))
    kept = [parts[:, has_part] for parts in (a, b)]
    n_videos = min(map(n_videos_of, kept)) if has_part.any() else 0
    means = [values_of_runs(parts, scale=scale).mean() if n_videos else np.nan for parts in kept]
    difference = float(means[0] - means[1])
    if n_videos < 2 or np.isnan(difference):
        note = "no interval: fewer than 2 videos count"
        return _without_ends(difference, None, None, n_videos, note)
    first, second = (influences_of_videos(parts, scale=scale).mean(axis=0) for parts in kept)
    error = float(np.sqrt(((first - second) ** 2).sum() * n_videos / (n_videos - 1)))
    n_moved = _n_moved(*kept)
    if not n_moved:
        note = f"identical on all {n_videos} videos"
        return _without_ends(0.0, 0.0, 1.0, n_videos, note)
    if not error > _SAME * scale:
        note = f"no interval: all {n_videos} videos differ by the same"
        return _without_ends(difference, 0.0, None, n_videos, note, n_moved)
    return _by_t(difference, error, n_videos, n_moved, level)


def _by_t(difference: float, error: float, n_videos: int, n_moved: int, level: float) -> Difference:
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(n_videos - 1, (1 + level) / 2)) * error
    note = ""
    if n_videos < FEW_VIDEOS:
        note = f"only {n_videos} videos: a rough guess"
    elif n_moved < _FEWEST_MOVED:
        note = f"only {n_moved} of {n_videos} videos differ: a rough guess"
    return Difference(
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        standard_error=error,
        p_value=float(2 * stdtr(n_videos - 1, -abs(difference) / error)),
        n_videos=n_videos,
        method="paired t over videos",
        note=note,
        n_moved=n_moved,
    )


def _n_moved(a: RatioParts, b: RatioParts) -> int:
    """Videos that add, mean over judge runs, something else for one captioner than the other."""
    same = np.isclose(a.mean(axis=0), b.mean(axis=0), rtol=1e-12, atol=1e-12)
    return int((~same).any(axis=(1, 2, 3)).sum())


def _without_ends(
    difference: float,
    error: float | None,
    p_value: float | None,
    n_videos: int,
    note: str,
    n_moved: int = 0,
) -> Difference:
    return Difference(
        difference=difference,
        low=None,
        high=None,
        standard_error=error,
        p_value=p_value,
        n_videos=n_videos,
        method="none",
        note=note,
        n_moved=n_moved,
    )
