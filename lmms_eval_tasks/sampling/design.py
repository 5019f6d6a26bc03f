"""Which questions are asked until the score is known as well as it is asked to be.

First a *pilot*: a few questions of captions drawn at random, two of each. It tells how much
verdicts vary within a caption, and how far the cheap judge's verdicts go with the strong judge's.
What the pilot asked is known, and counts as what it is. The rest is cut into strata of neighbours
(a caption's questions of one kind, those of similar captions), of which two questions each are
drawn, more of them where verdicts vary more; and more again until the interval is narrow enough. As
nothing of the pilot goes into the estimate of the rest, the design may depend on it in whatever
way without bias. To stop where the interval is narrow enough leaves a trace of one: samples that
happen to vary little end earlier (of a score of 0.2%, 7% of it; of usual ones less than can be
seen in 1,000 runs, see ``benchmarks/precision.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.sampling.blocks import (
    choose,
    cut_blocks,
    first_counts,
    raised,
    whole_captions,
)
from lmms_eval_captions.lmms_eval_tasks.sampling.population import Drawn, Population
from lmms_eval_captions.lmms_eval_tasks.sampling.residuals import (
    Sums,
    effects_of_one,
    measured,
    residuals_of,
)
from lmms_eval_captions.metrics.stratified_error import StratifiedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

FEW: Final = 400
"""Questions up to which all are asked: a sample of them saves little and tells little."""
_PILOT: Final = 0.003
"""Part of the questions that the pilot asks."""
_LEAST_PILOT: Final = 300
_LEAST_FIRST: Final = 0.6
"""Least part of what the pilot says is needed that is drawn at first: too many are paid for."""
_BELOW: Final = 0.998
"""Part of the variance that is aimed at, so that it is reached at once."""
_ROUNDS: Final = 20
"""Times that more is drawn, at most; then all are asked."""
_NEARLY_ALL: Final = 0.9
"""Part of the questions from which on all are asked."""
_SHRUNK: Final = 40.0
"""Questions whose variance all groups' stands for, in that of each group."""
_Z: Final = 1.96
_ONE_MORE: Final = 1.2
"""How much more than the fewest are drawn by which one verdict more moves as much as is allowed."""
_SURELY: Final = 3.0
"""Standard errors from which on a correlation of the two judges is more than chance."""
_NOTHING: Final = 1e-300

_MOST_UNSCORED: Final = 0.2
"""Part of what was asked that may have no verdict for more to be asked: there will be no score."""

Ask = Callable[["Places"], "Floats"]
"""Asks the judge the questions at these places; gives what its verdicts add to numerator and
denominator, shape (n_asked, n_runs, 2), ``nan`` where there is no verdict."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sample, and what its verdicts say."""

    drawn: Drawn
    pairs: Floats
    """Shape (n_questions, n_runs, 2), 0 where a question has no verdict."""
    score: float
    """The score that all questions would give, as far as the sample tells."""
    error: StratifiedError


def sample(
    population: Population, ask: Ask, *, half_width: float, most_unscored: float = 0.0
) -> Sampled:
    """Ask questions until the 95% interval of the score reaches no further than it may.

    Args:
        population: All questions.
        ask: Asks some of them.
        half_width: How far the interval may reach to either side, in the score's unit, > 0.
        most_unscored: Part of what was asked that may have no verdict, in [0, 1]; a fifth may where
            less is allowed, as what is left could still be a score.
    """
    return _Sampling(population, ask, half_width, max(_MOST_UNSCORED, most_unscored)).run()


class _Sampling:
    def __init__(
        self, population: Population, ask: Ask, half_width: float, most_unscored: float
    ) -> None:
        self._population = population
        self._ask = ask
        self._half_width = half_width
        self._most_unscored = most_unscored
        n = population.n_questions
        self._pairs: Floats = np.zeros((n, 1, 2))
        self._is_known = np.zeros(n, dtype=bool)
        """Whether a question was asked."""
        self._is_unscored = np.zeros(n, dtype=bool)
        self._drawn = Drawn(weights=np.zeros(n), strata=np.full(n, -1), sizes=np.zeros(0), lam=0.0)

    def run(self) -> Sampled:
        n = self._population.n_questions
        if n <= FEW:
            return self._all()
        pilot = _pilot(self._population, max(_LEAST_PILOT, int(_PILOT * n)))
        self._get(pilot)
        if self._is_in_vain():
            # What there is has no score: the rest is not paid for.
            self._drawn = replace(self._drawn, weights=self._is_known.astype(np.float64))
            return self._found(float("nan"), StratifiedError(0.0, float("inf")))
        spread = _Spread.of(self._population, self._pairs, pilot)
        if spread is None:
            # Nothing in the pilot counts in the denominator, but something of the rest may.
            return self._all()
        rest = self._in_order(spread)
        n_first = spread.n_first(rest, self._half_width)
        if n_first + len(pilot) >= _NEARLY_ALL * n:
            return self._all()
        return self._stratified(rest, spread, max(2, n_first))

    def _stratified(self, rest: Places, spread: _Spread, n_first: int) -> Sampled:
        """Draw of strata, and more until it is enough.

        Args:
            rest: Places of the questions that the pilot left, neighbours next to each other.
            spread: What the pilot says.
            n_first: Questions that are drawn at first.
        """
        population = self._population
        blocks = _blocks(population, spread, rest, n_first)
        sizes = np.bincount(blocks)
        # The key of a stratum is that of its first question.
        keys = population.main_keys[rest[np.searchsorted(blocks, np.arange(len(sizes)))]]
        counts = first_counts(blocks, spread.measures[rest], n_first, keys)
        for _ in range(_ROUNDS):
            chosen = choose(blocks, population.main_keys[rest], counts)
            self._get(rest[chosen])
            self._drawn = _drawn(len(self._pairs), rest, blocks, chosen, spread.lam)
            self._drawn.weights[self._is_known & (self._drawn.strata < 0)] = 1.0
            score, error = measured(population, self._pairs, self._drawn)
            reached = error.half_width()
            if not reached > self._half_width or self._is_in_vain():
                return self._found(score, error)
            squares = np.bincount(blocks, spread.measures[rest] ** 2) / sizes
            goal = (self._half_width / reached) ** 2
            enough = _enough(counts, sizes, squares, keys, goal=_BELOW * goal)
            # What one verdict may move falls faster than the variance of all.
            most = raised(counts, sizes, int(counts.sum()), keys)
            counts = np.minimum(enough, most)
            if int(counts.sum()) + len(self._pairs) - len(rest) >= _NEARLY_ALL * len(self._pairs):
                break
        return self._all()

    def _in_order(self, spread: _Spread) -> Places:
        """The questions that are not known, those next to each other that are most alike.

        By caption, as a caption's questions go together. Where a cheap judge says what captions
        are worth, by what it says first: that tells how much the judge's verdicts vary.
        """
        population = self._population
        captions, groups = population.captions, population.groups
        likeness = population.pilot_keys[_firsts(captions)]
        by: tuple[NDArray[np.number[Any]], ...] = (groups, captions, likeness[captions])
        if spread.lam and population.control is not None:
            n = np.maximum(1, np.bincount(captions))
            likeness = np.bincount(captions, population.control[:, 0]) / n + 1e-9 * likeness
            by = (captions, likeness[captions], groups)
        # Not by the keys that questions are drawn by, which are to tell nothing of a place.
        order = np.lexsort((population.pilot_keys, *by, population.tasks))
        return np.asarray(order[~self._is_known[order]])

    def _get(self, places: Places) -> None:
        """Ask those that were not asked yet."""
        new = places[~self._is_known[places]]
        if not len(new):
            return
        pairs = self._ask(new)
        if pairs.shape[1] > self._pairs.shape[1]:
            self._pairs = np.repeat(self._pairs, pairs.shape[1], axis=1)
        is_unscored = np.isnan(pairs).any(axis=(1, 2))
        self._pairs[new] = np.nan_to_num(pairs)
        self._is_unscored[new] = is_unscored
        self._is_known[new] = True

    def _is_in_vain(self) -> bool:
        """Whether so much of what was asked has no verdict that there will be no score."""
        n_asked = int(self._is_known.sum())
        return float(self._is_unscored.sum()) > self._most_unscored * n_asked

    def _all(self) -> Sampled:
        """Ask all that are left: each stands for itself."""
        n = self._population.n_questions
        self._get(np.flatnonzero(~self._is_known))
        self._drawn = Drawn(weights=np.ones(n), strata=np.full(n, -1), sizes=np.zeros(0), lam=0.0)
        return self._found(*measured(self._population, self._pairs, self._drawn))

    def _found(self, score: float, error: StratifiedError) -> Sampled:
        return Sampled(self._drawn, self._pairs, score, error)


@dataclass(frozen=True, slots=True)
class _Spread:
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
    def of(cls, population: Population, pairs: Floats, pilot: Places) -> _Spread | None:
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


def _blocks(population: Population, spread: _Spread, rest: Places, n_drawn: int) -> Places:
    """Strata of neighbours within tasks, each of which has its part of what is drawn."""
    measures, tasks = spread.measures[rest], population.tasks[rest]
    total, n_blocks = float(measures.sum()), 0
    blocks = np.zeros_like(tasks)
    for task in np.unique(tasks):
        is_in = tasks == task
        n_task = max(1, round(float(measures[is_in].sum()) / total * n_drawn))
        blocks[is_in] = n_blocks + (
            cut_blocks(measures[is_in], n_task)
            if spread.lam
            else whole_captions(population.captions[rest][is_in], n_task)
        )
        n_blocks = int(blocks.max()) + 1
    return blocks


def _pilot(population: Population, n: int) -> Places:
    """Two questions each, or one where there is one, of captions drawn at random."""
    keys = population.pilot_keys
    of_captions = keys[_firsts(population.captions)]
    order = np.lexsort((keys, of_captions[population.captions]))
    captions = population.captions[order]
    is_new = np.r_[True, captions[1:] != captions[:-1]]
    starts = np.flatnonzero(is_new)
    ranks = np.arange(len(order)) - starts[np.cumsum(is_new) - 1]
    return np.asarray(order[ranks < 2][:n])


def _firsts(captions: Places) -> Places:
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


def _drawn(n: int, rest: Places, blocks: Places, chosen: NDArray[np.bool_], lam: float) -> Drawn:
    sizes = np.bincount(blocks).astype(np.float64)
    n_chosen = np.bincount(blocks[chosen], minlength=len(sizes))
    weights, strata = np.zeros(n), np.full(n, -1)
    strata[rest] = blocks
    weights[rest[chosen]] = (sizes / n_chosen)[blocks[chosen]]
    return Drawn(weights=weights, strata=strata, sizes=sizes, lam=lam)


def _enough(counts: Places, sizes: Places, squares: Floats, keys: Floats, *, goal: float) -> Places:
    """Raise what is drawn of each stratum until the variance is a part of what it is.

    Args:
        counts: Shape (n_strata,): drawn of each.
        sizes: Shape (n_strata,): questions of each.
        squares: Shape (n_strata,): their mean variance, but for a factor common to all.
        keys: Shape (n_strata,): random numbers.
        goal: That part, in (0, 1).
    """

    def variance(drawn: Places) -> float:
        return float((sizes**2 * squares * (1 / drawn - 1 / sizes)).sum())

    least, most = 1, int((sizes - counts).sum())
    allowed = goal * variance(counts)
    while least < most:
        n_more = (least + most) // 2
        if variance(raised(counts, sizes, n_more, keys)) <= allowed:
            most = n_more
        else:
            least = n_more + 1
    return raised(counts, sizes, least, keys)
