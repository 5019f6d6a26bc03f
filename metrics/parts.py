"""Scores as ratios of sums over videos: what each video adds, and how it affects the score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
RatioParts = Floats
"""Shape (n_runs, n_videos, n_terms, n_factors, 2): what each video adds, in each judge run, to the
numerator and the denominator of each factor of each term. In one run, a metric is ``scale`` times
the mean over terms of the product over factors of summed numerators over summed denominators; the
metric is the mean over runs. Most metrics have one term and one factor; the mean of several tasks
has a term for each."""


def parts_within(parts: RatioParts, *, scale: float, bounds: tuple[float, float]) -> RatioParts:
    """Return the parts, of scale 1, of a metric's position in [0, 1] between its bounds.

    Raises:
        ValueError: If the lowest value is not 0 and the metric is a product of ratios.

    >>> ratings = np.array([[[[[2.0, 1.0]]], [[[5.0, 1.0]]]]])
    >>> values_of_runs(parts_within(ratings, scale=1.0, bounds=(1.0, 5.0)), scale=1.0).tolist()
    [0.625]
    """
    lowest, highest = bounds
    if lowest and parts.shape[3] != 1:
        raise ValueError(f"parts_within: expected 0 as lowest value of a product, got {lowest!r}")
    within: RatioParts = parts.copy()
    within[..., 0, 0] *= scale / (highest - lowest)
    if lowest:
        within[..., 0, 0] -= parts[..., 0, 1] * (lowest / (highest - lowest))
    return within


def ratios_of(parts: Floats) -> tuple[Floats, Floats]:
    """Return a sample's ratios and denominators, ``nan`` for 0, both (..., n_terms, n_factors)."""
    sums = parts.sum(axis=-4)
    bottoms = np.where(sums[..., 1] == 0, np.nan, sums[..., 1])
    return sums[..., 0] / bottoms, bottoms


def other_factors(ratios: Floats) -> Floats:
    """Return the product of a term's other ratios for each ratio, in the same shape."""
    factors = np.arange(ratios.shape[-1])
    return np.stack([ratios[..., factors != k].prod(axis=-1) for k in factors], axis=-1)


def values_of_runs(parts: RatioParts, *, scale: float) -> Floats:
    """Return a metric in every judge run, shape (n_runs,); ``nan`` for a denominator of 0.

    >>> values_of_runs(np.array([[[[[1.0, 2.0]]], [[[2.0, 2.0]]]]]), scale=100.0).tolist()
    [75.0]
    """
    return np.asarray(scale * ratios_of(parts)[0].prod(axis=-1).mean(axis=-1))


def influences_of_videos(parts: RatioParts, *, scale: float) -> Floats:
    """Return the first-order effect of each video on a metric in every judge run.

    Shape (n_runs, n_videos), in the metric's unit, summing to 0; ``nan`` for a denominator of 0.

    Source:
        Linearisation of a ratio: Cochran, Sampling Techniques (1977), section 2.11; arXiv
        2411.00640 for evaluations with clustered questions.

    >>> influences_of_videos(np.array([[[[[1.0, 2.0]]], [[[2.0, 2.0]]]]]), scale=100.0).tolist()
    [[-12.5, 12.5]]
    """
    ratios, bottoms = (of[..., None, :, :] for of in ratios_of(parts))
    effects = (parts[..., 0] - ratios * parts[..., 1]) / bottoms
    influences = (effects * other_factors(ratios)).sum(axis=(-2, -1))
    return np.asarray(influences * scale / ratios.shape[-2])


def judge_variances(parts: RatioParts, *, scale: float) -> Floats:
    """Return the variance of each video's influence between >= 2 judge runs, shape (n_videos,).

    Their sum is the variance of one run's score due to the judge, if it errs on each video
    independently.

    Source:
        Searle, Casella and McCulloch, Variance Components (1992), one-way classification.
    """
    influences = influences_of_videos(parts, scale=scale)
    # Relative to one run, so that equal runs have a variance of exactly 0.
    return np.asarray((influences - influences[:1]).var(axis=0, ddof=1))


def t_quantile(freedom: float) -> float:
    """Return the half width of a 95% t interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def n_videos_of(parts: RatioParts) -> int:
    """Count the videos that a metric rests on: those of the denominator with the fewest.

    >>> n_videos_of(np.array([[[[[1.0, 2.0]]], [[[0.0, 0.0]]], [[[2.0, 2.0]]]]]))
    2
    """
    return int((parts[..., 1] != 0).any(axis=0).sum(axis=0).min())
