"""Metrics as ratios of sums over captions, from which their standard errors follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

Parts = Sequence[tuple[float, float]]
"""Share of one caption in the numerator and in the denominator of each ratio."""

Ratios = Callable[[Sequence[Sequence[Any]], Sequence[CaptionRecord]], Sequence[Parts]]
"""From each caption's values in one judge run, and the records, to what it adds to the ratios."""

SumsOf = Callable[[Sequence[float]], float]
"""From sums over captions to a metric, ``nan`` if it has no value."""

NUMERATOR: Final = (1.0, 1.0)
"""A verdict that counts in the numerator and in the denominator."""
DENOMINATOR: Final = (0.0, 1.0)
"""A verdict that counts in the denominator alone."""
NEITHER: Final = (0.0, 0.0)
_STEP: Final = 1e-5
"""Share of a sum by which it changes for a derivative."""


def of_verdicts(counts: Mapping[str, tuple[float, float]]) -> Ratios:
    """Return the ratio of a metric over all questions, by what each verdict adds to its parts.

    >>> counts = {"right": NUMERATOR, "wrong": DENOMINATOR}
    >>> of_verdicts(counts)([["right", "wrong", "right", None]], [])
    [[(2.0, 3.0)]]
    """
    return lambda videos, records: of_pairs(
        [[None if v is None else counts[v] for v in video] for video in videos], records
    )


def of_pairs(videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]) -> list[Parts]:
    """Return the ratio of a metric whose values are what each question adds to its parts."""
    scored = ([pair for pair in video if pair is not None] for video in videos)
    return [[(fsum(p[0] for p in pairs), fsum(p[1] for p in pairs))] for pairs in scored]


@dataclass(frozen=True, slots=True)
class MeanOfMeans:
    """The ratio of a mean over videos of the mean over each video's questions."""

    share: Callable[[Any], float] = float
    """From a value to its share of the metric's scale."""

    def __call__(
        self, videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]
    ) -> list[Parts]:
        """Return the mean of each caption's scored values as numerator, over 1."""
        scored = ([self.share(v) for v in video if v is not None] for video in videos)
        return [[(fsum(values) / len(values), 1.0) if values else NEITHER] for values in scored]


@dataclass(frozen=True, slots=True)
class FunctionOfSums:
    """A smooth function of sums over captions, such as BLEU or F1: its linearisation.

    >>> of_sums(lambda sums: sums[0] / sums[1])([[[1, 2]], [[1, 2]], [None]], [])
    [[(0.5, 1.0)], [(0.5, 1.0)], [(0.0, 0.0)]]
    """

    value_of: SumsOf
    """From the sums to the metric as a share of its scale; twice all sums give the same."""
    row_of: Callable[[Any], Sequence[float]] = tuple
    """From a value to what it adds to each sum."""

    def __call__(
        self, videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]
    ) -> list[Parts]:
        """Return each caption's linearised contribution as numerator, over 1."""
        rows = [[self.row_of(value) for value in video if value is not None] for video in videos]
        sums = np.array([np.sum(video, axis=0) for video in rows if video], np.float64)
        if not sums.size:
            return [[NEITHER]] * len(rows)
        total = sums.sum(axis=0)
        value, steps = self.value_of(total.tolist()), _STEP * total
        changes = [
            self.value_of((total + change).tolist()) - self.value_of((total - change).tolist())
            for change in np.diag(steps)
        ]
        # Source: infinitesimal jackknife (Jaeckel, 1972), its gradient by central differences.
        effects = sums @ (changes / np.where(steps, 2 * steps, 1.0))
        # They sum to 0 except for rounding.
        influence = iter(len(sums) * (effects - effects.mean()))
        return [[(value + float(next(influence)), 1.0) if video else NEITHER] for video in rows]


of_means: Final = MeanOfMeans
of_sums: Final = FunctionOfSums
