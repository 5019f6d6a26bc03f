"""DREAM-1K as one value: its task, metrics and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Metric, Score, Task, Videos
from lmms_eval_captions.lmms_eval_tasks.dream1k.data import FILE, SOURCE, SOURCES, read_clips
from lmms_eval_captions.lmms_eval_tasks.ratios import Parts, Ratios, of_sums
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


def _documents(settings: DataSettings, _task: Task) -> list[dict[str, object]]:
    return read_clips(settings)


def _sources(records: Sequence[CaptionRecord]) -> list[str]:
    return [str(record.fields.get("source", "")) for record in records]


def _events_of(side: Side) -> Callable[[EventJudgement], Sequence[object]]:
    return lambda judgement: (judgement.verdict if judgement.side == side else OTHER,)


def _shares(videos: Videos) -> list[float | None]:
    return [clip_share(video) for video in videos]


def _score(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    return mean_over_sources(_shares(videos), _sources(records))


def _ratios(videos: Videos, records: Sequence[CaptionRecord]) -> list[Parts]:
    return [[pair] for pair in weighted_shares(_shares(videos), _sources(records))]


def _metric(side: Side) -> Metric:
    return Metric(
        score=_score,
        ratios=_ratios,
        values=_events_of(side),
        labels=(*get_args(Relation), OTHER),
        field=f"{side}_events",
        reads_fields=True,
    )


def _both(judgement: EventJudgement) -> Sequence[object]:
    """Return the judgement's value for recall and for precision."""
    return (*_events_of("reference")(judgement), *_events_of("caption")(judgement))


def _split(videos: Videos) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    return [video[::2] for video in videos], [video[1::2] for video in videos]


def _f1(videos: Videos, records: Sequence[CaptionRecord]) -> float:
    recall, precision = (_score(side, records) for side in _split(videos))
    return f1_of(precision, recall)


def _f1_ratios(videos: Videos, records: Sequence[CaptionRecord]) -> Sequence[Parts]:
    sides = [weighted_shares(_shares(side), _sources(records)) for side in _split(videos)]
    rows = [(*recall, *precision) for recall, precision in zip(*sides, strict=True)]
    return of_sums(_f1_of_sums)([[row if any(row) else None] for row in rows], records)


def _f1_of_sums(sums: Sequence[float]) -> float:
    recalled, n_recall, precise, n_precision = sums
    if not n_recall or not n_precision:
        return float("nan")
    return f1_of(precise / n_precision, recalled / n_recall)


_F1_SCORE: Final[Score] = _f1
_F1_RATIOS: Final[Ratios] = _f1_ratios


def bucket(n: int, edges: Sequence[int], names: Sequence[str]) -> str:
    """Return the name of the first bucket whose largest number is not below ``n``.

    >>> bucket(6, (3, 5, 7), EVENT_BUCKETS), bucket(9, (3, 5, 7), EVENT_BUCKETS)
    ('6-7', '>=8')
    """
    return next((name for edge, name in zip(edges, names, strict=False) if n <= edge), names[-1])


def _groups(doc: Doc, _question: Reference, _judgement: EventJudgement | None) -> dict[str, str]:
    return {
        "sources": doc["source"],
        "events": bucket(len(doc["events"]), (3, 5, 7), EVENT_BUCKETS),
        "shots": bucket(doc["n_shots"], (1, 2, 3), COUNT_BUCKETS),
        "subjects": bucket(doc["n_subjects"], (1, 2, 3), COUNT_BUCKETS),
    }


DREAM1K: Final[Benchmark[Reference, EventJudgement]] = Benchmark(
    name="dream1k",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=FILE,
    tasks={
        "dream1k": Task(
            name="dream1k",
            caption_prompt="dream1k_caption.caption",
            judge_prompts=("events_extract", "events_relation"),
            extras={"prompts": "ours"},
            caption_chars=900,
        )
    },
    read=_documents,
    name_fields=("video",),
    questions=lambda doc: [Reference(tuple(doc["events"]), doc["reference"])],
    question_text=lambda question: question.text,
    ask=judge_events,
    counts_ahead=False,
    silent=silent_events,
    metrics={
        "dream_f1": Metric(
            score=_F1_SCORE, ratios=_F1_RATIOS, values=_both, n_values=2, reads_fields=True
        ),
        "dream_recall": _metric("reference"),
        "dream_precision": _metric("caption"),
    },
    headline="dream_f1",
    headline_means="% harmonic mean of recall and precision of events",
    right=frozenset({"entailment"}),
    missed=frozenset({"neutral"}),
    wrong=frozenset({"contradiction"}),
    groups=_groups,
    sections={
        "sources": SOURCES,
        "events": EVENT_BUCKETS,
        "shots": COUNT_BUCKETS,
        "subjects": COUNT_BUCKETS,
    },
    fields=lambda doc, _caption: {"source": doc["source"]},
    output_tokens={"events_extract": 90, "events_relation": 50},
)
