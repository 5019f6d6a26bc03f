"""The studentised bootstrap over videos of a metric that lies between two bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lmms_eval_captions.metrics.arcsine import arcsine, arcsine_slope
from lmms_eval_captions.metrics.video_draws import video_draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


_ONE_THREAD: Final = 250_000
"""Products in one multiplication of matrices: OpenBLAS sets several threads on more, which burn
the processor while they wait and gain nothing here."""
_SAME: Final = 1e-12
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
        least = _SAME * (influences_of(parts, sums, scale=scale) ** 2).sum(axis=-1)[:, None]
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
