"""How far a score of sampled questions may be from that of all questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmms_eval_captions.metrics.parts import Floats, Indices, t_quantile


@dataclass(frozen=True, slots=True)
class StratifiedError:
    """The error of a sum over a population of which a stratified sample is known."""

    standard_error: float
    """In the unit of the values; 0 if every stratum is known completely."""
    freedom: float
    """Degrees of freedom of the variance; infinite without an error."""

    def half_width(self) -> float:
        """Return half the width of the 95% interval."""
        return t_quantile(self.freedom) * self.standard_error


def stratified_error(values: Floats, strata: Indices, sizes: Floats) -> StratifiedError:
    """Return the error of the sum over all units, some of which were drawn in each stratum.

    Args:
        values: Shape (n_drawn,): what each drawn unit adds to the sum.
        strata: Shape (n_drawn,): the stratum of each, from 0; at least two of each that has two.
        sizes: Shape (n_strata,): units of each stratum, drawn or not.

    Source:
        Cochran, Sampling Techniques (1977), theorem 5.5 (without replacement) and equation 5.16
        (Satterthwaite's degrees of freedom).

    Two strata of 4 and of 2, of which 2 and 2 are drawn: 4 * 4 * (1 - 2 / 4) * 2 / 2 = 8.

    >>> strata = np.array([0, 0, 1, 1])
    >>> found = stratified_error(np.array([1.0, 3.0, 5.0, 9.0]), strata, np.array([4.0, 2.0]))
    >>> round(found.standard_error**2, 9), found.freedom
    (8.0, 1.0)
    """
    n_drawn = np.bincount(strata, minlength=len(sizes)).astype(np.float64)
    means = np.bincount(strata, values, minlength=len(sizes)) / np.maximum(n_drawn, 1)
    squares = np.bincount(strata, (values - means[strata]) ** 2, minlength=len(sizes))
    counted = (n_drawn > 1) & (n_drawn < sizes)
    n, size = n_drawn[counted], sizes[counted]
    parts = size**2 * (1 - n / size) * squares[counted] / (n - 1) / n
    variance, divisor = float(parts.sum()), float((parts**2 / (n - 1)).sum())
    freedom = variance**2 / divisor if divisor > 0 else float("inf")
    return StratifiedError(float(np.sqrt(variance)), freedom)
