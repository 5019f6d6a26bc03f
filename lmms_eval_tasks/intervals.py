"""How sure every number is: the interval of a task, of a group of tasks, of a breakdown's group.

All that shows an interval or a standard error has it from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.contributions import contributions_by_caption
from lmms_eval_captions.lmms_eval_tasks.measured import Measured
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighed
from lmms_eval_captions.lmms_eval_tasks.scoring import has_score
from lmms_eval_captions.lmms_eval_tasks.video_parts import parts_of_captions, parts_of_questions
from lmms_eval_captions.metrics.intervals import Interval, intervals
from lmms_eval_captions.metrics.parts import parts_within, values_of_runs

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.parts import RatioParts

_MOST_READS: Final = 1_000_000
"""Values that leaving out every caption of a group of a breakdown in turn may read: there may be
hundreds of groups."""

_NOTHING: Final = np.zeros((1, 0, 1, 1, 2))
"""What one video adds, as far as intervals go: it has none."""


def measured_over(
    benchmark: Benchmark[Any, Any], metric: str, sets: Sequence[Sequence[CaptionRecord]]
) -> Measured:
    """The plain mean of a metric over tasks, such as that of ``vdc_score``, with its interval.

    Captions of one video count as one, whatever task they are of: they are right or wrong together.

    Args:
        benchmark: That of all tasks.
        metric: One of its metrics.
        sets: The captions of each task; of one task or a pooled group, one set.
    """
    if not all(map(has_score, sets)):
        return Measured.none("there is no score")
    if any(record.sample for records in sets for record in records):
        # All of them: a task of which everything was asked is counted as the others are.
        both = [weighed(benchmark, records, always=True) for records in sets]
        benchmark, sets = both[0][0], [records for _, records in both]
    known = benchmark.metrics[metric]
    parts: RatioParts | None
    if known.ratios is None:
        parts = _of_contributions(benchmark, metric, sets)
    else:
        of_videos = parts_of_captions(benchmark, metric, sets)
        parts = None if of_videos is None else of_videos.parts
    return _measured([(known, parts)])[0]


@dataclass(frozen=True, slots=True)
class GroupValues:
    """What each metric reads of the questions of one group of a breakdown."""

    captions: Sequence[int]
    """Places of the captions that it has questions of, shape (n_captions,)."""
    of_metrics: Mapping[str, Sequence[Sequence[Sequence[Any]]]]
    """Metric to values of shape (n_runs, n_captions, n_values)."""


def intervals_of_groups(
    benchmark: Benchmark[Any, Any],
    groups: Sequence[GroupValues],
    videos: Sequence[str],
    records: Sequence[CaptionRecord],
) -> list[dict[str, Measured]]:
    """Every metric, with its interval, in every group of a breakdown.

    Args:
        benchmark: Whose.
        groups: What is read of each.
        videos: Ids of the videos of all captions, by whose places groups name captions.
        records: Those of the same captions, if a metric reads them, else none.
    """
    parts: list[tuple[Metric, RatioParts | None]] = []
    for name, metric in benchmark.metrics.items():
        is_unavailable = metric.unavailable(records) is not None
        parts += [
            (metric, None if is_unavailable else _of_group(benchmark, name, group, videos, records))
            for group in groups
        ]
    found = _measured(parts)
    n = len(groups)
    return [dict(zip(benchmark.metrics, found[place::n], strict=True)) for place in range(n)]


def _measured(of_metrics: Sequence[tuple[Metric, RatioParts | None]]) -> list[Measured]:
    """Metrics with their intervals; in one call, as those of as many videos have work in common."""
    shares = [_as_share(parts, metric) for metric, parts in of_metrics if parts is not None]
    found = iter(zip(shares, intervals(shares, scale=1.0, bounds=(0.0, 1.0)), strict=True))
    return [
        Measured.none(_why_none(metric)) if parts is None else _of_share(*next(found), metric)
        for metric, parts in of_metrics
    ]


def _as_share(parts: RatioParts, metric: Metric) -> RatioParts:
    """What videos add to a metric as a share of the way between its bounds."""
    return parts_within(parts, scale=metric.scale, bounds=metric.bounds)


def _of_share(parts: RatioParts, found: Interval, metric: Metric) -> Measured:
    """With the deviation over judge runs; a run without a value leaves it."""
    if len(parts) == 1:
        return Measured.of(found, metric.bounds, None)
    runs = values_of_runs(parts, scale=metric.span)
    valued = runs[np.isfinite(runs)]
    return Measured.of(found, metric.bounds, float(valued.std()) if len(valued) else None)


def _why_none(metric: Metric) -> str:
    return (
        "what its captions add to the metric is not known (Metric.ratios)"
        if metric.ratios is None
        else "the metric has no value here"
    )


def _of_group(
    benchmark: Benchmark[Any, Any],
    name: str,
    group: GroupValues,
    videos: Sequence[str],
    records: Sequence[CaptionRecord],
) -> RatioParts | None:
    """What each video adds to a metric in a group."""
    metric, runs = benchmark.metrics[name], group.of_metrics[name]
    if metric.ratios is None:
        return _of_few(benchmark, name, group, records)
    if metric.reads_fields:
        # It reads the records of all captions, asked about or not.
        asked = [dict(zip(group.captions, of_captions, strict=True)) for of_captions in runs]
        everywhere = [[of.get(place, ()) for place in range(len(records))] for of in asked]
        return parts_of_questions(metric.ratios, everywhere, videos, records)
    if len(group.captions) == 1:
        return _NOTHING
    return parts_of_questions(metric.ratios, runs, [videos[place] for place in group.captions], ())


def _of_few(
    benchmark: Benchmark[Any, Any], name: str, group: GroupValues, records: Sequence[CaptionRecord]
) -> RatioParts | None:
    """What each video adds to a metric of no known form, if that can be told in no time."""
    runs = group.of_metrics[name]
    is_part = len(group.captions) < len(records)
    n_reads = len(group.captions) * sum(map(len, runs[0]))
    if not records or (is_part and n_reads > _MOST_READS):
        return None
    restricted = [
        replace(records[place], values={**records[place].values, name: of_runs})
        for place, of_runs in zip(group.captions, map(list, zip(*runs, strict=True)), strict=True)
    ]
    return _of_contributions(benchmark, name, [restricted])


def _of_contributions(
    benchmark: Benchmark[Any, Any], metric: str, sets: Sequence[Sequence[CaptionRecord]]
) -> RatioParts | None:
    """What videos add to a metric of no known form: a mean of what their captions contribute."""
    ids = dict.fromkeys(caption.video_id for captions in sets for caption in captions)
    places = {video: place for place, video in enumerate(ids)}
    parts = np.zeros((1, len(places), len(sets), 1, 2))
    for term, captions in enumerate(sets):
        values = contributions_by_caption(benchmark, metric, captions)
        if values is None:
            return None
        for caption, value in zip(captions, values, strict=True):
            if value is not None:
                share = value / benchmark.metrics[metric].scale
                parts[0, places[caption.video_id], term, 0] += (share, 1.0)
    return parts
