"""Whether the prompts of a clip share what the model makes of it, tried on the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from loguru import logger

from lmms_eval_captions.model_wrappers.hf.inputs import Part, Showing, make_parts, text_of
from lmms_eval_captions.model_wrappers.hf.shared_generation import generate_shared, why_not
from lmms_eval_captions.model_wrappers.hf.shared_prefix import (
    ProcessorOfThread,
    SharedPart,
    share,
    visual_ids,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.generation import Generation

    AnyPart = Part | SharedPart

MOST_TOGETHER: Final = 8
"""Prompts of one clip that are asked at once; VDC has five."""


class PromptSharing:
    """Inputs of jobs, shared where several are about one clip and the model allows it.

    Args:
        model: What generates.
        processor: Its own.
        showing: How it is called.
        batch_size: Most jobs that go through the model at once where nothing is shared.
        is_wanted: Whether to try.
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 (models have no common type with ``generate``)
        processor: Any,  # noqa: ANN401 (nor have processors)
        showing: Showing,
        *,
        batch_size: int,
        is_wanted: bool,
    ) -> None:
        self._model = model
        self._processor = processor
        self._processors = ProcessorOfThread(processor)
        self._showing = showing
        self._batch_size = batch_size
        self._most_rows = max(batch_size, MOST_TOGETHER)
        self._visual_ids = visual_ids(model.config)
        self.is_possible: bool | None = None if is_wanted else False
        """``None`` until it was tried."""
        self.reason = "" if is_wanted else "share_prefix=false"
        """Why it is not possible."""

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[AnyPart]:
        """The processor's work; in several threads at once."""
        processor = self._processors.own
        shared: Sequence[AnyPart] | None = None
        if self.is_possible is not False and generation.num_beams == 1:
            shared = share(
                jobs,
                lambda job: text_of(processor, job, self._showing),
                lambda chosen: make_parts(processor, chosen, self._showing),
                tokenizer=processor.tokenizer,
                visual_ids=self._visual_ids,
            )
        return list(shared or self._apart(processor, jobs))

    def usable(
        self, parts: Sequence[AnyPart], jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> Sequence[AnyPart]:
        """What was prepared, or the same apart where the model cannot share."""
        shared = [part for part in parts if isinstance(part, SharedPart)]
        if not shared:
            return parts
        if self.is_possible is None:
            self._try(shared[0], jobs, settings)
        return parts if self.is_possible else self._apart(self._processor, jobs)

    def alone(self, jobs: Sequence[CaptionJob], index: int) -> Part:
        """The whole inputs of one of the jobs."""
        [part] = make_parts(self._processor, [jobs[index]], self._showing)
        return Part([index], part.inputs)

    def new_tokens(self, part: SharedPart, settings: GenerationConfig) -> list[torch.Tensor]:
        """What is written for each job; fewer at once from the time that they filled the memory."""
        try:
            return generate_shared(self._model, part, settings, most_rows=self._most_rows)
        except torch.OutOfMemoryError:
            if self._most_rows <= self._batch_size:
                raise
        self._most_rows = self._batch_size
        torch.cuda.empty_cache()
        return generate_shared(self._model, part, settings, most_rows=self._most_rows)

    def _apart(self, processor: Any, jobs: Sequence[CaptionJob]) -> list[AnyPart]:  # noqa: ANN401
        """Every job with its clip, at most ``batch_size`` together."""
        return [
            Part([at + index for index in part.jobs], part.inputs)
            for at in range(0, len(jobs), self._batch_size)
            for part in make_parts(processor, jobs[at : at + self._batch_size], self._showing)
        ]

    def _try(
        self, part: SharedPart, jobs: Sequence[CaptionJob], settings: GenerationConfig
    ) -> None:
        tried = part.shortest_and_longest()
        wholes = [self.alone(jobs, index).inputs for index in tried.jobs]
        try:
            reason = why_not(self._model, tried, wholes, settings)
        except torch.OutOfMemoryError:
            if len(tried.prefixes["input_ids"]) > 1:
                raise  # of fewer clips it may be possible
            reason = "there is no memory to try it: take a smaller max_num_frames or frame_pixels"
        if reason is None:
            self.is_possible = True
        else:
            self.give_up(reason)

    def give_up(self, reason: str) -> None:
        """Ask each prompt apart from now on, and say why."""
        self.is_possible, self.reason = False, reason
        logger.info(
            "each prompt of a clip is asked apart: the model cannot share what it makes of the "
            "clip ({})",
            reason,
        )
