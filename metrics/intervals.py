"""A score with its 95% interval over videos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal
from zlib import crc32

import numpy as np

from lmms_eval_captions.metrics.parts import (
    Floats,
    Indices,
    RatioParts,
    influences_of_videos,
    judge_variances,
    n_videos_of,
    other_factors,
    parts_within,
    ratios_of,
    t_quantile,
    values_of_runs,
)

FEW_VIDEOS: Final = 10
"""With fewer videos there is too little to resample, and an interval is a rough guess."""
_N_DRAWS: Final = 1999
"""One less than a multiple of 40, so that the ends of a 95% interval are draws themselves."""
_ALL_ALIKE: Final = 1e-12
"""Share of the sample's variance below which the variance of a draw is rounding."""
_NO_ERROR: Final = 1e-9
"""Standard error, as a share of the metric's range, below which all videos are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A metric with its interval over other videos like these."""

    value: float
    """Mean over judge runs; ``nan`` if it has no value."""
    low: float | None = None
    high: float | None = None
    """Ends of the interval in the metric's unit; ``None`` if none can be given."""
    standard_error: float | None = None
    """Over videos, including the judge's part."""
    n_videos: int
    """Videos that the metric rests on, see :func:`n_videos_of`."""
    method: str = "none"
    """Method of the ends, in a few words."""
    note: str = ""
    """Why there is no interval, or a warning; else empty."""
    judge_share: float | None = None
    """Share of the variance that is due to the judge, in [0, 1]; ``None`` with one judge run."""


def interval(parts: RatioParts, *, scale: float, bounds: tuple[float, float]) -> Interval:
    """Return a metric with its 95% interval: the expected score on other videos and judge runs.

    All questions and judge runs of a video are one cluster. From 10 videos on, the ends come from a
    studentised bootstrap over videos on the arcsine scale, which covers even if shares are near 0
    or 1 (``benchmarks/coverage.py``). With fewer videos it is the t interval of the log-odds. If so
    few videos differ that draws without them give no end, it is the latter with one video added
    that is all right and one that is all wrong.

    Args:
        parts: What each video adds; all 0 for a video without a part.
        scale: Value of a metric that is a share of 1.
        bounds: Lowest and highest possible value, finite and >= 0; the interval stays within.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), sections 12.5 and 12.6, with
        the arcsine in place of an estimated transformation; clusters: Field and Welsh (2007);
        standard error: arXiv 2411.00640, section 2.2; log-odds: Korn and Graubard, Analysis of
        Health Surveys (1999); two added videos: Agresti and Coull (1998).

    Twelve videos of four questions each; by question it would be 50 plus or minus 14.1:

    >>> right = [4, 4, 0, 1, 3, 2, 4, 0, 0, 1, 4, 1]
    >>> parts = np.array([[[[[n, 4.0]]] for n in right]])
    >>> found = interval(parts, scale=100.0, bounds=(0.0, 100.0))
    >>> found.value, round(found.low, 1), round(found.high, 1), round(found.standard_error, 1)
    (50.0, 25.9, 75.9, 12.3)
    """
    lowest, span = bounds[0], bounds[1] - bounds[0]
    if not 0 <= lowest < bounds[1] < float("inf"):
        raise ValueError(f"interval: expected finite bounds of at least 0, got {bounds!r}")
    counted = parts[:, parts.any(axis=(0, 2, 3, 4))]
    shares = parts_within(counted, scale=scale, bounds=bounds)
    n_videos = n_videos_of(shares)
    value = float(values_of_runs(counted, scale=scale).mean())
    found = Interval(value=value, n_videos=n_videos)
    if n_videos < 2:
        return replace(found, note="no interval: fewer than 2 videos count")
    if np.isnan(value):
        return replace(found, note="no interval: the metric has no value in some judge run")
    merged = _merged(shares)
    share, error = _share_and_error(merged, n_videos)
    if not error > _NO_ERROR:
        note = f"no interval: all {n_videos} videos are alike"
        return replace(found, standard_error=0.0, note=note)
    method = "t of the log-odds over videos"
    if n_videos < FEW_VIDEOS:
        note = f"only {n_videos} videos: a rough guess"
        ends = _log_odds_ends(share, error, n_videos)
    elif (bootstrapped := _bootstrap_ends(merged, share, error)) is not None:
        ends, method, note = bootstrapped, "bootstrap-t over videos", ""
    else:
        note = f"few of the {n_videos} videos differ: a rough guess"
        wider = _with_two_videos(merged, n_terms=shares.shape[0] * shares.shape[2])
        ends = _log_odds_ends(*_share_and_error(wider, n_videos + 2), n_videos + 2)
    return replace(
        found,
        low=min(value, lowest + span * ends[0]),
        high=max(value, lowest + span * ends[1]),
        standard_error=span * error,
        method=method,
        note=note,
        judge_share=_judge_share(shares),
    )


def intervals(
    cells: Sequence[RatioParts], *, scale: float, bounds: tuple[float, float]
) -> list[Interval]:
    """Return the 95% interval of one metric in each group of questions, see :func:`interval`."""
    found: dict[int, Interval] = {}
    # Groups with equally many videos share their draws, of which the last few are cached.
    n_videos = [int(parts.any(axis=(0, 2, 3, 4)).sum()) for parts in cells]
    for index in sorted(range(len(cells)), key=n_videos.__getitem__):
        found[index] = interval(cells[index], scale=scale, bounds=bounds)
    return [found[index] for index in range(len(cells))]


def _merged(shares: RatioParts) -> Floats:
    """Return the same mean over judge runs as parts of one run, with as few terms as possible.

    Runs become terms; terms that differ only in the numerators of their first factor, as runs
    without an unscored question do, become one.
    """
    _, n_videos, _, n_factors, _ = shares.shape
    terms = shares.swapaxes(1, 2).reshape(-1, n_videos, n_factors * 2)
    kept: list[Floats] = []
    for term in terms:
        same = (of for of in kept if np.array_equal(of[:, 1:], term[:, 1:]))
        if (match := next(same, None)) is None:
            kept.append(term.copy())
        else:
            match[:, 0] += term[:, 0]
    merged = np.stack(kept, axis=1)
    merged[..., 0] *= len(kept) / len(terms)
    return _in_drawing_order(merged).reshape(n_videos, len(kept), n_factors, 2)


def _in_drawing_order(parts: Floats) -> Floats:
    """Return the videos in an order that depends only on what they add, not on their file.

    It is shuffled, with a seed made of what they add: sorted videos would share the chance errors
    of the draws in every sample.
    """
    keys = parts.reshape(len(parts), -1)
    # Rounded, as sums in another order differ in their last digits.
    keys = np.round(keys / np.maximum(keys.max(axis=0), np.finfo(np.float64).tiny), 9)
    order = np.lexsort(keys.T)
    rng = np.random.default_rng(crc32(keys[order].tobytes()))
    return parts[order[rng.permutation(len(order))]]


def _share_and_error(parts: Floats, n_videos: int) -> tuple[float, float]:
    influences = influences_of_videos(parts, scale=1.0)
    error = np.sqrt((influences**2).sum() * n_videos / (n_videos - 1))
    return float(values_of_runs(parts, scale=1.0)), float(error)


def _bootstrap_ends(parts: Floats, share: float, error: float) -> tuple[float, float] | None:
    """Return the ends of a bootstrap-t interval on the arcsine scale, ``None`` if infinite."""
    distances = np.sort(_bootstrap_distances(parts, share))
    below = max((len(distances) + 1) // 40 - 1, 0)
    quantiles = distances[[-1 - below, below]]
    if np.isinf(quantiles).any():
        return None
    # A draw that lies far above the sample means that the sample may lie far above the truth.
    angles = _arcsine(share) - quantiles * error * _arcsine_slope(share)
    low, high = np.sin(np.clip(angles, 0.0, np.pi / 2)) ** 2
    return float(low), float(high)


def _bootstrap_distances(parts: Floats, share: float) -> Floats:
    """Return the distances of draws from their sample, in standard errors of each draw.

    Both are on the arcsine scale, where the error of a share hardly depends on the share.
    """
    n_videos, *shape = parts.shape[:3]
    ratios, _ = ratios_of(parts)
    residuals = parts[..., 0] - ratios * parts[..., 1]
    columns = np.concatenate([residuals, parts[..., 1]], axis=1).reshape(n_videos, -1)
    products = columns[:, :, None] * columns[:, None, :]
    draws = _video_draws(n_videos)
    with np.errstate(divide="ignore", invalid="ignore"):
        totals = (draws @ columns).reshape(len(draws), 2, *shape)
        squares = (draws @ products.reshape(n_videos, -1)).reshape(-1, *products.shape[1:])
        shifts = totals[:, 0] / totals[:, 1]
        slopes = other_factors(ratios + shifts) / totals[:, 1] / len(ratios)
        gradients = np.concatenate([slopes, -slopes * shifts], axis=1).reshape(len(draws), -1)
        variances = np.einsum("bi,bij,bj->b", gradients, squares, gradients, optimize=True)
        least = _ALL_ALIKE * (influences_of_videos(parts, scale=1.0) ** 2).sum()
        variances = np.where(variances > least, variances, 0.0)
        values = (ratios + shifts).prod(axis=-1).mean(axis=-1)
        away = _arcsine(values) - _arcsine(share)
        errors = np.sqrt(variances * n_videos / (n_videos - 1)) * _arcsine_slope(values)
        # Infinitely many errors, if all videos drawn are alike or at a bound.
        errors[np.isnan(errors)] = 0.0
        distances = np.where(away == 0, 0.0, away / errors)
    return np.asarray(distances[~np.isnan(distances)])


@lru_cache(maxsize=4)
def _video_draws(n_videos: int) -> Floats:
    """Return how often each video is drawn in each sample, shape (n_draws, n_videos)."""
    rng = np.random.default_rng(0)
    draws = (rng.integers(n_videos, size=n_videos) for _ in range(_N_DRAWS))
    return np.array([np.bincount(draw, minlength=n_videos) for draw in draws], np.float64)


def _arcsine(share: float | Floats) -> Floats:
    return np.asarray(np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0))))


def _arcsine_slope(share: float | Floats) -> Floats:
    inside = np.clip(share, 0.0, 1.0)
    return np.asarray(0.5 / np.sqrt(inside * (1.0 - inside)))


def _log_odds_ends(share: float, error: float, n_videos: int) -> tuple[float, float]:
    from scipy.special import expit, logit

    step = t_quantile(n_videos - 1) * error / (share * (1 - share))
    return float(expit(logit(share) - step)), float(expit(logit(share) + step))


def _with_two_videos(parts: Floats, *, n_terms: int) -> Floats:
    """Return a sample with two more videos of mean size, one all right and one all wrong.

    Of a product of ratios, only one of the ``n_terms`` that were merged into a term is right.
    """
    n_merged, n_factors = parts.shape[1:3]
    mean = parts.mean(axis=0)
    right, wrong = mean.copy(), mean.copy()
    right[:, 0, 0] = mean[:, 0, 1] * (1.0 if n_factors == 1 else n_merged / n_terms)
    wrong[:, 0, 0] = 0.0
    return np.concatenate([parts, [wrong, right]])


def _judge_share(shares: RatioParts) -> float | None:
    if len(shares) < 2:
        return None
    of_all = (influences_of_videos(shares, scale=1.0).mean(axis=0) ** 2).sum()
    return min(1.0, float(judge_variances(shares, scale=1.0).sum() / len(shares) / of_all))


def sums_of_clusters(parts: Floats, clusters: Indices) -> Floats:
    """Sum what units add, shape (n_units, ...), over clusters numbered from 0.

    >>> sums_of_clusters(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 0])).tolist()
    [[5.0], [2.0]]
    """
    sums = np.zeros((clusters.max(initial=-1) + 1, *parts.shape[1:]))
    np.add.at(sums, clusters, parts)
    return sums


_Function = Callable[[Floats], Floats]
_SCALES: Final[dict[str, tuple[_Function, _Function]]] = {
    "Fisher's z": (np.arctanh, np.tanh),
    "log(1 - agreement)": (lambda values: np.log(1 - values), lambda logs: 1 - np.exp(logs)),
}
"""Scales on which coefficients are nearly normal: functions to the scale and back."""


def jackknife_interval(
    sums: Floats, value_of: _Function, *, scale: Literal["Fisher's z", "log(1 - agreement)"]
) -> Interval:
    """Return a coefficient of at most 1 with its 95% interval over clusters.

    Args:
        sums: Shape (n_clusters, ...), what each cluster adds; one that adds nothing does not count.
        value_of: From sums, shape (k, ...), to values, shape (k,).
        scale: Scale on which the interval is symmetric.

    Source:
        Jackknife: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 11, with a
        t quantile of n_clusters - 1 degrees of freedom.

    >>> sums = np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]])
    >>> found = jackknife_interval(sums, lambda s: s[..., 0] / s[..., 1], scale="Fisher's z")
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.5, -0.12, 0.839)
    """
    sums = sums[sums.any(axis=tuple(range(1, sums.ndim)))]
    n_clusters = len(sums)
    total = sums.sum(axis=0)
    value = float(value_of(total)) if n_clusters else float("nan")
    left_out = value_of(total - sums) if n_clusters else np.empty(0)
    note = _why_no_interval(value, left_out)
    if note:
        return Interval(value=value, n_videos=n_clusters, note=note)
    to_scale, from_scale = _SCALES[scale]
    reach = t_quantile(n_clusters - 1) * _jackknife_error(to_scale(left_out))
    center = to_scale(np.array(value))
    low, high = sorted(float(from_scale(center + way)) for way in (-reach, reach))
    return Interval(
        value=value,
        low=max(-1.0, low),
        high=min(1.0, high),
        standard_error=_jackknife_error(left_out),
        n_videos=n_clusters,
        method=f"jackknife over videos of {scale}",
        note=f"only {n_clusters} videos: a rough guess" if n_clusters < FEW_VIDEOS else "",
    )


def _why_no_interval(value: float, left_out: Floats) -> str:
    if np.isnan(value):
        return "no value: too few units, or all of them are alike"
    if len(left_out) < 2:
        return "no interval: fewer than 2 videos count"
    if value >= 1:
        return "no interval: not one disagreement"
    if np.ptp(left_out) == 0:
        return "no interval: all videos are alike"
    if not np.isfinite(left_out).all() or (np.abs(left_out) >= 1).any():
        return "no interval: without one of the videos there is no disagreement, or no value"
    return ""


def _jackknife_error(values: Floats) -> float:
    return float(values.std() * np.sqrt(len(values) - 1))
