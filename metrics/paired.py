"""Differences of paired scores: interval, Holm's correction, videos that settle one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lmms_eval_captions.metrics.intervals import FEW_VIDEOS, judge_runs
from lmms_eval_captions.metrics.parts import (
    influences_of_videos,
    n_videos_of,
    values_of_runs,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.metrics.parts import RatioParts


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
    if n_videos < 2:
        note = "no interval: fewer than 2 videos count"
        return _without_ends(difference, None, None, n_videos, note)
    if np.isnan(difference):
        note = "no interval: the metric has no value in some judge run"
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


class Simultaneous(NamedTuple):
    """Comparisons of one family, corrected for one another."""

    p_values: list[float | None]
    """Adjusted, in [0, 1]; ``None`` if a comparison could not be made."""
    intervals: list[tuple[float, float] | None]
    """Ends in the metric's unit; an interval excludes 0 exactly if its p-value is below 0.05."""


_DRAWS: Final = 20_000


def simultaneous(
    found: Sequence[Difference], moves: NDArray[np.float64], *, level: float = 0.95
) -> Simultaneous:
    """Correct the p-values and intervals of a family of differences for one another.

    The chance that any interval misses its difference is at most 1 - ``level``, in the long run.
    Unlike Holm's correction, it makes use of how the differences go together: groups of questions
    about the same videos, and pairs that share a captioner.

    Args:
        found: Shape (n_comparisons,).
        moves: Shape (n_comparisons, n_videos), see :func:`moves_of`; all 0 where nothing is known.
        level: Share of families of intervals that cover all their differences, in (0, 1).

    Returns:
        P-values and intervals in the same order. Differences without an interval of their own have
        none here, and identical captioners keep a p-value of 1.

    Source:
        The single-step minimum-p procedure (max-t): Westfall and Young, Resampling-Based Multiple
        Testing (1993), section 2.3; the joint distribution is normal with the correlations of the
        influences, as in Hothorn, Bretz and Westfall, Simultaneous Inference in General Parametric
        Models (2008), section 3.

    Two comparisons that always go together need no correction, independent ones do:

    >>> one = Difference(difference=2.1, low=0.1, high=4.1, standard_error=1.0, p_value=0.04,
    ...                  n_videos=100, method="")
    >>> together = simultaneous([one, one], np.array([[1.0, -1.0, 0, 0], [1.0, -1.0, 0, 0]]))
    >>> apart = simultaneous([one, one], np.array([[1.0, -1.0, 0, 0], [0, 0, 1.0, -1.0]]))
    >>> [round(of.p_values[0], 2) for of in (together, apart)]
    [0.04, 0.08]
    """
    from scipy.special import ndtr, stdtrit

    made = [i for i, each in enumerate(found) if each.p_value is not None and each.low is not None]
    p_values: list[float | None] = [each.p_value for each in found]
    intervals: list[tuple[float, float] | None] = [None] * len(found)
    if not made:
        return Simultaneous(p_values, intervals)
    units = moves[made] / np.linalg.norm(moves[made], axis=1, keepdims=True)
    sizes, axes = np.linalg.eigh(units @ units.T)
    root = axes * np.sqrt(np.clip(sizes, 0.0, None))
    normal = np.random.default_rng(0).standard_normal((_DRAWS, len(made)))
    smallest = np.sort(2 * ndtr(-np.abs(normal @ root.T).max(axis=1)))
    # Between no correction and Bonferroni's, which draws alone do not keep to.
    tail = 1 - level
    critical = float(smallest[int(tail * (_DRAWS + 1)) - 1])
    critical = tail if len(made) == 1 else min(max(critical, tail / len(made)), tail)
    for i in made:
        each = found[i]
        p_value, error = float(each.p_value or 0.0), float(each.standard_error or 0.0)
        drawn = (int(np.searchsorted(smallest, p_value, side="right")) + 1) / (_DRAWS + 1)
        p_values[i] = min(max(drawn, p_value), len(made) * p_value, 1.0)
        reach = float(stdtrit(each.n_videos - 1, 1 - critical / 2)) * error
        intervals[i] = each.difference - reach, each.difference + reach
    return Simultaneous(p_values, intervals)


def moves_of(a: RatioParts, b: RatioParts, *, scale: float) -> NDArray[np.float64]:
    """Return how each video moves the difference a - b of a metric, shape (n_videos,).

    Args:
        a: What each video adds for one captioner, see :data:`RatioParts`.
        b: The same of the other.
        scale: What is printed for a share of 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (influences_of_videos(each, scale=scale).mean(axis=0) for each in (a, b))
    return np.asarray(np.nan_to_num(first - second))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values: below 0.05 where a difference stands although several were looked at.

    The chance that any of the differences that are none comes out below 0.05 is at most 5 %,
    however they depend on one another, as aspects of the same captions do.

    Args:
        p_values: Shape (n_comparisons,), in [0, 1]; ``None`` is a comparison that could not be
            made, and does not count.

    Returns:
        Adjusted p-values in the same order, in [0, 1], each at least the one that came.

    Raises:
        ValueError: If a p-value is outside [0, 1].

    Source:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
        Statistics 6 (1979), section 3.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(made):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"holm: expected p-values between 0 and 1, got {p!r}")
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[place] = largest
    return adjusted


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
        Analysis (1988), chapter 2, by normal quantiles.

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


_ROUNDING: Final = 1e-12
"""Standard error, as a share of the scale, of runs that differ by rounding alone."""


def noise_floor(
    captioners: Sequence[RatioParts], *, scale: float, n_runs: int, level: float = 0.95
) -> float:
    """The difference of two captioners' scores that the judge's noise alone stays below.

    Two captioners whose captions are equally good to the judge, on the same videos and judged
    ``n_runs`` times each, differ by less in ``level`` of all cases. It says nothing of other
    videos: a larger difference may still be these videos' doing, see :func:`paired_interval`.

    Args:
        captioners: What each video adds for each captioner, see :data:`RatioParts`, with at least
            2 judge runs; their noise is averaged.
        scale: What is printed for a share of 1.
        n_runs: Judge runs that the two scores are means of, >= 1.
        level: Share of equal captioners that differ by less, in (0, 1).

    Returns:
        The difference in the metric's unit, >= 0; 0 where no verdict moved from run to run.
        ``nan`` where the judge's noise is not known, see :class:`JudgeRuns`.

    Source:
        The variance of a score over repeated answers to the same questions, 1 / n_runs of one
        run's (arXiv 2411.00640, section 3.1), here from the variance between runs within each
        video, whose sum over videos has the degrees of freedom of Satterthwaite, Biometrics
        Bulletin 2 (1946); the difference of two such means has twice the variance. As if every
        video were judged for itself: a judge that changes for all videos at once moves scores
        further, which the runs' own scores show.

    One video of two gets another verdict in the second of two runs, which moves the score by 50:

    >>> runs = np.array([[[[[1.0, 1.0]]], [[[0.0, 1.0]]]], [[[[1.0, 1.0]]], [[[1.0, 1.0]]]]])
    >>> errors = [noise_floor([runs], scale=100.0, n_runs=n) for n in (1, 4)]
    >>> round(errors[0] / errors[1], 6)
    2.0
    """
    from scipy.special import stdtrit

    variances, freedoms = [], []
    for parts in captioners:
        found = judge_runs(parts, scale=scale)
        if found.standard_error is None:
            return float("nan")
        error = found.standard_error if found.standard_error > _ROUNDING * scale else 0.0
        variances.append(error**2 * found.n_runs)
        freedoms.append(_freedom(parts, scale))
    variance = float(np.mean(variances))
    if variance == 0:
        return 0.0
    # Of a sum of independent variances; a captioner without noise adds none.
    freedom = sum(variances) ** 2 / sum(
        of_one**2 / df for of_one, df in zip(variances, freedoms, strict=True) if of_one
    )
    return float(stdtrit(freedom, (1 + level) / 2)) * float(np.sqrt(2 * variance / n_runs))


def _freedom(parts: RatioParts, scale: float) -> float:
    """Satterthwaite's degrees of freedom of the variance between runs; 0 where there is none."""
    kept = parts[:, parts.any(axis=(0, 2, 3, 4))]
    of_videos = influences_of_videos(kept, scale=scale).var(axis=0, ddof=1)
    squares = float((of_videos**2).sum())
    return float((len(kept) - 1) * of_videos.sum() ** 2 / squares) if squares else 0.0
