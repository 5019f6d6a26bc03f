"""Metrics as ratios of sums over captions, from which their standard errors follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isnan
from typing import Any, Final

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


def of_verdicts(counts: Mapping[str, tuple[float, float]]) -> Ratios:
    """Return the ratio of a metric over all questions, by what each verdict adds to its parts.

    >>> counts = {"right": NUMERATOR, "wrong": DENOMINATOR}
    >>> of_verdicts(counts)([["right", "wrong", "right", None]], [])
    [[(2.0, 3.0)]]
    """

    def ratios(videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]) -> list[Parts]:
        scored = ([counts[v] for v in video if v is not None] for video in videos)
        return [[(fsum(p[0] for p in pairs), fsum(p[1] for p in pairs))] for pairs in scored]

    return ratios


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
        sums = [[fsum(column) for column in zip(*video, strict=True)] for video in rows if video]
        if not sums:
            return [[NEITHER]] * len(rows)
        value, effects = _value_and_influences(sums, self.value_of)
        influence = iter(effects)
        return [
            [(value + len(sums) * next(influence), 1.0) if video else NEITHER] for video in rows
        ]


of_means: Final = MeanOfMeans
of_sums: Final = FunctionOfSums
_STEP: Final = 1e-5
"""Share of a sum by which it changes for a derivative."""


def _value_and_influences(
    rows: Sequence[Sequence[float]], value_of: SumsOf
) -> tuple[float, list[float]]:
    """Return a value of sums over captions, and each caption's first-order effect on it.

    Source: infinitesimal jackknife (Jaeckel, 1972), its gradient by central differences.
    """
    sums = [fsum(column) for column in zip(*rows, strict=True)]
    value = value_of(sums)
    if isnan(value):
        return value, [value] * len(rows)

    def slope(index: int) -> float:
        step = _STEP * sums[index]
        above, below = (
            value_of([*sums[:index], sums[index] + way, *sums[index + 1 :]])
            for way in (step, -step)
        )
        return (above - below) / (2 * step) if step else 0.0

    slopes = [slope(index) for index in range(len(sums))]
    effects = [fsum(s * x for s, x in zip(slopes, row, strict=True)) for row in rows]
    # They sum to 0 except for rounding.
    rest = fsum(effects) / len(effects)
    return value, [effect - rest for effect in effects]
