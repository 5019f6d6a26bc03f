"""Scores as ratios of sums over videos: what each video adds, and how it moves the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, isnan, nan, prod
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    RatioParts = NDArray[np.float64]
    """Shape (n_runs, n_videos, n_terms, n_factors, 2): what each video adds, in each judge run, to
    the numerator and the denominator of each factor of each term. In one run a metric is ``scale``
    times the mean over terms of the product over factors of summed numerators over summed
    denominators; it is the mean of that over runs. Most metrics have one term and one factor;
    the mean of several tasks has a term for each."""


def parts_within(parts: RatioParts, *, scale: float, bounds: tuple[float, float]) -> RatioParts:
    """What videos add to a metric as a share of the way from its lowest to its highest value.

    Args:
        parts: What videos add; n_factors is 1 where the lowest value is not 0.
        scale: What is printed for a share of 1.
        bounds: Lowest and highest value that the metric can have.

    Returns:
        Parts of the same shape, of a metric in [0, 1] whose scale is 1.

    Raises:
        ValueError: If the lowest value is not 0 and the metric is a product of ratios.

    >>> ratings = np.array([[[[[2.0, 1.0]]], [[[5.0, 1.0]]]]])
    >>> within = parts_within(ratings, scale=1.0, bounds=(1.0, 5.0))
    >>> values_of_runs(within, scale=1.0).tolist()
    [0.625]
    """
    lowest, highest = bounds
    if lowest and parts.shape[3] != 1:
        raise ValueError(
            f"parts_within: expected a lowest value of 0 of a product of ratios, got {lowest!r}"
        )
    within: NDArray[np.float64] = parts.copy()
    within[..., 0, 0] *= scale / (highest - lowest)
    if lowest:
        within[..., 0, 0] -= parts[..., 0, 1] * (lowest / (highest - lowest))
    return within


def values_of_runs(parts: RatioParts, *, scale: float) -> NDArray[np.float64]:
    """A metric in every judge run.

    Args:
        parts: What videos add, n_videos >= 1.
        scale: What is printed for a share of 1.

    Returns:
        Shape (n_runs,); ``nan`` where a denominator is 0.

    >>> values_of_runs(np.array([[[[[1.0, 2.0]]], [[[2.0, 2.0]]]]]), scale=100.0).tolist()
    [75.0]
    """
    values: NDArray[np.float64] = scale * _terms(parts.sum(axis=1)).mean(axis=-1)
    return values


def influences_of_videos(parts: RatioParts, *, scale: float) -> NDArray[np.float64]:
    """First-order effect of each video on a metric in every judge run.

    Args:
        parts: What videos add, n_videos >= 1.
        scale: What is printed for a share of 1.

    Returns:
        Shape (n_runs, n_videos), in the metric's unit, summing to 0 in each run; ``nan`` where a
        denominator is 0.

    Source:
        Linearisation of a ratio, see :func:`ratio_influences`.

    >>> influences_of_videos(np.array([[[[[1.0, 2.0]]], [[[2.0, 2.0]]]]]), scale=100.0).tolist()
    [[-12.5, 12.5]]
    """
    sums = parts.sum(axis=1, keepdims=True)
    tops, bottoms = sums[..., 0], sums[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = tops / bottoms
        effects = (parts[..., 0] - ratios * parts[..., 1]) / bottoms
    n_terms, n_factors = ratios.shape[2:]
    factors = np.arange(n_factors)
    others = np.stack([ratios[..., factors != k].prod(axis=-1) for k in factors], axis=-1)
    influences: NDArray[np.float64] = (effects * others).sum(axis=(2, 3)) * scale / n_terms
    return influences


def merged_terms(parts: RatioParts, *, scale: float) -> tuple[NDArray[np.float64], float]:
    """The same mean over judge runs with as few terms as can be, of one judge run.

    Judge runs become terms. Terms that differ in the numerators of their first factor alone, as
    runs without an unscored question do, become one whose numerators are the sums of theirs.

    Args:
        parts: What videos add, or many such arrays: shape (..., n_runs, n_videos, n_terms,
            n_factors, 2).
        scale: What is printed for a share of 1.

    Returns:
        Shape (..., n_videos, n_merged, n_factors, 2), and what is printed for a *sum* over terms
        of 1.

    >>> merged, scale = merged_terms(np.ones((3, 4, 1, 1, 2)), scale=100.0)
    >>> merged.shape, merged[0, 0, 0].tolist(), round(scale, 2)
    ((4, 1, 1, 2), [3.0, 1.0], 33.33)
    """
    by_video = np.moveaxis(parts, -5, -4)
    flat = by_video.reshape(*by_video.shape[:-4], -1, *by_video.shape[-2:])
    n_terms = flat.shape[-3]
    kept: list[NDArray[np.float64]] = []
    for place in range(n_terms):
        term = flat[..., place, :, :]
        same = next((one for one in kept if _is_same_but_first(one, term)), None)
        if same is None:
            kept.append(term.copy())
        else:
            same[..., 0, 0] += term[..., 0, 0]
    return np.stack(kept, axis=-3), scale / n_terms


def _is_same_but_first(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether two terms, shape (..., n_factors, 2), differ in their first numerators at most."""
    shape = (*one.shape[:-2], -1)
    return np.array_equal(one.reshape(shape)[..., 1:], other.reshape(shape)[..., 1:])


def n_videos_of(parts: RatioParts) -> int:
    """Videos that a metric rests on: of its ratios' denominators, those of the one with fewest.

    >>> n_videos_of(np.array([[[[[1.0, 2.0]]], [[[0.0, 0.0]]], [[[2.0, 2.0]]]]]))
    2
    """
    return int((parts[..., 1] != 0).any(axis=0).sum(axis=0).min())


def _terms(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product over factors of every term, shape (..., n_terms)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(sums[..., 1] == 0, np.nan, sums[..., 0] / sums[..., 1])
    terms: NDArray[np.float64] = ratios.prod(axis=-1)
    return terms


Parts = Sequence[tuple[float, float]]
"""What one caption adds to the numerator and to the denominator of each ratio."""


def ratio_influences(captions: Sequence[Parts], *, scale: float) -> list[float]:
    """First-order effect of each caption on a ratio of sums, or on a product of such ratios.

    The value is ``scale`` times the product over ratios of the sum of numerators over the sum of
    denominators. A caption's influence is the value's derivative along what the caption adds.

    Args:
        captions: Shape (n_captions, n_ratios, 2), n_captions >= 1, the same n_ratios for all.
        scale: What is printed for a product of 1.

    Returns:
        Shape (n_captions,), in the unit of the value, summing to 0; ``nan`` for all where a
        denominator is 0.

    Source:
        Linearisation (delta method, Taylor series) of a ratio: Cochran, Sampling Techniques (1977),
        section 2.11; for evaluations whose questions come in clusters, arXiv 2411.00640.

    >>> ratio_influences([[(1.0, 2.0)], [(2.0, 2.0)]], scale=100.0)
    [-12.5, 12.5]
    """
    if not captions:
        raise ValueError("ratio_influences: expected at least 1 caption, got 0")
    n_ratios = len(captions[0])
    tops = [fsum(parts[k][0] for parts in captions) for k in range(n_ratios)]
    bottoms = [fsum(parts[k][1] for parts in captions) for k in range(n_ratios)]
    if 0.0 in bottoms:
        return [nan] * len(captions)
    ratios = [top / bottom for top, bottom in zip(tops, bottoms, strict=True)]
    others = [prod(ratios[:k] + ratios[k + 1 :]) for k in range(n_ratios)]
    slopes = [scale * other / bottom for other, bottom in zip(others, bottoms, strict=True)]
    return [
        fsum(
            slope * (top - ratio * bottom)
            for slope, ratio, (top, bottom) in zip(slopes, ratios, parts, strict=True)
        )
        for parts in captions
    ]


_STEP: Final = 1e-5
"""Share by which a sum is moved to see how the metric follows."""


def sum_influences(
    rows: Sequence[Sequence[float]], value_of: Callable[[Sequence[float]], float]
) -> list[float]:
    """First-order effect of each caption on a value of sums over captions.

    Args:
        rows: Shape (n_captions, n_sums), what each caption adds to each sum, >= 0.
        value_of: From the sums to the value, the same for twice all sums.

    Returns:
        Shape (n_captions,), in the value's unit, summing to 0; ``nan`` where there is no value.

    Source:
        Infinitesimal jackknife (Jaeckel, 1972), its gradient by central differences; for ratios
        :func:`ratio_influences` has it exactly.

    >>> [round(x, 6) for x in sum_influences([[1, 1], [0, 1]], lambda sums: sums[0] / sums[1])]
    [0.25, -0.25]
    """
    sums = [fsum(column) for column in zip(*rows, strict=True)]
    if not sums or isnan(value_of(sums)):
        return [nan] * len(rows)
    slopes = [_slope(sums, place, value_of) for place in range(len(sums))]
    effects = [fsum(s * x for s, x in zip(slopes, row, strict=True)) for row in rows]
    # What rounding leaves of their sum, which is 0.
    rest = fsum(effects) / len(effects)
    return [effect - rest for effect in effects]


def _slope(
    sums: Sequence[float], place: int, value_of: Callable[[Sequence[float]], float]
) -> float:
    step = _STEP * sums[place]
    if not step:
        return 0.0
    above, below = ([*sums[:place], sums[place] + way, *sums[place + 1 :]] for way in (step, -step))
    return (value_of(above) - value_of(below)) / (2 * step)


def jackknife_influences(
    n_captions: int, score_of: Callable[[Sequence[int]], float]
) -> list[float]:
    """Effect of each caption on a metric of any form, by computing it without that caption.

    Args:
        n_captions: How many there are, >= 2.
        score_of: The metric of the captions at some places in [0, n_captions); it is computed
            n_captions times.

    Returns:
        Shape (n_captions,), in the unit of the metric, summing to 0; ``nan`` for all where the
        metric has no value without one of the captions.

    Source:
        The delete-one jackknife (Efron and Stein, The Jackknife Estimate of Variance, 1981); for a
        mean it is exact.

    >>> values = [1.0, 2.0, 6.0]
    >>> jackknife_influences(3, lambda places: sum(values[i] for i in places) / len(places))
    [-0.6666666666666666, -0.3333333333333333, 1.0]
    """
    everyone = range(n_captions)
    without = [score_of([place for place in everyone if place != left]) for left in everyone]
    mean = fsum(without) / n_captions
    return [(mean - score) * (n_captions - 1) / n_captions for score in without]
