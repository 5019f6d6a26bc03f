"""What videos add to a metric: the arrays that intervals and differences are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    RatioParts = NDArray[np.float64]
    """Shape (n_runs, n_videos, n_terms, n_factors, 2): what each video adds, in each judge run, to
    the numerator and the denominator of each factor of each term. In one run a metric is ``scale``
    times the mean over terms of the product over factors of summed numerators over summed
    denominators; it is the mean of that over runs. Most metrics have one term and one factor;
    the mean of several tasks has a term for each."""


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


def _terms(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product over factors of every term, shape (..., n_terms)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(sums[..., 1] == 0, np.nan, sums[..., 0] / sums[..., 1])
    terms: NDArray[np.float64] = ratios.prod(axis=-1)
    return terms
