"""Metrics as ratios of sums over captions, from which their standard errors follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.ratio_influences import Parts

Ratios = Callable[[Sequence[Sequence[Any]], Sequence[CaptionRecord]], Sequence[Parts]]
"""From the values that a metric reads of each caption in one judge run, and the captions' records,
to what each caption adds to the metric's ratios; all of it 0 where it adds nothing."""

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


def _total(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fsum(top for top, _ in pairs), fsum(bottom for _, bottom in pairs)
