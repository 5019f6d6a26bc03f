"""Inputs of a transformers model from frames and prompts, by its own processor."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.hf.prompts import prompt_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import BatchFeature

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.hf.prompts import Processor, PromptFormat
    from lmms_eval_captions.model_wrappers.video.clip import Clip


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Jobs of a batch that go through the model together."""

    jobs: Sequence[int]
    """Positions in the batch."""
    inputs: BatchFeature


def make_parts(
    processor: Processor,
    jobs: Sequence[CaptionJob],
    *,
    system_prompt: str | None = None,
    frame_pixels: int | None = None,
    form: PromptFormat | None = None,
) -> list[Part]:
    """The inputs of a batch, in as few parts as the processor allows.

    Most processors stack clips, which need equally many frames; those that lay all patches in one
    row take any.

    Raises:
        DataError: If the processor refuses even clips of equal length.
    """

    def part(indices: Sequence[int]) -> Part:
        chosen = [jobs[index] for index in indices]
        return Part(indices, _inputs(processor, chosen, system_prompt, frame_pixels, form))

    by_length: dict[int, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        by_length[len(job.clip.frames)].append(index)
    if len(by_length) > 1:
        try:
            return [part(range(len(jobs)))]
        except (ValueError, TypeError, RuntimeError):
            pass  # the processor stacks
    try:
        return [part(indices) for indices in by_length.values()]
    except (ValueError, RuntimeError) as error:
        sizes = sorted({job.clip.frames.shape[:3] for job in jobs})
        raise DataError(
            f"the model's processor refuses clips of (frames, height, width) {sizes}: {error}"
        ) from error


def _inputs(
    processor: Processor,
    jobs: Sequence[CaptionJob],
    system_prompt: str | None,
    frame_pixels: int | None,
    form: PromptFormat | None,
) -> BatchFeature:
    video_processor: Any = getattr(processor, "video_processor", None)
    sees_videos = video_processor is not None
    texts = [
        prompt_text(processor, job, system_prompt, sees_videos=sees_videos, form=form)
        for job in jobs
    ]
    visuals: dict[str, object]
    if sees_videos:
        visuals = {
            # Channels first: a clip one or three pixels wide leaves no room for guesses.
            "videos": [torch.from_numpy(job.clip.frames).permute(0, 3, 1, 2) for job in jobs],
            "video_metadata": [_metadata(job.clip) for job in jobs],
            "do_sample_frames": False,
        }
        if frame_pixels is not None:
            shortest = video_processor.size["shortest_edge"]
            longest = max(frame_pixels, 1)
            visuals["size"] = {"shortest_edge": min(shortest, longest), "longest_edge": longest}
    else:
        visuals = {"images": [[Image.fromarray(f) for f in job.clip.frames] for job in jobs]}
    start = getattr(processor.tokenizer, "bos_token", None)
    return processor(
        text=texts,
        padding=True,
        padding_side=getattr(processor.tokenizer, "padding_side", "left"),
        return_tensors="pt",
        # The template has written the start token already.
        add_special_tokens=not (start and texts[0].startswith(start)),
        **visuals,
    )


def _metadata(clip: Clip) -> dict[str, object]:
    """When the frames are shown, for the models that are told.

    Models work out times as position / rate; positions that give the file's own times are right
    for a variable rate too.
    """
    fps = clip.fps or 1.0
    positions = (
        np.round(clip.timestamps_s * fps).astype(int) if clip.fps else range(len(clip.frames))
    )
    return {
        "total_num_frames": clip.n_total,
        "fps": fps,
        "duration": clip.duration_s,
        "frames_indices": [int(position) for position in positions],
        "height": clip.frames.shape[1],
        "width": clip.frames.shape[2],
        "video_backend": "pyav",
    }
