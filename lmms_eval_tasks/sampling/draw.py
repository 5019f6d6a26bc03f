"""Simple random sampling of questions, and how far the sample's score may be from that of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sampling.sampling_error import (
    StratifiedError,
    stratified_error,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """All questions about the captions of one or more tasks; arrays of shape (n_questions, ...).

    The score is the mean over its *terms* (tasks, or the pooled questions of all tasks) of a ratio
    of sums over questions.
    """

    terms: Places
    """The term that each question counts in: 0, 1, ..."""
    tasks: Places
    """The task that each question is of, 0, 1, ...: no stratum has questions of two."""
    captions: Places
    """The caption that it is about: 0, 1, ..."""
    weights: Floats
    """How much it counts in its term's sums, > 0: 1 where questions are pooled, one over the number
    of the caption's questions where the metric is a mean over videos."""
    has_means: bool
    """Whether the metric is a mean over videos of means over those of their questions that have a
    verdict."""
    control: Floats | None
    """Shape (n_questions, 2): what the cheap judge's verdict adds to numerator and denominator,
    ``None`` without a cheap judge."""
    keys: Floats
    """Random numbers in [0, 1); the questions with the smallest are asked. They follow from the
    question, so that a larger sample holds a smaller one."""
    scale: float
    """What is printed for a share of 1."""
    reach: float
    """How far apart what two verdicts add to a numerator can be, > 0."""

    @property
    def n_questions(self) -> int:
        """How many there are."""
        return len(self.terms)

    @property
    def n_terms(self) -> int:
        """Terms, of which the score is the mean."""
        return int(self.terms.max()) + 1 if len(self.terms) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a sample is, and what its questions stand for; arrays of shape (n_questions,)."""

    weights: Floats
    """Questions that each one stands for; 0 if it was not asked."""
    strata: Places
    """The stratum that it was drawn in, 0, 1, ...; -1 for all that were not drawn in one."""
    sizes: Floats
    """Shape (n_strata,): questions of each stratum."""
    lam: float | Floats
    """Trust in the cheap judge, in [0, 1]; 0 without one. Of several samples together, shape
    (n_questions,)."""

    @property
    def n_asked(self) -> int:
        """Questions that were asked."""
        return int((self.weights > 0).sum())


def effective_pairs(
    pairs: Floats, weights: Floats, control: Floats | None, lam: float | Floats
) -> Floats:
    """What each question adds to the sums over all of them, as far as the sample tells.

    Args:
        pairs: Shape (n_questions, n_runs, 2): what the judge's verdicts add; whatever is there
            does not count where a question was not asked.
        weights: Of :class:`Drawn`.
        control: Of :class:`Population`.
        lam: Of :class:`Drawn`; several samples together have one of each question.

    Returns:
        The same shape. Summed over all questions, and over those of any group, it is unbiased for
        the sum of ``pairs`` with every question asked: a drawn question stands for its weight, and
        the cheap judge's verdicts on all replace those on the drawn.

    Source:
        Cochran, Sampling Techniques (1977), sections 5.3 and 7.5 (difference estimator); as
        prediction-powered inference, Angelopoulos et al., PPI++ (2023), arXiv 2311.01453.

    >>> pairs = np.array([[[1.0, 1.0]], [[0.0, 0.0]]])
    >>> effective_pairs(pairs, np.array([2.0, 0.0]), None, 0.0)[:, 0].tolist()
    [[2.0, 2.0], [0.0, 0.0]]
    >>> control = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> effective_pairs(pairs, np.array([2.0, 0.0]), control, 1.0)[:, 0].tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    asked = np.where(weights[:, None, None] > 0, pairs, 0.0) * weights[:, None, None]
    if control is None:
        return asked
    return np.asarray(asked + (lam * (1.0 - weights))[:, None, None] * control[:, None, :])


def normalised(pairs: Floats, weights: Floats, captions: Places) -> Floats:
    """Pairs of a mean of means, in which a caption counts as much as if all had a verdict.

    A caption's mean is over its questions with a verdict: these stand for those without one.

    Args:
        pairs: Shape (n_questions, n_runs, 2), 0 where there is no verdict.
        weights: Of :class:`Drawn`.
        captions: Of :class:`Population`.

    >>> pairs = np.array([[[1.0, 1.0]], [[0.0, 0.0]], [[0.0, 1.0]]])
    >>> normalised(pairs, np.ones(3), np.array([0, 0, 1]))[:, 0].tolist()
    [[2.0, 2.0], [0.0, 0.0], [0.0, 1.0]]
    """
    is_asked = weights > 0
    is_scored = is_asked[:, None] & (pairs[..., 1] != 0)
    if is_scored[is_asked].all():
        return pairs
    n_captions = int(captions.max()) + 1
    asked = np.bincount(captions, weights, minlength=n_captions)
    factors = np.ones(pairs.shape[:2])
    for run in range(pairs.shape[1]):
        scored = np.bincount(captions, weights * is_scored[:, run], minlength=n_captions)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors[:, run] = np.where(scored > 0, asked / scored, 1.0)[captions]
    return np.asarray(pairs * factors[..., None])


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


FEW: Final = 400
"""Questions up to which all are asked."""
_FIRST: Final = 0.01
"""Share of the questions that is asked first, of larger benchmarks than 40,000 questions."""
_AIM: Final = 0.95
"""Share of the allowed variance that the next draw aims at."""
_NEARLY_ALL: Final = 0.9
"""Share of the questions from which on all are asked."""
_MOST_UNSCORED: Final = 0.2

Ask = Callable[["Places"], "Floats"]
"""Asks the judge the questions with these indices; returns what its verdicts add to numerator and
denominator, shape (n_asked, n_runs, 2), ``nan`` for no verdict."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sample and what its verdicts say."""

    drawn: Drawn
    pairs: Floats
    """Shape (n_questions, n_runs, 2), 0 for no verdict."""
    score: float
    """Estimate of the score over all questions."""
    error: StratifiedError


def sample(
    population: Population, ask: Ask, *, half_width: float, most_unscored: float = 0.0
) -> Sampled:
    """Ask questions until the 95% interval of the score is narrow enough.

    Args:
        population: All questions.
        ask: Asks some of them.
        half_width: Largest half width of the interval, in points of the score, > 0.
        most_unscored: Share of the asked questions, in [0, 1], that may have no verdict; a fifth
            may if it is less. Above it, no more is asked: there will be no score.

    Source:
        Cochran, Sampling Techniques (1977), sections 4.4 (sample size with finite-population
        correction) and 7.5 (difference estimator).
    """
    n = population.n_questions
    sizes = np.bincount(population.tasks).astype(np.float64)
    order = np.lexsort((population.keys, population.tasks))
    ranks = np.empty(n, dtype=np.intp)
    ranks[order] = np.arange(n) - (np.cumsum(sizes) - sizes)[population.tasks[order]]
    pairs: Floats = np.full((n, 1, 2), np.nan)
    is_asked = np.zeros(n, dtype=bool)

    def get(is_wanted: NDArray[np.bool_]) -> None:
        nonlocal pairs
        new = np.flatnonzero(is_wanted & ~is_asked)
        if len(new):
            found = ask(new)
            if found.shape[1] > pairs.shape[1]:
                pairs = np.repeat(pairs, found.shape[1], axis=1)
            pairs[new], is_asked[new] = found, True

    most_unscored = max(_MOST_UNSCORED, most_unscored)
    n_wanted = max(FEW, _FIRST * n)
    while n > FEW and n_wanted < _NEARLY_ALL * n:
        counts = np.minimum(sizes, np.maximum(2, np.ceil(n_wanted / n * sizes)))
        get(ranks < counts[population.tasks])
        known = np.nan_to_num(pairs)
        if np.isnan(pairs[is_asked]).any(axis=(1, 2)).mean() > most_unscored:
            drawn = Drawn(weights=is_asked * 1.0, strata=np.full(n, -1), sizes=np.zeros(0), lam=0.0)
            return Sampled(drawn, known, float("nan"), StratifiedError(0.0, float("inf")))
        weights = np.where(is_asked, (sizes / counts)[population.tasks], 0.0)
        drawn = Drawn(
            weights=weights, strata=population.tasks, sizes=sizes.astype(np.float64), lam=0.0
        )
        drawn = replace(drawn, lam=trust_in_cheap(population, known, drawn))
        score, error = measured(population, known, drawn)
        reached = error.half_width()
        if reached <= half_width:
            return Sampled(drawn, known, score, error)
        n_asked = int(is_asked.sum())
        share = _AIM * (half_width / reached) ** 2 if reached > half_width else 0.0
        n_wanted = max(n_asked + 1, 1 / (share * (1 / n_asked - 1 / n) + 1 / n))
    get(np.ones(n, dtype=bool))
    drawn = Drawn(weights=np.ones(n), strata=np.full(n, -1), sizes=np.zeros(0), lam=0.0)
    known = np.nan_to_num(pairs)
    return Sampled(drawn, known, *measured(population, known, drawn))
