"""Metrics as ratios of sums over captions, from which their standard errors follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, isnan, nan
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

Parts = Sequence[tuple[float, float]]
"""What one caption adds to the numerator and to the denominator of each ratio."""

Ratios = Callable[[Sequence[Sequence[Any]], Sequence[CaptionRecord]], Sequence[Parts]]
"""From the values that a metric reads of each caption in one judge run, and the captions' records,
to what each caption adds to the metric's ratios; all of it 0 where it adds nothing."""

SumsOf = Callable[[Sequence[float]], float]
"""From sums over captions to a metric, ``nan`` where it has no value."""

NUMERATOR: Final = (1.0, 1.0)
"""A verdict that counts in the numerator and in the denominator."""
DENOMINATOR: Final = (0.0, 1.0)
"""A verdict that counts in the denominator alone."""
NEITHER: Final = (0.0, 0.0)


def of_verdicts(counts: Mapping[str, tuple[float, float]]) -> Ratios:
    """The ratio of a metric over all questions together.

    Args:
        counts: Each verdict to what one of them adds to numerator and denominator.

    >>> counts = {"right": NUMERATOR, "wrong": DENOMINATOR}
    >>> of_verdicts(counts)([["right", "wrong", "right", None]], [])
    [[(2.0, 3.0)]]
    """

    def ratios(videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]) -> list[Parts]:
        return [[_total([counts[v] for v in video if v is not None])] for video in videos]

    return ratios


def of_means(share: Callable[[Any], float] = float) -> Ratios:
    """The ratio of a metric that is a mean over videos of a mean over each one's questions.

    Args:
        share: From a value that is scored to what it counts, as a share of the metric's scale.

    >>> of_means()([[1.0, 0.0, None], [None]], [])
    [[(0.5, 1.0)], [(0.0, 0.0)]]
    """

    def ratios(videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]) -> list[Parts]:
        scored = ([share(v) for v in video if v is not None] for video in videos)
        return [[(fsum(values) / len(values), 1.0) if values else NEITHER] for values in scored]

    return ratios


def of_sums(value_of: SumsOf) -> Ratios:
    """A metric of one row of counts for each caption, computed from the rows' sums.

    It is no ratio of sums; its linearised contributions, whose mean it is, stand for it.

    Args:
        value_of: From the sums to the metric as a share of its scale, the same for twice all sums.

    >>> of_sums(lambda sums: sums[0] / sums[1])([[[1, 2]], [[1, 2]], [None]], [])
    [[(0.5, 1.0)], [(0.5, 1.0)], [(0.0, 0.0)]]
    """

    def ratios(videos: Sequence[Sequence[Any]], _records: Sequence[CaptionRecord]) -> list[Parts]:
        rows = [next((row for row in video if row is not None), None) for video in videos]
        scored = [row for row in rows if row is not None]
        if not scored:
            return [[NEITHER]] * len(rows)
        value, found = _value_and_influences(scored, value_of)
        influences = iter(found)
        return [
            [NEITHER if row is None else (value + len(scored) * next(influences), 1.0)]
            for row in rows
        ]

    return ratios


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
        return nan, [nan] * len(rows)

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


def _total(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fsum(top for top, _ in pairs), fsum(bottom for _, bottom in pairs)
