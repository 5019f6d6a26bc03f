"""Metrics of AutoDQ over the judgements of a clip's events, for benchmarks that share them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import nan
from typing import Any, get_args

from lmms_eval_captions.judges.protocols.events import EventJudgement, Relation, Side
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric, Videos
from lmms_eval_captions.lmms_eval_tasks.ratios import Parts, of_sums
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.autodq import (
    OTHER,
    clip_share,
    f1_of,
    mean_over_sources,
    weighted_shares,
)


def event_metrics(name: str, kind: str = "events") -> Mapping[str, Metric]:
    """Return F1, recall and precision of one kind of events.

    Clips are averaged within the record's field ``source``, and sources with equal weight.

    Args:
        name: Prefix of the metrics' names.
        kind: Kind of the judgements that count.
    """
    reference, caption = (_values(kind, side) for side in get_args(Side))
    of_side = partial(
        Metric,
        score=lambda videos, records: mean_over_sources(*_by_source(videos, records)),
        ratios=lambda videos, records: [[pair] for pair in _weighted(videos, records)],
        labels=(*get_args(Relation), OTHER),
        reads_fields=True,
    )
    return {
        f"{name}_f1": Metric(
            score=_f1,
            ratios=_f1_ratios,
            values=lambda judgement: (*reference(judgement), *caption(judgement)),
            n_values=2,
            field=f"{kind}_f1",
            reads_fields=True,
        ),
        f"{name}_recall": of_side(values=reference, field=f"reference_{kind}"),
        f"{name}_precision": of_side(values=caption, field=f"caption_{kind}"),
    }


def _values(kind: str, side: Side) -> Callable[[EventJudgement], Sequence[object]]:
    return lambda judgement: (
        judgement.verdict if (judgement.kind, judgement.side) == (kind, side) else OTHER,
    )


def _f1(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    recall, precision = (mean_over_sources(*_by_source(side, records)) for side in _sides(videos))
    return f1_of(precision, recall)


def _f1_ratios(videos: Videos, records: Sequence[CaptionRecord]) -> Sequence[Parts]:
    sides = (_weighted(side, records) for side in _sides(videos))
    rows = [(*recall, *precision) for recall, precision in zip(*sides, strict=True)]
    return of_sums(_f1_of_sums)([[row] if any(row) else [None] for row in rows], records)


def _f1_of_sums(sums: Sequence[float]) -> float:
    recalled, n_recall, precise, n_precision = sums
    if not n_recall or not n_precision:
        return nan
    return f1_of(precise / n_precision, recalled / n_recall)


def _sides(videos: Videos) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """Return the values for recall and those for precision."""
    return [video[::2] for video in videos], [video[1::2] for video in videos]


def _weighted(videos: Videos, records: Sequence[CaptionRecord]) -> list[tuple[float, float]]:
    return weighted_shares(*_by_source(videos, records))


def _by_source(
    videos: Videos, records: Sequence[CaptionRecord]
) -> tuple[list[float | None], list[str]]:
    """Return each clip's share of entailed events and its source."""
    sources = [str(record.fields.get("source", "")) for record in records]
    return [clip_share(video) for video in videos], sources
