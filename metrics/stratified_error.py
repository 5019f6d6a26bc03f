"""How far an estimate from a stratified sample may be from what the whole would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class StratifiedError:
    """The error of a sum over a population of which a stratified sample is known."""

    standard_error: float
    """In the unit of the values; 0 where every stratum is known whole."""
    freedom: float
    """Degrees of freedom of the variance; infinite where there is none."""

    def half_width(self, level: float = 0.95) -> float:
        """Half the width of the interval at a level in (0, 1); 0 without an error."""
        if not self.standard_error:
            return 0.0
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + level) / 2)) * self.standard_error


def stratified_error(values: Floats, strata: Places, sizes: Floats) -> StratifiedError:
    """The error of the estimated sum over all units, of which some were drawn in each stratum.

    Units are drawn without replacement, so that what is known of a stratum moves no error; nothing
    is said of another population, such as other videos.

    Args:
        values: Shape (n_drawn,): what each drawn unit adds to the sum.
        strata: Shape (n_drawn,): the stratum of each, 0, 1, ...; at least two of a stratum are
            drawn that has two.
        sizes: Shape (n_strata,): units of each stratum, drawn or not.

    Returns:
        The standard error and its degrees of freedom.

    Source:
        Cochran, Sampling Techniques (1977), theorem 5.5; the degrees of freedom are Satterthwaite's
        (Biometrics Bulletin 2, 1946), there equation 5.16.

    Two strata of 4 and of 2, of which 2 and 2 are drawn: 4 * 4 * (1 - 2 / 4) * 2 / 2 = 8.

    >>> strata = np.array([0, 0, 1, 1])
    >>> found = stratified_error(np.array([1.0, 3.0, 5.0, 9.0]), strata, np.array([4.0, 2.0]))
    >>> round(found.standard_error**2, 9), found.freedom
    (8.0, 1.0)
    """
    n_drawn = np.bincount(strata, minlength=len(sizes)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.bincount(strata, values, minlength=len(sizes)) / n_drawn
        off = values - means[strata]
        squares = np.bincount(strata, off**2, minlength=len(sizes)) / (n_drawn - 1)
        parts = sizes**2 * (1 - n_drawn / sizes) * squares / n_drawn
        parts = np.where((n_drawn > 1) & (n_drawn < sizes), parts, 0.0)
        variance = float(parts.sum())
        divisor = float(np.where(parts > 0, parts**2 / (n_drawn - 1), 0.0).sum())
    freedom = variance**2 / divisor if divisor > 0 else float("inf")
    return StratifiedError(float(np.sqrt(variance)), freedom)
