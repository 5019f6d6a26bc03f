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
from lmms_eval_captions.lmms_eval_tasks.sampling.residuals import measured
from lmms_eval_captions.lmms_eval_tasks.sampling.spread import Spread, firsts_of, pilot_of
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
_BELOW: Final = 0.998
"""Part of the variance that is aimed at, so that it is reached at once."""
_ROUNDS: Final = 20
"""Times that more is drawn, at most; then all are asked."""
_NEARLY_ALL: Final = 0.9
"""Part of the questions from which on all are asked."""

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
        pilot = pilot_of(self._population, max(_LEAST_PILOT, int(_PILOT * n)))
        self._get(pilot)
        if self._is_in_vain():
            # What there is has no score: the rest is not paid for.
            self._drawn = replace(self._drawn, weights=self._is_known.astype(np.float64))
            return self._found(float("nan"), StratifiedError(0.0, float("inf")))
        spread = Spread.of(self._population, self._pairs, pilot)
        if spread is None:
            # Nothing in the pilot counts in the denominator, but something of the rest may.
            return self._all()
        rest = self._in_order(spread)
        n_first = spread.n_first(rest, self._half_width)
        if n_first + len(pilot) >= _NEARLY_ALL * n:
            return self._all()
        return self._stratified(rest, spread, max(2, n_first))

    def _stratified(self, rest: Places, spread: Spread, n_first: int) -> Sampled:
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

    def _in_order(self, spread: Spread) -> Places:
        """The questions that are not known, those next to each other that are most alike.

        By caption, as a caption's questions go together. Where a cheap judge says what captions
        are worth, by what it says first: that tells how much the judge's verdicts vary.
        """
        population = self._population
        captions, groups = population.captions, population.groups
        likeness = population.pilot_keys[firsts_of(captions)]
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


def _blocks(population: Population, spread: Spread, rest: Places, n_drawn: int) -> Places:
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
