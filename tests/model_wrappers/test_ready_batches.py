"""Batches of decoded clips, and what is left out of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import Shown, source_name
from lmms_eval_captions.model_wrappers.generation import Generation
from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
from lmms_eval_captions.model_wrappers.ready_batches import make_ready
from lmms_eval_captions.model_wrappers.video.clip import make_clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.decode_ahead import Decoded

CLIP = make_clip(np.zeros((1, 2, 2, 3), np.uint8), np.zeros(1), fps=1.0, n_total=1)
PLANNED = [
    PlannedCaption(Path(f"{number}.mp4"), "Describe.", Generation(), "task", number, (number,))
    for number in range(4)
]


def _decoded(**reasons: str) -> Decoded:
    return {asked.source: reasons.get(f"clip{asked.doc_id}", Shown([CLIP])) for asked in PLANNED}


def _sources(planned: Sequence[PlannedCaption]) -> list[str]:
    return [source_name(asked.source) for asked in planned]


def _names(jobs: Sequence[CaptionJob], _: Generation) -> list[str]:
    return [job.path.name for job in jobs]


@pytest.mark.parametrize("odd", [(), (1,), (0, 3), (0, 1, 2, 3)])
def test_what_the_model_cannot_use_is_left_out_by_name(odd: tuple[int, ...]) -> None:
    """A DataError of ``prepare`` costs its own jobs alone; the rest is prepared together."""

    def picky(jobs: Sequence[CaptionJob], generation: Generation) -> list[str]:
        if any(job.doc_id in odd for job in jobs):
            raise DataError("too odd")
        return _names(jobs, generation)

    ready = make_ready(PLANNED, _decoded(), picky)
    assert {asked.doc_id: reason for asked, reason in ready.broken} == dict.fromkeys(odd, "too odd")
    kept = [asked for asked in PLANNED if asked.doc_id not in odd]
    assert list(ready.planned) == kept
    assert (ready.batch is None) == (not kept)
    if ready.batch:
        assert ready.batch.prepared == _sources(kept)
        assert [job.doc_id for job in ready.batch.jobs] == [asked.doc_id for asked in kept]


def test_unreadable_clips_never_reach_the_model() -> None:
    """They are left out with the reader's words, and ``prepare`` sees the others."""
    ready = make_ready(PLANNED, _decoded(clip2="cut off"), _names)
    assert ready.broken == [(PLANNED[2], "cut off")]
    assert ready.batch is not None
    assert ready.batch.prepared == ["0.mp4", "1.mp4", "3.mp4"]
    words = {f"clip{number}": "cut off" for number in range(4)}
    nothing = make_ready(PLANNED, _decoded(**words), _names)
    assert (nothing.batch, len(nothing.broken)) == (None, 4)
