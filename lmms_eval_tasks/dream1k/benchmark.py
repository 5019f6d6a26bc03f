"""DREAM-1K: its task, metrics and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any, Final, get_args

from lmms_eval_captions.judges.protocols.events import (
    EventJudgement,
    Reference,
    Relation,
    Side,
    judge_events,
    silent_events,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Task, Videos
from lmms_eval_captions.lmms_eval_tasks.dream1k.data import FILE, SOURCE, SOURCES, read_clips
from lmms_eval_captions.lmms_eval_tasks.ratios import Parts, of_sums
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.autodq import (
    OTHER,
    clip_share,
    f1_of,
    mean_over_sources,
    weighted_shares,
)

EVENT_BUCKETS: Final = ("<=3", "4-5", "6-7", ">=8")
COUNT_BUCKETS: Final = ("<=1", "2", "3", ">=4")


def _values(side: Side) -> Callable[[EventJudgement], Sequence[object]]:
    return lambda judgement: (judgement.verdict if judgement.side == side else OTHER,)


def _both_values(judgement: EventJudgement) -> Sequence[object]:
    """Return the judgement's value for recall and for precision."""
    return tuple(
        judgement.verdict if judgement.side == side else OTHER for side in ("reference", "caption")
    )


def _sources(records: Sequence[CaptionRecord]) -> list[str]:
    return [str(record.fields.get("source", "")) for record in records]


def _shares(videos: Videos) -> list[float | None]:
    return [clip_share(video) for video in videos]


def _mean(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    return mean_over_sources(_shares(videos), _sources(records))


def _mean_ratios(videos: Videos, records: Sequence[CaptionRecord]) -> list[Parts]:
    return [[pair] for pair in weighted_shares(_shares(videos), _sources(records))]


def _sides(videos: Videos) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """Return the values for recall and those for precision."""
    return [video[::2] for video in videos], [video[1::2] for video in videos]


def _f1(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    recall, precision = (_mean(side, records) for side in _sides(videos))
    return f1_of(precision, recall)


def _f1_ratios(videos: Videos, records: Sequence[CaptionRecord]) -> Sequence[Parts]:
    recall, precision = (
        weighted_shares(_shares(side), _sources(records)) for side in _sides(videos)
    )
    rows = [
        (*of_recall, *of_precision)
        for of_recall, of_precision in zip(recall, precision, strict=True)
    ]
    return of_sums(_f1_of_sums)([[row] if any(row) else [None] for row in rows], records)


def _f1_of_sums(sums: Sequence[float]) -> float:
    recalled, n_recall, precise, n_precision = sums
    if not n_recall or not n_precision:
        return nan
    return f1_of(precise / n_precision, recalled / n_recall)


def _metric(side: Side) -> Metric:
    return Metric(
        score=_mean,
        ratios=_mean_ratios,
        values=_values(side),
        labels=(*get_args(Relation), OTHER),
        field=f"{side}_events",
        reads_fields=True,
    )


def bucket(n: int, largest: Sequence[int], names: Sequence[str]) -> str:
    """Return the name of the first bucket whose largest number is not below ``n``.

    >>> bucket(6, (3, 5, 7), EVENT_BUCKETS), bucket(9, (3, 5, 7), EVENT_BUCKETS)
    ('6-7', '>=8')
    """
    return next((name for edge, name in zip(largest, names, strict=False) if n <= edge), names[-1])


class Dream1k(Benchmark[Reference, EventJudgement]):
    """Events of captions, and of references, of clips in five sources."""

    name = "dream1k"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = FILE
    name_fields = ("video",)
    tasks = {
        "dream1k": Task(
            name="dream1k",
            caption_prompt="dream1k_caption.caption",
            judge_prompts=("events_extract", "events_relation"),
            extras={"prompts": "ours"},
            caption_chars=900,
        )
    }
    metrics = {
        "dream_f1": Metric(
            score=_f1, ratios=_f1_ratios, values=_both_values, n_values=2, reads_fields=True
        ),
        "dream_recall": _metric("reference"),
        "dream_precision": _metric("caption"),
    }
    headline = "dream_f1"
    headline_means = "% harmonic mean of recall and precision of events"
    sections = {
        "sources": SOURCES,
        "events": EVENT_BUCKETS,
        "shots": COUNT_BUCKETS,
        "subjects": COUNT_BUCKETS,
    }
    counts_ahead = False
    ask = staticmethod(judge_events)
    silent = staticmethod(silent_events)
    output_tokens = {"events_extract": 90, "events_relation": 50}

    def read(self, settings: DataSettings, _task: Task) -> list[dict[str, object]]:
        """Return the clips of the official file."""
        return read_clips(settings)

    def questions(self, doc: Doc) -> list[Reference]:
        """Return the reference with its events as the one question."""
        return [Reference(tuple(doc["events"]), doc["reference"])]

    def question_text(self, _question: Reference) -> str:
        """Return an empty text: there is one question per clip."""
        return ""

    def groups(
        self, doc: Doc, _question: Reference, _judgement: EventJudgement | None
    ) -> dict[str, str]:
        """Return source and buckets of the clip."""
        return {
            "sources": doc["source"],
            "events": bucket(len(doc["events"]), (3, 5, 7), EVENT_BUCKETS),
            "shots": bucket(doc["n_shots"], (1, 2, 3), COUNT_BUCKETS),
            "subjects": bucket(doc["n_subjects"], (1, 2, 3), COUNT_BUCKETS),
        }

    def fields(self, doc: Doc, _caption: str | None) -> dict[str, object]:
        """Return the source, within which clips are averaged."""
        return {"source": doc["source"]}


DREAM1K: Final = Dream1k()
