"""Captions that several judges judged, and what each said of the same questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.commands.agree.panel import Judge, Panel
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Values

V = TypeVar("V")

NOT_JUDGED: Final = "captions that not all of the judges have"
DIFFERENT: Final = "captions that differ between the judges"
EMPTY: Final = "captions without a word, which no judge is asked about"
QUESTIONS: Final = "questions that not all of the judges were asked"


@dataclass(frozen=True, slots=True)
class SharedCaption:
    """A caption that several judges judged."""

    captioner: int
    records: tuple[CaptionRecord, ...]
    """What each judge said, of the same questions in the same order."""

    @property
    def video(self) -> str:
        """The video's id."""
        return self.records[0].video_id

    @property
    def task(self) -> str:
        """The task that asked for the caption."""
        return self.records[0].task


@dataclass(frozen=True, slots=True)
class SharedCaptions:
    """All captions that some judges judged, with what was left out."""

    captions: list[SharedCaption]
    left_out: Counter[str]
    """What was left out, to the number of it."""


def shared_captions(panel: Panel, judges: Sequence[Judge]) -> SharedCaptions:
    """The captions that all of some judges judged, which are the same word for word.

    Args:
        panel: Who judged whose captions.
        judges: Some of the panel's, at least one.
    """
    captions: list[SharedCaption] = []
    left_out: Counter[str] = Counter()
    for captioner in range(len(panel.captioners)):
        if any(captioner not in judge.runs for judge in judges):
            continue
        tasks = [judge.runs[captioner].tasks for judge in judges]
        for task in panel.tasks:
            held = [of_judge[task].captions if task in of_judge else [] for of_judge in tasks]
            by_video = [{record.video_id: record for record in records} for records in held]
            for video in dict.fromkeys(video for records in by_video for video in records):
                if any(video not in records for records in by_video):
                    left_out[NOT_JUDGED] += 1
                    continue
                records = tuple(of_judge[video] for of_judge in by_video)
                reason = _why_not(records)
                if reason:
                    left_out[reason] += 1
                    continue
                same, n_others = _same_questions(panel.benchmark, records)
                left_out[QUESTIONS] += n_others
                captions.append(SharedCaption(captioner, same))
    return SharedCaptions(captions, +left_out)


def _why_not(records: Sequence[CaptionRecord]) -> str:
    """Why judges of a caption cannot be compared, empty where they can."""
    if len({record.caption_digest for record in records}) > 1:
        return DIFFERENT
    return EMPTY if any(_is_empty(record) for record in records) else ""


def _is_empty(record: CaptionRecord) -> bool:
    return bool(record.n_empty or record.n_dropped or record.no_caption is not None)


def _same_questions(
    benchmark: Benchmark[Any, Any], records: tuple[CaptionRecord, ...]
) -> tuple[tuple[CaptionRecord, ...], int]:
    """The records of the questions that all have, and how many there are beside these."""
    asked = [_numbered(record.asked) for record in records]
    if all(questions == asked[0] for questions in asked) and asked[0]:
        return records, 0
    shared = [question for question in asked[0] if all(question in other for other in asked)]
    places = [[questions.index(question) for question in shared] for questions in asked]
    n_others = len({question for questions in asked for question in questions}) - len(shared)
    chosen = (
        _of_places(benchmark, record, own) for record, own in zip(records, places, strict=True)
    )
    return tuple(chosen), n_others


def _numbered(asked: Sequence[str]) -> list[tuple[str, int]]:
    """Each question with how often its text came before it."""
    seen: Counter[str] = Counter()
    numbered = []
    for text in asked:
        numbered.append((text, seen[text]))
        seen[text] += 1
    return numbered


def _of_places(
    benchmark: Benchmark[Any, Any], record: CaptionRecord, places: Sequence[int]
) -> CaptionRecord:
    """The record with some of its questions alone."""
    values: dict[str, Values] = {}
    for name, metric in benchmark.metrics.items():
        n = metric.n_values
        values[name] = [
            [value for place in places for value in run[place * n : (place + 1) * n]]
            for run in record.values[name]
        ]
    groups = {
        section: [_chosen(names, places) for names in runs]
        for section, runs in record.groups.items()
    }
    return replace(record, values=values, groups=groups, asked=_chosen(record.asked, places))


def _chosen(values: Sequence[V], places: Sequence[int]) -> list[V]:
    return [values[place] for place in places]
