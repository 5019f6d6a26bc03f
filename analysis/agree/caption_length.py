"""Whether how much more a judge gives depends on how long a caption is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, prod
from statistics import fmean
from typing import Any, Final

import numpy as np

from lmms_eval_captions.analysis.agree.shared_captions import SharedCaption
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.clusters import Slope, clustered_slope

_PER_WORDS: Final = 100
"""Words more that a slope is given for."""


def slope_over_words(
    benchmark: Benchmark[Any, Any], captions: Sequence[SharedCaption]
) -> Slope | None:
    """How the difference of captions' scores grows with their words, for 100 words more.

    Returns:
        ``None`` where captions have no scores of their own.
    """
    scores = [_scores(benchmark, [each.records[side] for each in captions]) for side in (1, 0)]
    if not all(scores):
        return None
    places = {video: i for i, video in enumerate(dict.fromkeys(each.video for each in captions))}
    rows = [
        (caption.records[0].n_words / _PER_WORDS, other - reference, places[caption.video])
        for caption, other, reference in zip(captions, *scores, strict=True)
        if caption.records[0].n_words is not None and not isnan(other - reference)
    ]
    if not rows:
        return None
    words, differences, videos = zip(*rows, strict=True)
    _, clusters = np.unique(np.array(videos, dtype=np.intp), return_inverse=True)
    return clustered_slope(words, differences, clusters)


def _scores(benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]) -> list[float]:
    """The headline of every caption by itself, mean over judge runs; ``nan`` for none."""
    metric = benchmark.metrics[benchmark.headline]
    if metric.ratios is None:
        return []
    n_runs = max((len(record.values[benchmark.headline]) for record in records), default=0)
    of_runs = [
        metric.ratios(
            [own[run] if run < len(own) else () for own in _values(benchmark, records)], records
        )
        for run in range(n_runs)
    ]
    return [
        _mean([_ratio(parts) for parts in runs]) * metric.scale
        for runs in zip(*of_runs, strict=True)
    ]


def _values(benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]) -> Iterator[Any]:
    return (record.values[benchmark.headline] for record in records)


def _ratio(parts: Sequence[tuple[float, float]]) -> float:
    if any(bottom == 0 for _, bottom in parts):
        return float("nan")
    return prod(top / bottom for top, bottom in parts)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not isnan(value)]
    return fmean(known) if known else float("nan")
