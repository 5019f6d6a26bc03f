"""A score with its 95% interval over videos, over one or more judge runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import numpy as np

from lmms_eval_captions.metrics.parts import (
    influences_of_videos,
    merged_terms,
    n_videos_of,
    parts_within,
    values_of_runs,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    from lmms_eval_captions.metrics.parts import RatioParts


def arcsine(share: Floats) -> Floats:
    """The angle in [0, pi / 2] whose squared sine is a share.

    >>> arcsine(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [0.0, 0.785, 1.571]
    """
    return np.asarray(np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0))))


def arcsine_slope(share: Floats) -> Floats:
    """Derivative of :func:`arcsine`, infinite at 0 and 1.

    >>> arcsine_slope(np.array([0.5])).tolist()
    [1.0]
    """
    inside = np.clip(share, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 / np.sqrt(inside * (1.0 - inside)))


def share_of_arcsine(angle: Floats) -> Floats:
    """The share of an angle; 0 below and 1 above the angles of shares.

    >>> share_of_arcsine(np.array([-1.0, 0.7853981633974483, 9.0])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(np.sin(np.clip(angle, 0.0, np.pi / 2)) ** 2)


N_DRAWS: Final = 1999
"""One less than a multiple of 40, so that the ends of a 95 % interval are draws themselves."""

_DRAWN_AT_ONCE: Final = 100_000
"""Videos that are drawn at once, so few that a processor's cache holds them."""


@lru_cache(maxsize=4)
def video_draws(n_videos: int, *, n_draws: int = N_DRAWS, seed: int = 0) -> NDArray[np.float64]:
    """How often each video is taken in each draw of as many videos, with replacement.

    A video is taken with all its questions and judge runs: they are right or wrong together.

    Args:
        n_videos: >= 1.
        n_draws: >= 1.
        seed: The same seed gives the same draws, whatever was drawn before.

    Returns:
        Shape (n_draws, n_videos), whole numbers >= 0 whose rows sum to n_videos; not to be written
        to.

    Source:
        Efron (1979); of clusters: Field and Welsh, Bootstrapping clustered data (2007).

    >>> video_draws(3, n_draws=2).sum(axis=1).tolist()
    [3.0, 3.0]
    """
    rng = np.random.default_rng(seed)
    draws = np.empty((n_draws, n_videos))
    n_rows = max(1, _DRAWN_AT_ONCE // n_videos)
    for row in range(0, n_draws, n_rows):
        some = draws[row : row + n_rows]
        taken = rng.integers(0, n_videos, size=some.shape, dtype=np.int64)
        taken += n_videos * np.arange(len(some))[:, None]
        some[:] = np.bincount(taken.ravel(), minlength=some.size).reshape(some.shape)
    draws.flags.writeable = False
    return draws


_ONE_THREAD: Final = 250_000
"""Products in one multiplication of matrices: OpenBLAS sets several threads on more, which burn
the processor while they wait and gain nothing here."""
_SAME_SPREAD: Final = 1e-12
"""Variance in a draw, as a share of the sample's, that is rounding: all videos drawn are alike."""


class Sums(NamedTuple):
    """Metrics as ``scale`` times a sum over terms of products of ratios, one of each sample."""

    ratios: Floats
    """Shape (..., n_terms, n_factors)."""
    bottoms: Floats
    """Denominators of the ratios, the same shape."""

    def values(self, scale: float) -> Floats:
        """The metrics, shape (...)."""
        return np.asarray(scale * self.ratios.prod(axis=-1).sum(axis=-1))

    def slopes(self, scale: float) -> Floats:
        """Their derivatives along the numerators, shape (..., n_terms, n_factors)."""
        factors = np.arange(self.ratios.shape[-1])
        others = [self.ratios[..., factors != k].prod(axis=-1) for k in factors]
        return np.asarray(scale * np.stack(others, axis=-1) / self.bottoms)


def sums_of(parts: Floats) -> Sums:
    """The ratios of samples, shape (..., n_videos, n_terms, n_factors, 2)."""
    totals = parts.sum(axis=-4)
    return Sums(totals[..., 0] / totals[..., 1], totals[..., 1])


def influences_of(parts: Floats, sums: Sums, *, scale: float) -> Floats:
    """First-order effect of each video on the metric of its sample, shape (..., n_videos)."""
    residuals = _residuals(parts, sums)
    slopes = sums.slopes(scale)[..., None, :, :]
    return np.asarray((slopes * residuals).sum(axis=(-2, -1)))


def bootstrap_t(parts: Floats, *, scale: float, level: float) -> tuple[Floats, Floats]:
    """How many standard errors a metric lies from the truth, at most below and above.

    Videos are drawn with replacement; in each draw the metric's distance from that of the sample is
    taken in standard errors of that draw, both on the arcsine scale, where the error of a share
    hardly depends on the share.

    Args:
        parts: Shape (n_samples, n_videos, n_terms, n_factors, 2): of each of many samples of as
            many videos, what videos add, as :func:`merged_terms` gives it.
        scale: What a sum over terms of 1 is as a share of the metric's range, lowest value 0.
        level: Share of intervals that cover, in (0, 1).

    Returns:
        Two arrays of shape (n_samples,): the quantiles at (1 - level) / 2 and (1 + level) / 2 of
        that distance, <= 0 and >= 0 but for odd samples, infinite where no draw tells; ``nan``
        where a metric has no value in any draw.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 12.5 (bootstrap-t)
        and 12.6 (after a transformation that stabilises the variance); the standard error is that
        of Liang and Zeger (1986). Deviation: the transformation is the arcsine of a share, not one
        estimated by a second bootstrap.

    >>> of_video = np.array([[[1.0, 2.0]], [[2.0, 2.0]], [[0.0, 2.0]], [[1.0, 2.0]]])
    >>> low, high = bootstrap_t(of_video[None, :, None], scale=1.0, level=0.95)
    >>> bool(low[0] < -1.96), bool(high[0] > 1.96)
    (True, True)
    """
    n_samples, n_videos = parts.shape[:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = sums_of(parts)
        centre = arcsine(sums.values(scale))[:, None]
        totals, squares = _totals(parts, sums, video_draws(n_videos))
        shape = (n_samples, -1, *sums.ratios.shape[1:])
        tops, bottoms = (half.reshape(shape) for half in np.split(totals, 2, axis=-1))
        shifts = tops / bottoms
        drawn = Sums(sums.ratios[:, None] + shifts, bottoms)
        slopes = drawn.slopes(scale)
        gradient = np.concatenate(
            [of.reshape(*totals.shape[:2], -1) for of in (slopes, -slopes * shifts)], axis=-1
        )
        variances = np.einsum("sbi,sbij,sbj->sb", gradient, squares, gradient, optimize=True)
        least = _SAME_SPREAD * (influences_of(parts, sums, scale=scale) ** 2).sum(axis=-1)[:, None]
        variances = np.where(variances > least, variances, 0.0)
        errors = np.sqrt(variances * n_videos / (n_videos - 1))
        values = drawn.values(scale)
        away = arcsine(values) - centre
        distances = away / (errors * arcsine_slope(values))
    # Where all videos drawn are alike, or all at a bound, the distance is beyond any.
    alone = np.isnan(distances) & np.isfinite(away)
    distances[alone] = np.copysign(np.inf, away[alone])
    distances[alone & (away == 0)] = 0.0
    return _quantiles(distances, (1 - level) / 2)


def _residuals(parts: Floats, sums: Sums) -> Floats:
    """What videos add to numerators beyond their share, shape (..., n_videos, terms, factors)."""
    return np.asarray(parts[..., 0] - sums.ratios[..., None, :, :] * parts[..., 1])


def _totals(parts: Floats, sums: Sums, draws: Floats) -> tuple[Floats, Floats]:
    """Of each draw the sums of residuals and denominators, and of the products of any two."""
    n_samples, n_videos = parts.shape[:2]
    halves = (_residuals(parts, sums), parts[..., 1])
    columns = np.concatenate([half.reshape(n_samples, n_videos, -1) for half in halves], axis=-1)
    n = columns.shape[-1]
    first, second = np.triu_indices(n)
    products = columns[..., first] * columns[..., second]
    every = np.concatenate([columns, products], axis=-1)
    drawn = np.stack([_drawn(draws, of_sample) for of_sample in every])
    squares = np.empty((*drawn.shape[:2], n, n))
    squares[..., first, second] = squares[..., second, first] = drawn[..., n:]
    return drawn[..., :n], squares


def _drawn(draws: Floats, of_videos: Floats) -> Floats:
    """Sums over the videos of each draw, shape (n_draws, n_columns)."""
    n_rows = max(1, _ONE_THREAD // of_videos.size)
    blocks = [draws[row : row + n_rows] @ of_videos for row in range(0, len(draws), n_rows)]
    return np.concatenate(blocks)


def _quantiles(distances: Floats, tail: float) -> tuple[Floats, Floats]:
    """The draws that leave a share below and above, of those that have a value."""
    ordered = np.sort(distances, axis=1)
    n_valued = np.isfinite(ordered).sum(axis=1) + np.isinf(ordered).sum(axis=1)
    below = np.clip(np.floor(tail * (n_valued + 1)).astype(int) - 1, 0, None)
    above = np.clip(n_valued - 1 - below, 0, None)
    low = np.take_along_axis(ordered, below[:, None], axis=1)[:, 0]
    high = np.take_along_axis(ordered, above[:, None], axis=1)[:, 0]
    return low, high


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

    As Agresti and Coull (1998) add two successes and two failures to a share of few. All right is
    what has the highest value; of a product of ratios, a first ratio of 1.
    """
    size = parts[..., 1].mean(axis=1, keepdims=True)
    n_terms, n_factors = parts.shape[-3:-1]
    highest = 1.0 / (scale * n_terms) if n_factors == 1 else 1.0
    first = np.zeros(size.shape[-2:], dtype=bool)
    first[..., 0] = True
    tops = parts[..., 0].mean(axis=1, keepdims=True)
    wrong = np.stack([np.where(first, 0.0, tops), size], axis=-1)
    right = np.stack([np.where(first, highest * size, tops), size], axis=-1)
    return np.concatenate([parts, wrong, right], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRuns:
    """A metric over judge runs, and the judge's part in its standard error."""

    n_runs: int
    mean: float
    """In the metric's unit; ``nan`` where it has no value."""
    deviation: float | None
    """Of single runs around their mean, divided by their number as ``<metric>_std`` of a breakdown
    is; ``None`` with one run."""
    standard_error: float | None
    """Of the mean over runs, from what the judge says otherwise another time; ``None`` with one
    run."""
    share: float | None
    """Part of the variance over videos and runs that is the judge's, in [0, 1]; the rest is the
    videos'. ``None`` with one run."""
    note: str = ""
    """Why the judge's part is not known; else empty."""


def judge_runs(parts: RatioParts, *, scale: float) -> JudgeRuns:
    """The judge's component of a metric: how it differs from run to run on the same captions.

    An interval over videos has this component in it already, as what a video adds is the mean over
    the runs that there were. More runs make the component smaller (half of it at twice the runs),
    more videos make both smaller.

    Args:
        parts: What each video adds, see :data:`RatioParts`.
        scale: What is printed for a share of 1.

    Returns:
        The component. Its standard error takes the judge to err on each video for itself; it is
        from the variance between runs within each video, which thousands of videos tell well,
        where the few runs' own deviation tells little.

    Source:
        Variance components of videos with replicates nested in them: Searle, Casella and McCulloch,
        Variance Components (1992), one-way classification; arXiv 2411.00640, section 3, which
        resamples answers for the same reason.

    >>> runs = np.array([[[[[1.0, 1.0]]], [[[0.0, 1.0]]]], [[[[1.0, 1.0]]], [[[1.0, 1.0]]]]])
    >>> found = judge_runs(runs, scale=100.0)
    >>> found.mean, found.deviation
    (75.0, 25.0)
    """
    kept = parts[:, parts.any(axis=(0, 2, 3, 4))]
    n_runs, n_videos = kept.shape[:2]
    values = values_of_runs(kept, scale=scale) if n_videos else np.array([np.nan])
    mean = float(values.mean())
    if n_runs < 2 or n_videos < 2 or np.isnan(mean):
        note = "unknown with 1 judge run" if n_runs < 2 else "unknown: fewer than 2 videos count"
        return JudgeRuns(
            n_runs=n_runs, mean=mean, deviation=None, standard_error=None, share=None, note=note
        )
    influences = influences_of_videos(kept, scale=scale)
    of_judge = float(influences.var(axis=0, ddof=1).sum()) / n_runs
    of_all = float((influences.mean(axis=0) ** 2).sum())
    return JudgeRuns(
        n_runs=n_runs,
        mean=mean,
        deviation=float(values.std()),
        standard_error=float(np.sqrt(of_judge * n_videos / (n_videos - 1))),
        share=min(1.0, of_judge / of_all) if of_all else (1.0 if of_judge else 0.0),
    )


_BOOTSTRAP: Final = "bootstrap-t over videos"
_LOG_ODDS: Final = "t of the log-odds over videos"
_AT_ONCE: Final = 16
"""Cells whose draws are worked on together; those of the full VDC's group take 4 MB each."""
_SAME: Final = 1e-9
"""Standard error, as a share of the metric's range, below which all videos are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A metric with what it may be on other videos like these."""

    value: float
    """Mean over judge runs, in the metric's unit; ``nan`` where it has no value."""
    low: float | None
    high: float | None
    """Ends of the interval in the metric's unit; ``None`` where none can be given."""
    standard_error: float | None
    """Over videos, the judge's part in it, in the metric's unit; ``None`` where there is no
    interval."""
    n_videos: int
    """Videos that the metric rests on; where it has several ratios, that of the one with fewest."""
    method: str
    """How the ends were found, in a few words."""
    note: str = ""
    """Why there is no interval, or what a reader must know of it; else empty."""
    judge_share: float | None = None
    """Part of the variance that is the judge's, in [0, 1], see :class:`JudgeRuns`; ``None`` with
    one judge run, which cannot tell."""


def interval(
    parts: RatioParts, *, scale: float, bounds: tuple[float, float], level: float = 0.95
) -> Interval:
    """The interval of a metric over videos: the expected score on other videos and judge runs.

    What it covers is the ratio of expectations over the videos that these were drawn from *and*
    over what the judge may say of each. A judge that errs moves that number, and the interval with
    it: how far the judge is from people is another question (see ``labels`` and ``agree``). The
    questions and judge runs of a video are one cluster, however alike.

    From 10 videos on, the ends are those of a studentised bootstrap over videos on the arcsine
    scale, see :func:`bootstrap_t`. It covers where the plain t interval does not: shares near 0 or
    1, few videos, questions of a video that go together (``benchmarks/coverage.py`` measures it).
    With fewer, the t interval of the log-odds, whose note says so; so, too, where so few videos
    differ from the others (1 of 30 is not 0 %) that draws without them tell no end, then with one
    video added that is all right and one that is all wrong, as Agresti and Coull do.

    Args:
        parts: What each video adds, see :data:`RatioParts`; a video that has no part is all 0.
        scale: What is printed for a share of 1.
        bounds: Lowest and highest value that the metric can have; the interval stays within.
        level: Share of such intervals that cover, in (0, 1).

    Returns:
        The interval; without ends where fewer than 2 videos count, or where all are the same and
        it would have no width.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 12.5 and 12.6; of
        clusters, Field and Welsh, Bootstrapping clustered data (2007). Log-odds of clusters: Korn
        and Graubard, Analysis of Health Surveys (1999). Two more of each: Agresti and Coull,
        Approximate Is Better than "Exact" (1998). Evaluations whose questions come in clusters:
        arXiv 2411.00640, section 2.2.

    Twelve videos of four questions each, 24 of 48 right. By question, the interval would be 50 %
    plus or minus 14.1; but a video's questions are right or wrong together:

    >>> right = [4, 4, 0, 1, 3, 2, 4, 0, 0, 1, 4, 1]
    >>> parts = np.array([[[[[n, 4.0]]] for n in right]])
    >>> found = interval(parts, scale=100.0, bounds=(0.0, 100.0))
    >>> found.value, round(found.low, 1), round(found.high, 1), round(found.standard_error, 1)
    (50.0, 25.9, 75.9, 12.3)
    """
    return intervals([parts], scale=scale, bounds=bounds, level=level)[0]


def intervals(
    cells: Sequence[RatioParts], *, scale: float, bounds: tuple[float, float], level: float = 0.95
) -> list[Interval]:
    """The intervals of one metric in many groups of questions, in their order.

    As :func:`interval` of each, but cells with the same number of videos are worked on together
    and share their draws.

    Args:
        cells: What each video adds, cell by cell.
        scale: As for :func:`interval`.
        bounds: As for :func:`interval`.
        level: As for :func:`interval`.

    >>> cells = [np.array([[[[[1.0, 2.0]]]]]), np.array([[[[[1.0, 2.0]]], [[[2.0, 2.0]]]]])]
    >>> [one.note for one in intervals(cells, scale=100.0, bounds=(0.0, 100.0))]
    ['no interval: fewer than 2 videos count', 'only 2 videos: a rough guess']
    """
    if not 0 <= bounds[0] < bounds[1] < float("inf"):
        raise ValueError(f"interval: expected finite bounds of at least 0, got {bounds!r}")
    if bounds[0]:
        within = [parts_within(parts, scale=scale, bounds=bounds) for parts in cells]
        shares = intervals(within, scale=1.0, bounds=(0.0, 1.0), level=level)
        return [_between(found, *bounds) for found in shares]
    kept = [parts[:, parts.any(axis=(0, 2, 3, 4))] for parts in cells]
    found: dict[int, Interval] = {}
    alike: dict[tuple[int, float, tuple[int, ...]], dict[int, Floats]] = {}
    for place, parts in enumerate(kept):
        n_videos = n_videos_of(parts)
        value = float(values_of_runs(parts, scale=scale).mean()) if n_videos else float("nan")
        if n_videos < 2:
            note = "no interval: fewer than 2 videos count"
            found[place] = _without_ends(value, None, n_videos, note)
        elif np.isnan(value):
            note = "no interval: the metric has no value in some judge run"
            found[place] = _without_ends(value, None, n_videos, note)
        else:
            merged, merged_scale = merged_terms(parts, scale=scale / bounds[1])
            cells_alike = alike.setdefault((n_videos, merged_scale, merged.shape), {})
            # With few videos nothing is drawn.
            cells_alike[place] = in_own_order(merged) if n_videos >= FEW_VIDEOS else merged
    # Those of as many videos one after the other: the last draws are kept.
    for n_videos, merged_scale, shape in sorted(alike, key=lambda key: key[2]):
        cells_alike = alike[n_videos, merged_scale, shape]
        for places in _some_at_once(list(cells_alike)):
            samples = np.stack([cells_alike[place] for place in places])
            ends = interval_ends(samples, scale=merged_scale, n_videos=n_videos, level=level)
            for row, place in enumerate(places):
                found[place] = _with_ends(kept[place], ends, row, n_videos, scale, bounds[1])
    return [found[place] for place in range(len(kept))]


def _between(found: Interval, lowest: float, highest: float) -> Interval:
    """The interval of a metric, from that of its share of the way between its bounds."""
    span, error = highest - lowest, found.standard_error
    return replace(
        found,
        value=lowest + span * found.value,
        low=None if found.low is None else lowest + span * found.low,
        high=None if found.high is None else lowest + span * found.high,
        standard_error=None if error is None else span * error,
    )


def _some_at_once(places: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(places), _AT_ONCE):
        yield places[first : first + _AT_ONCE]


def _with_ends(
    parts: RatioParts, ends: Ends, row: int, n_videos: int, scale: float, highest: float
) -> Interval:
    value = float(values_of_runs(parts, scale=scale).mean())
    if not ends.errors[row] > _SAME:
        return _without_ends(value, 0.0, n_videos, f"no interval: all {n_videos} videos are alike")
    is_few, is_rough = n_videos < FEW_VIDEOS, bool(ends.is_rough[row])
    note = f"few of the {n_videos} videos differ: a rough guess" if is_rough else ""
    return Interval(
        value=value,
        low=min(value, highest * float(ends.lows[row])),
        high=max(value, highest * float(ends.highs[row])),
        standard_error=highest * float(ends.errors[row]),
        n_videos=n_videos,
        method=(_LOG_ODDS if is_few or is_rough else _BOOTSTRAP),
        note=f"only {n_videos} videos: a rough guess" if is_few else note,
        judge_share=judge_runs(parts, scale=scale).share if len(parts) > 1 else None,
    )


def _without_ends(value: float, error: float | None, n_videos: int, note: str) -> Interval:
    return Interval(
        value=value,
        low=None,
        high=None,
        standard_error=error,
        n_videos=n_videos,
        method="none",
        note=note,
    )
