"""Batches from decoded clips, prepared; what of them cannot be captioned is left out by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import Batch, CaptionJob, Shown, asked_about

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import Caption
    from lmms_eval_captions.model_wrappers.decode_ahead import Decoded
    from lmms_eval_captions.model_wrappers.generation import Generation
    from lmms_eval_captions.model_wrappers.ordering import PlannedCaption

    Prepare = Callable[[Sequence[CaptionJob], Generation], object]
    Take = Callable[[PlannedCaption, Shown], tuple[PlannedCaption, Caption | None]]


@dataclass(frozen=True, slots=True, eq=False)
class ReadyBatch:
    """A batch whose clips are decoded, and what of it cannot be captioned."""

    planned: Sequence[PlannedCaption]
    """One per job of the batch."""
    batch: Batch | None
    """``None`` where nothing of it can be captioned."""
    broken: Sequence[tuple[PlannedCaption, str]]
    """What cannot, and why."""
    kept: Sequence[tuple[PlannedCaption, Caption]] = ()
    """What an earlier run has captioned."""


def make_ready(
    planned: Sequence[PlannedCaption],
    decoded: Decoded,
    prepare: Prepare,
    take: Take = lambda asked, _shown: (asked, None),
) -> ReadyBatch:
    """A batch of the clips that could be read, prepared.

    Args:
        planned: Captions of equal settings, at least one.
        decoded: What their sources show, or why one cannot be read.
        prepare: The captioner's own. Where it raises a ``DataError``, jobs are tried one by one,
            and the culprits are left out.
        take: Looks for a caption of what is shown that an earlier run has written.
    """
    jobs: list[tuple[PlannedCaption, CaptionJob]] = []
    broken: list[tuple[PlannedCaption, str]] = []
    kept: list[tuple[PlannedCaption, Caption]] = []
    for wanted in planned:
        shown = decoded[wanted.source]
        if isinstance(shown, str):
            broken.append((wanted, shown))
            continue
        asked, caption = take(wanted, shown)
        if caption is None:
            jobs.append((asked, job_of(asked, shown)))
        else:
            kept.append((asked, caption))
    return replace(_usable(jobs, broken, planned[0].generation, prepare), kept=kept)


def job_of(asked: PlannedCaption, shown: Shown) -> CaptionJob:
    """One caption to write about a source that was read."""
    messages = asked.messages or shown.messages or asked_about(len(shown.clips), asked.prompt)
    return CaptionJob(
        shown.clips, messages, asked.source, asked.task, asked.doc_id, draw=asked.draw
    )


def _usable(
    jobs: Sequence[tuple[PlannedCaption, CaptionJob]],
    broken: Sequence[tuple[PlannedCaption, str]],
    generation: Generation,
    prepare: Prepare,
) -> ReadyBatch:
    """A batch of the jobs that can be prepared."""
    try:
        return _ready(jobs, broken, generation, prepare)
    except DataError as error:
        if len(jobs) == 1:
            return ReadyBatch((), None, [*broken, (jobs[0][0], str(error))])
    usable, unusable = _one_by_one(jobs, generation, prepare)
    return _ready(usable, [*broken, *unusable], generation, prepare)


def _ready(
    jobs: Sequence[tuple[PlannedCaption, CaptionJob]],
    broken: Sequence[tuple[PlannedCaption, str]],
    generation: Generation,
    prepare: Prepare,
) -> ReadyBatch:
    if not jobs:
        return ReadyBatch((), None, broken)
    chosen = [job for _, job in jobs]
    batch = Batch(chosen, generation, prepare(chosen, generation))
    return ReadyBatch([asked for asked, _ in jobs], batch, broken)


def _one_by_one(
    jobs: Sequence[tuple[PlannedCaption, CaptionJob]], generation: Generation, prepare: Prepare
) -> tuple[list[tuple[PlannedCaption, CaptionJob]], list[tuple[PlannedCaption, str]]]:
    """The jobs that can be prepared, and why the others cannot."""
    usable, unusable = [], []
    for asked, job in jobs:
        try:
            prepare([job], generation)
        except DataError as error:
            unusable.append((asked, str(error)))
        else:
            usable.append((asked, job))
    return usable, unusable
