"""Captions that several judges judged, and what each said of the same questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lmms_eval_captions.analysis.agree.judged import Judge, Panel
from lmms_eval_captions.analysis.verdicts.alignment import Counts, align_tasks
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

NOT_JUDGED: Final = "captions that not all of the judges have"
DIFFERENT: Final = "captions that differ between the judges"
EMPTY: Final = "captions without a word, which no judge is asked about"
QUESTIONS: Final = "questions that not all of the judges were asked"
UNSCORED: Final = "questions that one of the judges left unscored"
OTHER_ANSWERS: Final = "captions kept whose questions have other gold answers: do not trust these"


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
    """What was left out, or must be known, to the number of it."""


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
        for of_judges in _tasks(panel, judges, captioner):
            same, others = _same_captions(of_judges)
            aligned, counts = align_tasks(same)
            left_out.update(others)
            left_out.update(_left_out(counts))
            captions.extend(
                SharedCaption(captioner, records) for records in zip(*aligned, strict=True)
            )
    return SharedCaptions(captions, +left_out)


def _tasks(panel: Panel, judges: Sequence[Judge], captioner: int) -> Iterator[list[TaskVerdicts]]:
    """What the judges said of a captioner in each task that all of them have."""
    tasks = [judge.runs[captioner].tasks for judge in judges]
    for name in panel.tasks:
        if all(name in of_judge for of_judge in tasks):
            yield [of_judge[name] for of_judge in tasks]


def _same_captions(
    of_judges: Sequence[TaskVerdicts],
) -> tuple[list[TaskVerdicts], Counter[str]]:
    """The captions that judges of a task can be compared on."""
    by_video = [{caption.video_id: caption for caption in task.captions} for task in of_judges]
    left_out: Counter[str] = Counter()
    kept = []
    for video in dict.fromkeys(video for captions in by_video for video in captions):
        reason = _why_not([captions.get(video) for captions in by_video])
        if reason:
            left_out[reason] += 1
        else:
            kept.append(video)
    same = [
        replace(task, captions=[captions[video] for video in kept])
        for task, captions in zip(of_judges, by_video, strict=True)
    ]
    return same, left_out


def _why_not(records: Sequence[CaptionRecord | None]) -> str:
    """Why judges of a caption cannot be compared, empty where they can."""
    digests = {None if record is None else record.caption_digest for record in records}
    if None in digests:
        return NOT_JUDGED
    if len(digests) > 1:
        return DIFFERENT
    return EMPTY if any(record is not None and _is_empty(record) for record in records) else ""


def _is_empty(record: CaptionRecord) -> bool:
    return bool(record.n_empty or record.n_dropped or record.no_caption is not None)


def _left_out(counts: Counts) -> dict[str, int]:
    return {
        NOT_JUDGED: counts.n_other_captions,
        QUESTIONS: counts.n_other_questions,
        UNSCORED: counts.n_unscored,
        OTHER_ANSWERS: counts.n_other_answers,
    }
