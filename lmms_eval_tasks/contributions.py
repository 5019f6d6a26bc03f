"""What each caption contributes to a metric, for who wants a number per caption.

Contributions are numbers, one per caption, whose mean is the metric and whose standard deviation
over the root of their number is its standard error. Of a mean over videos they are the videos' own
scores. Of a ratio of sums, as most metrics are, they are linearised: the captions' own ratios would
give the error of their mean, which is another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from math import fsum, isnan, nan
from statistics import fmean
from typing import Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighed
from lmms_eval_captions.lmms_eval_tasks.scoring import by_run, has_score
from lmms_eval_captions.metrics.parts import influences_of_videos

_MOST_READS: Final = 100_000_000
"""Values that leaving out every caption in turn may read, some ten seconds' worth."""


def contributions_by_caption(
    benchmark: Benchmark[Any, Any], metric: str, records: Sequence[CaptionRecord]
) -> list[float | None] | None:
    """What each caption contributes to a metric, mean over judge runs.

    Returns:
        One for each record, ``None`` for a caption that does not count: in the metric's unit, their
        mean is the metric. ``None`` where the metric has no value, or where it is not known what a
        caption adds to it.
    """
    score, of_captions = _influences(*weighed(benchmark, records), metric)
    if of_captions is None:
        return None
    n = sum(influence is not None for influence in of_captions)
    return [None if influence is None else score + n * influence for influence in of_captions]


def _influences(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord], name: str
) -> tuple[float, list[float | None] | None]:
    """A metric, and what each caption adds around it; ``None`` for one that does not count."""
    metric = benchmark.metrics[name]
    nothing = nan, None
    if not has_score(records) or metric.unavailable(records) is not None:
        return nothing
    scores = [metric.score(videos, records) for videos in by_run(name, records)]
    if not scores or any(map(isnan, scores)):
        return nothing
    runs = [_of_run(metric, name, records, run) for run in range(len(scores))]
    of_captions = [_mean(of_runs) for of_runs in zip(*runs, strict=True)]
    if any(influence is not None and isnan(influence) for influence in of_captions):
        return nothing
    return fmean(scores), of_captions


def _of_run(
    metric: Metric, name: str, records: Sequence[CaptionRecord], run: int
) -> list[float | None]:
    """What each caption adds to a metric in one judge run; ``None`` where it has no part in it."""
    captions = [record.values[name] for record in records]
    videos = [values[run] if run < len(values) else () for values in captions]
    has_part = [any(value is not None for value in video) for video in videos]
    if metric.ratios is None:
        influences = _left_out(metric, videos, records, has_part)
    else:
        parts = metric.ratios(videos, records)
        # A caption that nothing is asked about may count by its length.
        has_part = [
            is_scored or any(any(pair) for pair in pairs)
            for is_scored, pairs in zip(has_part, parts, strict=True)
        ]
        # Every caption counts as a video of its own.
        of_captions = np.array(parts, dtype=np.float64)[None, :, None]
        influences = influences_of_videos(of_captions, scale=metric.scale)[0].tolist()
    return [value if is_in else None for value, is_in in zip(influences, has_part, strict=True)]


def _left_out(
    metric: Metric,
    videos: Sequence[Sequence[object]],
    records: Sequence[CaptionRecord],
    has_part: Sequence[bool],
) -> list[float]:
    """The influences on a metric that is not known to be a ratio.

    Source: the delete-one jackknife (Efron and Stein, The Jackknife Estimate of Variance, 1981).
    """
    chosen = list(compress(range(len(videos)), has_part))
    n_values = sum(len(videos[place]) for place in chosen)
    if len(chosen) < 2 or len(chosen) * n_values > _MOST_READS:
        return [nan] * len(videos)
    scores = {}
    for left in chosen:
        kept = [place for place in chosen if place != left]
        scores[left] = metric.score([videos[of] for of in kept], [records[of] for of in kept])
    mean, n = fsum(scores.values()) / len(scores), len(scores)
    return [(mean - scores.get(of, mean)) * (n - 1) / n for of in range(len(videos))]


def _mean(of_runs: Sequence[float | None]) -> float | None:
    """Mean over judge runs; a run that a caption has no part in does not move with it."""
    if all(influence is None for influence in of_runs):
        return None
    return fmean(0.0 if influence is None else influence for influence in of_runs)
