"""Differences of paired scores: intervals, corrections for many tests, and the judge's noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Final

import numpy as np

from lmms_eval_captions.metrics.intervals import FEW_VIDEOS
from lmms_eval_captions.metrics.parts import (
    Floats,
    RatioParts,
    influences_of_videos,
    judge_variances,
    n_videos_of,
    t_quantile,
    values_of_runs,
)

_FEW_CHANGED: Final = 6
"""Videos that must differ for a sign test to be significant at 5%: 2 x 0.5^5 > 0.05."""
_NO_ERROR: Final = 1e-9
"""Standard error, as a share of the scale, below which all videos differ by the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A metric of one captioner minus that of another on the same videos."""

    difference: float
    """In the metric's unit; ``nan`` if one of them has no value."""
    low: float | None = None
    high: float | None = None
    """Ends of the interval; ``None`` if none can be given."""
    standard_error: float | None = None
    """Over videos, including the judge's part; ``None`` if fewer than 2 videos count."""
    p_value: float | None = None
    """Two-sided, of no difference: below 0.05 exactly if the interval excludes 0. 1 for
    identical captioners, ``None`` without an interval."""
    n_videos: int
    """Videos that both metrics rest on, see :func:`n_videos_of`."""
    method: str = "none"
    note: str = ""
    """Why there is no interval, or a warning; else empty."""
    n_moved: int = 0
    """Videos that add something else for one captioner than for the other."""


def paired_interval(a: RatioParts, b: RatioParts, *, scale: float) -> Difference:
    """Return the difference a - b of a metric with its 95% t interval, clustered by video.

    The videos of both sides are the same, in the same order; judge runs may differ. What makes a
    video hard for both cancels, as does the skewness for which single metrics need a bootstrap
    (``benchmarks/coverage.py``).

    Source:
        arXiv 2411.00640, sections 2.2 and 4.2; t with n - 1 degrees of freedom for n clusters:
        Cameron and Miller, A Practitioner's Guide to Cluster-Robust Inference (2015), section VI.

    Four videos of two questions each; the first captioner answers one more of two of them:

    >>> def of(counts):
    ...     return np.array([[[[[n, 2.0]]] for n in counts]])
    >>> found = paired_interval(of([2, 1, 2, 1]), of([1, 1, 1, 1]), scale=100.0)
    >>> found.difference, round(found.standard_error, 2), round(found.p_value, 3), found.note
    (25.0, 14.43, 0.182, 'only 4 videos: a rough guess')
    """
    from scipy.special import stdtr

    is_counted = a.any(axis=(0, 2, 3, 4)) | b.any(axis=(0, 2, 3, 4))
    a, b = a[:, is_counted], b[:, is_counted]
    n_videos = min(n_videos_of(a), n_videos_of(b))
    values = [values_of_runs(side, scale=scale).mean() for side in (a, b)]
    found = Difference(difference=float(values[0] - values[1]), n_videos=n_videos)
    if n_videos < 2:
        return replace(found, note="no interval: fewer than 2 videos count")
    if np.isnan(found.difference):
        return replace(found, note="no interval: the metric has no value in some judge run")
    is_same = np.isclose(a.mean(axis=0), b.mean(axis=0), rtol=1e-12, atol=1e-12)
    n_moved = int((~is_same).any(axis=(1, 2, 3)).sum())
    if not n_moved:
        found = replace(found, difference=0.0, standard_error=0.0, p_value=1.0)
        return replace(found, note=f"identical on all {n_videos} videos")
    changes = changes_of_videos(a, b, scale=scale)
    error = float(np.sqrt((changes**2).sum() * n_videos / (n_videos - 1)))
    if not error > _NO_ERROR * scale:
        note = f"no interval: all {n_videos} videos differ by the same"
        return replace(found, standard_error=0.0, note=note, n_moved=n_moved)
    reach = t_quantile(n_videos - 1) * error
    note = ""
    if n_videos < FEW_VIDEOS:
        note = f"only {n_videos} videos: a rough guess"
    elif n_moved < _FEW_CHANGED:
        note = f"only {n_moved} of {n_videos} videos differ: a rough guess"
    return replace(
        found,
        low=found.difference - reach,
        high=found.difference + reach,
        standard_error=error,
        p_value=float(2 * stdtr(n_videos - 1, -abs(found.difference) / error)),
        method="paired t over videos",
        note=note,
        n_moved=n_moved,
    )


def changes_of_videos(a: RatioParts, b: RatioParts, *, scale: float) -> Floats:
    """Return the first-order effect of each video on a - b, shape (n_videos,); 0 without values."""
    first, second = (influences_of_videos(side, scale=scale).mean(axis=0) for side in (a, b))
    return np.asarray(np.nan_to_num(first - second))


_N_DRAWS: Final = 20_000


def simultaneous(
    differences: Sequence[Difference], changes: Floats
) -> tuple[list[float | None], list[tuple[float, float] | None]]:
    """Correct the p-values and intervals of a family of differences for one another.

    The chance that any interval misses its difference is at most 5%. Unlike Holm's correction, it
    uses how the differences depend on one another: groups of questions about the same videos, pairs
    that share a captioner.

    Args:
        differences: Shape (n_comparisons,). One without an interval keeps its p-value and gets no
            interval.
        changes: Shape (n_comparisons, n_videos), see :func:`changes_of_videos`.

    Returns:
        P-values and ends; an interval excludes 0 exactly if its p-value is below 0.05.

    Source:
        The single-step minimum-p procedure (max-t) of Westfall and Young, Resampling-Based Multiple
        Testing (1993), section 2.3, with a normal joint distribution as in Hothorn, Bretz and
        Westfall, Simultaneous Inference in General Parametric Models (2008), section 3.

    Two comparisons that always go together need no correction, independent ones do:

    >>> one = Difference(difference=2.1, low=0.1, high=4.1, standard_error=1.0, p_value=0.04,
    ...                  n_videos=100)
    >>> together = simultaneous([one, one], np.array([[1.0, -1.0, 0, 0], [1.0, -1.0, 0, 0]]))
    >>> apart = simultaneous([one, one], np.array([[1.0, -1.0, 0, 0], [0, 0, 1.0, -1.0]]))
    >>> [round(p_values[0], 2) for p_values, _ in (together, apart)]
    [0.04, 0.08]
    """
    from scipy.special import ndtr, stdtrit

    p_values = [each.p_value for each in differences]
    intervals: list[tuple[float, float] | None] = [None] * len(differences)
    made = [index for index, each in enumerate(differences) if each.low is not None]
    if not made:
        return p_values, intervals
    units = changes[made] / np.linalg.norm(changes[made], axis=1, keepdims=True)
    sizes, axes = np.linalg.eigh(units @ units.T)
    root = axes * np.sqrt(np.clip(sizes, 0.0, None))
    normal = np.random.default_rng(0).standard_normal((_N_DRAWS, len(made)))
    smallest = np.sort(2 * ndtr(-np.abs(normal @ root.T).max(axis=1)))
    # Between no correction and Bonferroni's, which draws may overstep.
    drawn = float(smallest[(_N_DRAWS + 1) // 20 - 1])
    critical = 0.05 if len(made) == 1 else min(max(drawn, 0.05 / len(made)), 0.05)
    for index in made:
        found = differences[index]
        p_value, error = float(found.p_value or 0.0), float(found.standard_error or 0.0)
        drawn = (int(np.searchsorted(smallest, p_value, side="right")) + 1) / (_N_DRAWS + 1)
        p_values[index] = min(max(drawn, p_value), len(made) * p_value, 1.0)
        reach = float(stdtrit(found.n_videos - 1, 1 - critical / 2)) * error
        intervals[index] = found.difference - reach, found.difference + reach
    return p_values, intervals


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted so that the chance of any false discovery at 5% is at most 5%.

    ``None`` is a comparison that could not be made, and does not count.

    Source:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979), section 3.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    made = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(made):
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[index] = largest
    return adjusted


def videos_to_settle(found: Difference, *, margin: float = 0.0) -> int | None:
    """Return how many videos would tell a difference from a margin with a power of 80%.

    A 95% interval is to exclude the margin, such as the bound of a gate, if the difference is what
    it seems now. At least 2, including those at hand; ``None`` if the difference is the margin or
    has no standard error.

    Source:
        Cohen, Statistical Power Analysis (1988), chapter 2, by normal quantiles.

    >>> found = Difference(difference=1.0, standard_error=1.0, n_videos=100)
    >>> videos_to_settle(found), videos_to_settle(found, margin=1.0)
    (785, None)
    """
    from scipy.special import ndtri

    error, away = found.standard_error, abs(found.difference - margin)
    if not error or not away > 0:
        return None
    quantiles = float(ndtri(0.975)) + float(ndtri(0.8))
    return max(2, ceil(found.n_videos * (quantiles * error / away) ** 2))


def noise_floor(captioners: Sequence[RatioParts], *, scale: float, n_runs: int) -> float:
    """Return the difference of two scores that the judge's noise alone stays below, at 95%.

    It is for two captioners whose captions are equally good to the judge, on these videos, with
    scores that are means of ``n_runs`` judge runs. A judge that changes for all videos at once
    moves scores further. ``nan`` if a captioner has fewer than 2 videos.

    Args:
        captioners: Parts of each captioner with >= 2 judge runs; their noise is averaged.
        scale: Value of a metric that is a share of 1.
        n_runs: >= 1.

    Source:
        arXiv 2411.00640, section 3.1; :func:`judge_variances`, with the degrees of freedom of
        Satterthwaite, Biometrics Bulletin 2 (1946).

    One video of two gets another verdict in the second of two runs, which moves the score by 50:

    >>> runs = np.array([[[[[1.0, 1.0]]], [[[0.0, 1.0]]]], [[[[1.0, 1.0]]], [[[1.0, 1.0]]]]])
    >>> floors = [noise_floor([runs], scale=100.0, n_runs=n) for n in (1, 4)]
    >>> round(floors[0] / floors[1], 6)
    2.0
    """
    variance = divisor = 0.0
    for parts in captioners:
        counted = parts[:, parts.any(axis=(0, 2, 3, 4))]
        n_videos = counted.shape[1]
        if n_videos < 2:
            return float("nan")
        of_videos = judge_variances(counted, scale=scale) * n_videos / (n_videos - 1)
        variance += float(of_videos.sum())
        divisor += float((of_videos**2).sum()) / (len(parts) - 1)
    if not variance:
        return 0.0
    return t_quantile(variance**2 / divisor) * sqrt(2 * variance / len(captioners) / n_runs)
