"""How sure every number is: the interval of a task, of a group of tasks, of a breakdown's group.

All that shows an interval or a standard error has it from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.contributions import contributions_by_caption
from lmms_eval_captions.lmms_eval_tasks.measured import Measured
from lmms_eval_captions.lmms_eval_tasks.question_groups import Cell, Grouped, n_runs_of, values_in
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import has_score
from lmms_eval_captions.lmms_eval_tasks.video_parts import parts_of_captions, parts_of_questions
from lmms_eval_captions.metrics.interval import Interval, interval, intervals
from lmms_eval_captions.metrics.ratio_parts import values_of_runs

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.ratio_parts import RatioParts

_MOST_READS: Final = 1_000_000
"""Values that leaving out every caption of a group of a breakdown in turn may read: there may be
hundreds of groups."""


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
    known = benchmark.metrics[metric]
    if not all(map(has_score, sets)):
        return Measured.none("there is no score")
    parts: RatioParts | None
    if known.ratios is None:
        parts = _of_contributions(benchmark, metric, sets)
    else:
        of_videos = parts_of_captions(benchmark, metric, sets)
        parts = None if of_videos is None else of_videos.parts
    if parts is None:
        return Measured.none(_why_none(known))
    found = interval(parts, scale=known.scale, bounds=(0.0, known.highest))
    return _measured(parts, found, known.scale)


def intervals_of_groups(
    benchmark: Benchmark[Any, Any],
    metric: str,
    cells: Sequence[Cell],
    captions: Sequence[Grouped],
    records: Sequence[CaptionRecord],
) -> list[Measured]:
    """The interval of a metric in every group of a breakdown.

    Args:
        benchmark: Whose.
        metric: One of its metrics.
        cells: The questions of each group.
        captions: What was judged, by whose places cells name captions.
        records: Those of the same captions, if the metric reads them, else none.
    """
    known = benchmark.metrics[metric]
    is_unavailable = known.unavailable(records) is not None
    of_cells = [
        None if is_unavailable else _of_cell(benchmark, metric, cell, captions, records)
        for cell in cells
    ]
    known_parts = [parts for parts in of_cells if parts is not None]
    found = iter(intervals(known_parts, scale=known.scale, bounds=(0.0, known.highest)))
    why = _why_none(known)
    return [
        Measured.none(why) if parts is None else _measured(parts, next(found), known.scale)
        for parts in of_cells
    ]


def _measured(parts: RatioParts, found: Interval, scale: float) -> Measured:
    """With the deviation over judge runs; a run without a value leaves it."""
    runs = values_of_runs(parts, scale=scale)
    valued = runs[np.isfinite(runs)]
    has_runs = len(runs) > 1 and len(valued) > 0
    return Measured.of(found, float(valued.std()) if has_runs else None)


def _why_none(metric: Metric) -> str:
    return (
        "what its captions add to the metric is not known (Metric.ratios)"
        if metric.ratios is None
        else "the metric has no value here"
    )


def _of_cell(
    benchmark: Benchmark[Any, Any],
    metric: str,
    cell: Cell,
    captions: Sequence[Grouped],
    records: Sequence[CaptionRecord],
) -> RatioParts | None:
    """What each video adds to a metric in a group."""
    known = benchmark.metrics[metric]
    # A metric that reads the records reads those of all captions, asked about or not.
    chosen = range(len(records)) if known.reads_fields else list(cell)
    runs = [
        [_values(known, metric, cell, captions, run, place) for place in chosen]
        for run in range(n_runs_of(cell))
    ]
    own = [records[place] for place in chosen] if records else []
    if known.ratios is not None:
        return parts_of_questions(
            known.ratios, runs, [captions[place].video_id for place in chosen], own
        )
    n_values = sum(len(values) for values in runs[0])
    if not own or len(own) * n_values > _MOST_READS:
        return None
    restricted = [
        replace(record, values={**record.values, metric: of_runs})
        for record, of_runs in zip(own, map(list, zip(*runs, strict=True)), strict=True)
    ]
    return _of_contributions(benchmark, metric, [restricted])


def _values(
    known: Metric, metric: str, cell: Cell, captions: Sequence[Grouped], run: int, place: int
) -> list[object]:
    """What a metric reads of a caption's questions in a group."""
    runs = cell.get(place)
    values: list[object] = (
        [] if runs is None else values_in(captions[place], metric, known.n_values, run, runs[run])
    )
    return values


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
