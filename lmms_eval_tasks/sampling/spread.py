"""What a pilot says of how much the verdicts on questions vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sampling.population import Population
from lmms_eval_captions.lmms_eval_tasks.sampling.residuals import (
    Sums,
    effects_of_one,
    residuals_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

_LEAST_FIRST: Final = 0.6
"""Least part of what the pilot says is needed that is drawn at first: too many are paid for."""
_SHRUNK: Final = 40.0
"""Questions whose variance all groups' stands for, in that of each group."""
_Z: Final = 1.96
_ONE_MORE: Final = 1.2
"""How much more than the fewest are drawn by which one verdict more moves as much as is allowed."""
_SURELY: Final = 3.0
"""Standard errors from which on a correlation of the two judges is more than chance."""
_NOTHING: Final = 1e-300


@dataclass(frozen=True, slots=True)
class Spread:
    """What a pilot says of how much questions vary."""

    measures: Floats
    """Shape (n_questions,): the standard deviation of what each adds to the score, > 0."""
    lam: float
    """Trust in the cheap judge."""
    ones: Floats
    """Shape (n_questions,): how far one verdict on each could move the score."""
    sure_part: float
    """Part of what is needed by the variance that is surely needed, in (0, 1)."""

    @classmethod
    def of(cls, population: Population, pairs: Floats, pilot: Places) -> Spread | None:
        """From what the judge said of the pilot, ``None`` where none of it has a value."""
        sums = _guess(population, pairs, pilot)
        if not np.isfinite(sums.ratios).all():
            return None
        # By what each weighs, so that they are of one size.
        of_judge = residuals_of(population, pairs, sums)[pilot] / population.weights[pilot]
        lam = 0.0
        if population.control is not None:
            cheap = residuals_of(population, population.control[:, None, :], sums)[pilot]
            cheap = cheap / population.weights[pilot]
            lam = _lam(of_judge, cheap, population.terms[pilot])
            of_judge = of_judge - lam * cheap
        squares, is_counted = _squares(of_judge, population.captions[pilot])
        counted = squares[is_counted]
        doubt = float(counted.std()) / max(float(counted.mean()), _NOTHING)
        doubt /= np.sqrt(len(counted) / 2)
        is_told = lam > 0 or population.control is None
        # A cheap judge whose verdicts tell nothing tells nothing of how much the judge's vary.
        groups = population.groups if is_told else population.terms
        # A pilot that shows no difference leaves open that there is one in so many.
        ones = effects_of_one(population, sums)
        one = ones[pilot] / population.weights[pilot]
        least = float((one**2).mean()) / len(pilot)
        of_pilot = groups[pilot][is_counted]
        deviations = _deviations(counted, of_pilot, int(groups.max()) + 1, least=least)
        measures = deviations[groups] * population.weights
        return cls(measures, lam, ones, max(_LEAST_FIRST, 1.0 - 1.3 * doubt))

    def n_first(self, places: Places, half_width: float) -> int:
        """How many of these questions are drawn at first.

        What is surely needed by Neyman's allocation; so many at least that one verdict more on
        those that were drawn could move the score by less than is allowed.
        """
        variance = (half_width / _Z) ** 2
        total = float(self.measures[places].sum()) ** 2
        needed = total / (variance + float((self.measures[places] ** 2).sum()))
        least = _Z * _ONE_MORE * float(self.ones[places].sum()) / half_width
        return int(max(self.sure_part * needed, least))


def pilot_of(population: Population, n: int) -> Places:
    """Two questions each, or one where there is one, of captions drawn at random."""
    keys = population.pilot_keys
    of_captions = keys[firsts_of(population.captions)]
    order = np.lexsort((keys, of_captions[population.captions]))
    captions = population.captions[order]
    is_new = np.r_[True, captions[1:] != captions[:-1]]
    starts = np.flatnonzero(is_new)
    ranks = np.arange(len(order)) - starts[np.cumsum(is_new) - 1]
    return np.asarray(order[ranks < 2][:n])


def firsts_of(captions: Places) -> Places:
    """The place of the first question of each caption."""
    places = np.full(int(captions.max()) + 1, len(captions) - 1)
    np.minimum.at(places, captions, np.arange(len(captions)))
    return places


def _guess(population: Population, pairs: Floats, pilot: Places) -> Sums:
    """The sums over all questions by those of the pilot, each term by its own or by all."""
    n_terms = population.n_terms
    terms, weights = population.terms[pilot], population.weights[pilot]
    weighed = pairs[pilot] * weights[:, None, None]
    everywhere = weighed.sum(axis=0) / weights.sum()
    of_terms = np.zeros((n_terms, *pairs.shape[1:]))
    np.add.at(of_terms, terms, weighed)
    total = np.bincount(terms, weights, minlength=n_terms)
    means = np.where(
        np.all(of_terms[..., 1] > 0, axis=1)[:, None, None],
        of_terms / np.where(total > 0, total, 1.0)[:, None, None],
        everywhere,
    )
    sizes: Floats = np.bincount(population.terms, population.weights).astype(np.float64)
    sums: Floats = means * sizes[:, None, None]
    return Sums(sums[..., 0], sums[..., 1])


def _lam(of_judge: Floats, cheap: Floats, terms: Places) -> float:
    """Regression of the judge's residuals on the cheap judge's within terms, cut to [0, 1].

    0 where the two go together no further than they may by chance.
    """
    n = np.maximum(1, np.bincount(terms))

    def centred(values: Floats) -> Floats:
        return np.asarray(values - (np.bincount(terms, values) / n)[terms])

    judge, other = centred(of_judge), centred(cheap)
    both, square = float(judge @ other), float(other @ other)
    chance = _SURELY * np.sqrt(square * float(judge @ judge) / len(judge))
    return min(1.0, both / square) if both > chance else 0.0


def _squares(values: Floats, captions: Places) -> tuple[Floats, NDArray[np.bool_]]:
    """How far each question of the pilot is from the others of its caption, squared.

    Their mean is unbiased for the variance within a caption; of captions with one question each,
    for that of captions.

    Returns:
        The squares, and which of them count.
    """
    numbers, n_of_captions = np.unique(captions, return_inverse=True, return_counts=True)[1:]
    numbers = numbers.reshape(-1)
    n_here = n_of_captions[numbers]
    is_counted = n_here > 1
    if float(is_counted.mean()) < 0.5:
        n = len(values)
        return (values - values.mean()) ** 2 * n / max(1, n - 1), np.ones(n, dtype=bool)
    means = np.bincount(numbers, values) / n_of_captions
    return (values - means[numbers]) ** 2 * n_here / np.maximum(1, n_here - 1), is_counted


def _deviations(squares: Floats, groups: Places, n_groups: int, *, least: float) -> Floats:
    """Standard deviation of the questions of each group, drawn towards that of all."""
    n = np.bincount(groups, minlength=n_groups)
    of_groups = np.bincount(groups, squares, minlength=n_groups)
    overall = max(float(squares.mean()), least)
    return np.asarray(np.sqrt((of_groups + _SHRUNK * overall) / (n + _SHRUNK)))
