"""What a processor makes of clips, found out on made-up ones before the model is loaded.

Processors say nowhere in one form how many tokens a frame becomes, whether a size is a frame's or
the whole clip's, or whether clips of different lengths may share a call. All of it shows in what
they return for a few frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, DocVisuals, asked_about
from lmms_eval_captions.model_wrappers.hf.frame_size import (
    FrameSize,
    SizeUnit,
    counts_area,
    frames_per_group,
    own_area,
    patch_sides,
    soft_token_pixels,
)
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, inputs_of
from lmms_eval_captions.model_wrappers.hf.merging import lies_in_a_row
from lmms_eval_captions.model_wrappers.video.clip import make_clip
from lmms_eval_captions.model_wrappers.video.resizing import shrunk

if TYPE_CHECKING:
    from transformers import BatchFeature

    from lmms_eval_captions.model_wrappers.hf.prompts import Processor
    from lmms_eval_captions.model_wrappers.video.clip import Clip

PROMPT: Final = "Describe."
_SIDES: Final = 4
"""Tokens along each side of a made-up frame."""
_SMALL: Final = (128, 96)
"""Width and height of a made-up frame, where a token's size is not known."""
_WIDE: Final = (1920 * 4, 1080 * 4)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a processor makes of a clip."""

    unit: SizeUnit
    group: int
    """Frames that become tokens together."""
    token_pixels: int
    """Pixels of a frame that one token stands for, where the processor takes a size; else 0."""
    own_tokens: int
    """Most tokens of such a group by the checkpoint, of a clip where the unit is one; else 0."""
    n_text: int
    """Tokens of a prompt of one word with no frame, the template's own included."""
    n_beside: int
    """Tokens of a group of frames that are no picture, such as time stamps."""
    is_row: bool
    """Whether clips of different lengths may stand in one batch."""


def measure(processor: Processor, showing: Showing) -> Measured:
    """How a processor counts, by two clips of few small frames.

    Raises:
        ValueError: If the processor refuses them, or TypeError, RuntimeError, KeyError.
    """
    videos: Any = getattr(processor, "video_processor", None)
    part: Any = processor.image_processor if videos is None else videos  # type: ignore[attr-defined] # every multimodal processor has one
    group = frames_per_group(videos) if videos is not None else 1
    unit = _unit(processor, part, showing)
    size, token_pixels = _SMALL, 0
    if unit in {"frame", "clip"}:
        side = patch_sides(part)
        size, token_pixels = (_SIDES * side, _SIDES * side), side**2
        showing = replace(
            showing, frame_size=FrameSize(unit, token_pixels * _SIDES**2, is_asked=True)
        )
    elif unit == "soft tokens":
        size, token_pixels = (max(_SMALL), max(_SMALL)), soft_token_pixels(part)
    short, long = _noise(group, size), _noise(2 * group, size)
    alone = [inputs_of(processor, [job_about(clip)], showing) for clip in (short, long)]
    n_short, n_long = (n_tokens(inputs) for inputs in alone)
    n_group = n_long - n_short
    measured = Measured(
        unit=unit,
        group=group,
        token_pixels=token_pixels,
        own_tokens=0,
        n_text=n_short - n_group,
        n_beside=n_group - _n_seen(part, unit),
        is_row=_is_row(processor, [short, long], alone, showing),
    )
    if not token_pixels:
        return measured
    own = part.max_soft_tokens if unit == "soft tokens" else own_area(part)
    return replace(measured, own_tokens=own_tokens(measured, int(own)))


def own_tokens(measured: Measured, size: int) -> int:
    """Most tokens of a group of frames, of a clip where the unit is one.

    Args:
        measured: How the processor counts.
        size: In the processor's own unit.
    """
    if measured.unit == "soft tokens":
        return size
    per_clip = measured.group if measured.unit == "clip" else 1
    return size // measured.token_pixels // per_clip


def tokens_of_group(
    processor: Processor, showing: Showing, measured: Measured, pixels: int
) -> tuple[int, int]:
    """What a wide frame of so many pixels becomes, where the processor has its own way.

    Returns:
        Tokens of a group of frames, and pixels of one frame after the processor's resizing.
    """
    clip = _noise(measured.group, shrunk(*_WIDE, pixels))
    inputs = inputs_of(processor, [job_about(clip)], showing)
    tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
    seen = (tensor.numel() for tensor in tensors if tensor.is_floating_point())
    n_pixels = max(seen, default=0) // 3 // measured.group
    return n_tokens(inputs) - measured.n_text, n_pixels


def n_tokens(inputs: BatchFeature) -> int:
    """Tokens of a batch's longest text, frames included."""
    return int(inputs["input_ids"].shape[1])


def job_about(clip: Clip) -> CaptionJob:
    """A made-up clip to describe."""
    nothing = DocVisuals("measuring", "", 0, read=_nothing)
    return CaptionJob([clip], asked_about(1, PROMPT), nothing, nothing.task, 0)


def _nothing() -> Any:  # noqa: ANN401 (never called: a made-up clip is read from nowhere)
    raise NotImplementedError


def _n_seen(part: Any, unit: SizeUnit) -> int:  # noqa: ANN401 (processors have no common type)
    """Tokens of a group of made-up frames, all square."""
    if unit == "none":
        return 0
    return _SIDES**2 if unit != "soft tokens" else math.isqrt(part.max_soft_tokens) ** 2


def _unit(processor: Processor, part: object, showing: Showing) -> SizeUnit:
    if hasattr(part, "max_soft_tokens") and hasattr(part, "pooling_kernel_size"):
        return "soft tokens"
    if not counts_area(part):
        return "none"
    if getattr(processor, "video_processor", None) is None:
        return "frame"
    side, n_frames = patch_sides(part), 2 * frames_per_group(part)
    clip = _noise(n_frames, (_SIDES * side, _SIDES * side))
    # A frame's size: one that is larger yet changes nothing. A clip's: there is room for more.
    lengths = {
        n_tokens(inputs_of(processor, [job_about(clip)], replace(showing, frame_size=size)))
        for size in (
            FrameSize("frame", (_SIDES * side) ** 2),
            FrameSize("frame", (_SIDES * side) ** 2 * n_frames),
        )
    }
    return "frame" if len(lengths) == 1 else "clip"


def _is_row(
    processor: Processor, clips: list[Clip], alone: list[BatchFeature], showing: Showing
) -> bool:
    size = showing.frame_size
    if size is not None and size.unit == "clip":
        # Room enough for the longer one; neither is made larger.
        showing = replace(showing, frame_size=replace(size, pixels=2 * size.pixels))
    try:
        together = inputs_of(processor, [job_about(clip) for clip in clips], showing)
    except (ValueError, TypeError, RuntimeError):
        return False  # the processor stacks
    return lies_in_a_row(alone, together, processor.tokenizer)


def _noise(n_frames: int, size: tuple[int, int]) -> Clip:
    """Frames of which no two are alike: some models leave out what does not change."""
    width, height = size
    frames = np.random.default_rng(0).integers(0, 256, (n_frames, height, width, 3), np.uint8)
    times_s = np.arange(n_frames, dtype=np.float64)
    return make_clip(frames, times_s, fps=1.0, n_total=n_frames)
