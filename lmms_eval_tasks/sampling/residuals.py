"""What each question adds to the score around it: the numbers whose spread a sample depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sampling.population import (
    Drawn,
    Population,
    effective_pairs,
    normalised,
)
from lmms_eval_captions.metrics.ppi import StratifiedError, stratified_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums that a score is a mean of ratios of, shape (n_terms, n_runs) each."""

    tops: Floats
    bottoms: Floats

    @property
    def ratios(self) -> Floats:
        """``nan`` where a denominator is not above 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.bottoms > 0, self.tops / self.bottoms, np.nan)

    def score(self, scale: float) -> float:
        """The mean over terms and judge runs, ``nan`` where one has no value."""
        return float(scale * self.ratios.mean())


def sums_of(population: Population, pairs: Floats, drawn: Drawn) -> Sums:
    """The sums over all questions, as far as a sample tells.

    Args:
        population: All questions.
        pairs: Shape (n_questions, n_runs, 2), as for :func:`.population.effective_pairs`.
        drawn: The sample.
    """
    effective = effective_pairs(pairs, drawn.weights, population.control, drawn.lam)
    effective = effective * population.weights[:, None, None]
    totals = np.zeros((population.n_terms, *effective.shape[1:]))
    np.add.at(totals, population.terms, effective)
    return Sums(totals[..., 0], totals[..., 1])


def residuals_of(population: Population, pairs: Floats, sums: Sums) -> Floats:
    """First-order effect of each question on the score, shape (n_questions,), in its unit.

    Args:
        population: All questions.
        pairs: Shape (n_questions, n_runs, 2), or (n_questions, 1, 2) for all runs.
        sums: Around which the score is linearised.

    Source:
        Linearisation of a ratio, Cochran, Sampling Techniques (1977), section 2.11.
    """
    ratios, bottoms = sums.ratios[population.terms], sums.bottoms[population.terms]
    with np.errstate(divide="ignore", invalid="ignore"):
        effects = (pairs[..., 0] - ratios * pairs[..., 1]) / bottoms
    of_questions: Floats = effects.mean(axis=1)
    return of_questions * population.weights * (population.scale / population.n_terms)


def effects_of_one(population: Population, sums: Sums) -> Floats:
    """How far one verdict on each question could move the score, shape (n_questions,)."""
    bottoms = sums.bottoms.mean(axis=1)[population.terms]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = population.weights * population.reach / bottoms
    return np.asarray(shares * (population.scale / population.n_terms))


def trust_in_cheap(population: Population, pairs: Floats, drawn: Drawn) -> float:
    """How much the cheap judge's verdicts count, in [0, 1]; 0 without a cheap judge.

    Args:
        population: All questions.
        pairs: Shape (n_questions, n_runs, 2), 0 for no verdict.
        drawn: The sample, with a trust of 0.

    Source:
        The coefficient of least variance, PPI++, Angelopoulos et al. (2023), arXiv 2311.01453,
        equation 6.
    """
    if population.control is None:
        return 0.0
    sums, is_drawn = sums_of(population, pairs, drawn), drawn.weights > 0
    judge = residuals_of(population, pairs, sums)[is_drawn]
    cheap = residuals_of(population, population.control[:, None, :], sums)[is_drawn]
    if not np.isfinite(judge).all() or not cheap.std():
        return 0.0
    return float(np.clip(np.cov(judge, cheap)[0, 1] / cheap.var(ddof=1), 0.0, 1.0))


def measured(population: Population, pairs: Floats, drawn: Drawn) -> tuple[float, StratifiedError]:
    """The score that all questions would give, as far as a sample tells, and its error.

    The variance is that of the strata and of one verdict more: where a cheap judge says nearly
    always the same, a sample may hold none of the few questions on which the two differ, and would
    seem to leave nothing open.

    Args:
        population: All questions.
        pairs: Shape (n_questions, n_runs, 2), 0 for those without a verdict.
        drawn: The sample.
    """
    if population.has_means:
        pairs = normalised(pairs, drawn.weights, population.captions)
    sums = sums_of(population, pairs, drawn)
    residuals = residuals_of(population, pairs, sums)
    if population.control is not None:
        cheap = residuals_of(population, population.control[:, None, :], sums)
        residuals = residuals - drawn.lam * cheap
    is_drawn = (drawn.strata >= 0) & (drawn.weights > 0)
    error = stratified_error(residuals[is_drawn], drawn.strata[is_drawn], drawn.sizes)
    if is_drawn.any():
        one = float((effects_of_one(population, sums) * drawn.weights)[is_drawn].mean())
        error = replace(error, standard_error=float(np.hypot(error.standard_error, one)))
    return sums.score(population.scale), error
