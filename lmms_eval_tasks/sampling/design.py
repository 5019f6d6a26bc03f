"""Simple random sampling of questions within each task, until the headline is precise enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sampling.population import Drawn, Population
from lmms_eval_captions.lmms_eval_tasks.sampling.residuals import measured, trust_in_cheap
from lmms_eval_captions.metrics.ppi import StratifiedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

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
