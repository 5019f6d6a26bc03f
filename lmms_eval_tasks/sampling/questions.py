"""The questions of all captions of a plan, one after the other, as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import Values
from lmms_eval_captions.lmms_eval_tasks.sampling.held import HeldCaption, keys_of
from lmms_eval_captions.lmms_eval_tasks.sampling.population import Population
from lmms_eval_captions.lmms_eval_tasks.sampling.weighing import contributions, examples_of, is_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

_MOST_UNSCORED: Final = 0.2
"""Part of the questions on which a cheap judge may have no verdict."""


class HeldQuestions:
    """Those of all captions, and what the cheap judge said of each.

    Args:
        benchmark: The captions' own.
        captions: At least one.

    Raises:
        Exception: What ended the cheap judge's judging.
    """

    def __init__(
        self, benchmark: Benchmark[Any, Any], captions: Sequence[HeldCaption[Any]]
    ) -> None:
        self._benchmark = benchmark
        self._metric = benchmark.metrics[benchmark.headline]
        self._held = captions
        sizes = [caption.n_questions for caption in captions]
        self.starts: list[int] = [0, *np.cumsum(sizes).tolist()]
        """Place of each caption's first question."""
        self.captions: Places = np.repeat(np.arange(len(captions)), sizes)
        """Shape (n_questions,): the caption of each."""
        self.cheap: list[Mapping[str, Values]] | None = None
        """For each caption, what metrics read of the cheap judge's verdicts, in one judge run."""
        if all(caption.cheap is not None for caption in captions):
            judged = [
                list(chain.from_iterable(caption.cheap())) for caption in captions if caption.cheap
            ]
            _require_verdicts(list(chain.from_iterable(judged)))
            self.cheap = [_read(benchmark, judgements) for judgements in judged]

    def population(self) -> Population:
        """All of them, as a sample is drawn."""
        return Population(
            terms=self._terms(),
            tasks=self._tasks(),
            captions=self.captions,
            weights=self._weights(),
            has_means=self._has_means,
            control=self._control(),
            keys=keys_of(self._held),
            scale=self._metric.scale,
            reach=self._metric.span / self._metric.scale,
        )

    def by_caption(self, places: Places) -> dict[int, list[int]]:
        """Caption to the places among its questions of those that are here."""
        found: dict[int, list[int]] = {}
        for place in places.tolist():
            caption = int(self.captions[place])
            found.setdefault(caption, []).append(place - self.starts[caption])
        return found

    def pairs(self, places: Places) -> Floats:
        """What the judge's verdicts on these add, ``nan`` for none; (n_places, n_runs, 2)."""
        pairs = np.full((len(places), max(caption.n_runs for caption in self._held), 2), np.nan)
        for row, place in enumerate(places.tolist()):
            caption = int(self.captions[place])
            of_runs = self._held[caption].judgements(place - self.starts[caption])
            for run, judgements in enumerate(of_runs):
                values = [value for one in judgements for value in self._metric.values(one)]
                if any(value is not None for value in values):
                    pairs[row, run] = contributions(self._metric, values)[0]
        return pairs

    def _tasks(self) -> Places:
        names = dict.fromkeys(caption.task for caption in self._held)
        numbers = {task: number for number, task in enumerate(names)}
        return np.array([numbers[caption.task] for caption in self._held])[self.captions]

    def _terms(self) -> Places:
        """Tasks; one for all where the benchmark pools its tasks' questions, and all are here."""
        here = {caption.task for caption in self._held}
        is_pooled = bool(self._benchmark.pooled_group) and here == {*self._benchmark.tasks}
        tasks = self._tasks()
        return np.zeros_like(tasks) if is_pooled else tasks

    @property
    def _has_means(self) -> bool:
        return is_mean(self._metric, examples_of(self._metric))

    def _weights(self) -> Floats:
        """One over the number of a caption's questions where the metric is a mean of means."""
        if self._has_means:
            return np.asarray(1.0 / np.bincount(self.captions)[self.captions])
        return np.ones(len(self.captions))

    def _control(self) -> Floats | None:
        if self.cheap is None:
            return None
        runs = [of_metrics[self._benchmark.headline][0] for of_metrics in self.cheap]
        pairs = [pair for values in runs for pair in contributions(self._metric, values)]
        return np.array(pairs, dtype=np.float64)


def _require_verdicts(judgements: Sequence[Judgement]) -> None:
    """Raise where the cheap judge gave hardly any verdict: a larger sample would be paid for."""
    reasons = Counter(one.reason for one in judgements if one.reason is not None)
    n_unscored = reasons.total()
    if n_unscored > _MOST_UNSCORED * len(judgements):
        raise JudgeStoppedError(
            f"the cheap judge (LMMS_CAPTIONS_CHEAP_JUDGE) gave no verdict on {n_unscored:,} of "
            f"{len(judgements):,} questions, and the judge was asked none: mend that or unset it; "
            f"what was answered is kept. The most frequent reason: {reasons.most_common(1)[0][0]}"
        )


def _read(benchmark: Benchmark[Any, Any], judgements: Sequence[Judgement]) -> Mapping[str, Values]:
    """What each metric reads of a caption's judgements in one judge run."""
    return {
        name: [[value for one in judgements for value in metric.values(one)]]
        for name, metric in benchmark.metrics.items()
    }
