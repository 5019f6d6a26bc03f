"""How many frames of a clip a model is shown, and how large, so that it holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, DocVisuals, asked_about
from lmms_eval_captions.model_wrappers.generation import DEFAULT_MAX_NEW_TOKENS
from lmms_eval_captions.model_wrappers.hf.frame_size import frame_size, frames_per_group
from lmms_eval_captions.model_wrappers.hf.inputs import inputs_of
from lmms_eval_captions.model_wrappers.hf.processor_arguments import names_a_size
from lmms_eval_captions.model_wrappers.video.clip import make_clip
from lmms_eval_captions.model_wrappers.video.pictures import shrunk

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.hf.frame_size import FrameSize
    from lmms_eval_captions.model_wrappers.hf.inputs import Showing
    from lmms_eval_captions.model_wrappers.hf.prompts import Processor
    from lmms_eval_captions.model_wrappers.video.clip import Clip

DEFAULT_FRAMES: Final = 32
"""Source: CapQuiz, section 4.2."""
CLIP_TOKENS: Final = 16_384
"""Most tokens of a clip unless the user says otherwise: what an accelerator holds, too."""
PROMPT_TOKENS: Final = 256
"""Room for the prompts of the five benchmarks; the longest is VDC's, of some 60 words."""
_ROUNDING: Final = 1.2
"""Processors round sides up to whole patches."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a model is shown of a clip, and how many tokens that is."""

    n_frames: int
    """Most frames."""
    frame_size: FrameSize | None = None
    """What the processor is told; ``None``: nothing, its own size is right."""
    max_pixels: int | None = None
    """Area to which frames are shrunk before the processor sees them; ``None``: it does it."""
    n_group: int = 0
    """Tokens of a group of frames at most, 0 where that could not be found out."""
    group: int = 1
    """Frames of a group."""
    n_text: int = 0
    """Tokens of the chat template."""
    positions: int | None = None
    """Tokens that the model holds, prompt and caption included; ``None``: no limit is known."""
    are_frames_given: bool = False
    """Whether the number of frames is the user's."""

    @property
    def n_clip(self) -> int:
        """Tokens of a clip at most."""
        return self.n_group * -(-self.n_frames // self.group)

    def __str__(self) -> str:
        """What is said in the log.

        >>> print(Budget(8, n_group=577, n_text=20, positions=8192))
        up to 8 frames of a clip, as up to 4,616 of the model's 8,192 positions
        """
        if not self.n_group:
            return f"up to {self.n_frames} frames of a clip; how many tokens they are is not known"
        of = f" of the model's {self.positions:,} positions" if self.positions else " tokens"
        return f"up to {self.n_frames} frames of a clip, as up to {self.n_clip:,}{of}"

    def check(self, n_prompt: int, max_new_tokens: int) -> int:
        """How many tokens a caption may have.

        Args:
            n_prompt: Tokens of the task's longest prompt.
            max_new_tokens: As the task asks.

        Returns:
            ``max_new_tokens``, or fewer where the model holds no more and the frames are our own
            choice; at least 1.

        Raises:
            SettingsError: If the user's frames leave no room for as many.
        """
        if self.positions is None or not self.n_group:
            return max_new_tokens
        left = self.positions - self.n_clip - self.n_text - n_prompt
        if left >= max_new_tokens or (left > 0 and not self.are_frames_given):
            return min(left, max_new_tokens)
        beside = self.n_text + n_prompt + max_new_tokens
        fitting = max(self.positions - beside, 0) // self.n_group * self.group
        per = f"{self.group} frames" if self.group > 1 else "frame"
        help_ = f"max_num_frames={fitting}" if fitting else "another model"
        raise SettingsError(
            f"{self.n_frames} frames of {self.n_group:,} tokens per {per}, a prompt of "
            f"{self.n_text + n_prompt:,} and up to {max_new_tokens:,} new ones are "
            f"{self.n_clip + beside:,} tokens, the model has {self.positions:,} positions: take "
            f"{help_}, a smaller frame_pixels where the model's processor takes it, or fewer new "
            "tokens (--gen_kwargs max_new_tokens=...); without max_num_frames as many are taken "
            "as fit"
        )

    def check_length(self, n_read: int) -> None:
        """Stop at inputs that leave no room for a single word.

        Raises:
            DataError: If there are more of them than positions.
        """
        if self.positions is not None and n_read >= self.positions:
            raise DataError(
                f"what is shown and asked is {n_read:,} tokens, the model has "
                f"{self.positions:,} positions: take a smaller max_num_frames or frame_pixels"
            )

    def n_new(self, n_read: int, max_new_tokens: int) -> int:
        """Tokens that a caption may have: no more than the model has positions for.

        Args:
            n_read: Tokens of its inputs.
            max_new_tokens: As the task asks.
        """
        if self.positions is None:
            return max_new_tokens
        return max(min(max_new_tokens, self.positions - n_read), 1)


def fit(
    processor: Processor,
    showing: Showing,
    *,
    n_frames: int | None = None,
    frame_pixels: int | None = None,
    positions: int | None = None,
) -> Budget:
    """Frames and their size, as the user wants them, else so that the model holds them.

    Args:
        processor: Of the checkpoint.
        showing: How it is called.
        n_frames: By the user.
        frame_pixels: Largest area of a frame, by the user.
        positions: Tokens that the model holds, ``None`` where no limit is known.

    Raises:
        SettingsError: If the processor refuses the user's arguments, has no way to make frames as
            small as is asked for, or the model holds no clip of so many frames.
    """
    only = getattr(processor, "n_frames", None)
    budget = Budget(
        n_frames or only or DEFAULT_FRAMES,
        positions=positions,
        are_frames_given=n_frames is not None,
    )
    if only:
        return budget
    most = CLIP_TOKENS
    if positions is not None:
        # A model that holds little: half of it is for what is shown.
        beside = PROMPT_TOKENS + DEFAULT_MAX_NEW_TOKENS
        most = min(most, max(positions - beside, positions // 2))
    if not names_a_size(showing.arguments):
        size = frame_size(processor, frame_pixels, budget.n_frames, most)
        budget = replace(budget, frame_size=size, max_pixels=None if size else frame_pixels)
    elif frame_pixels is not None:
        raise SettingsError(
            f"give frame_pixels={frame_pixels} or a size in processor_kwargs="
            f"{dict(showing.arguments)}, not both"
        )
    showing = replace(showing, frame_size=budget.frame_size)
    group = frames_per_group(getattr(processor, "video_processor", None))
    try:
        n_group, n_text, n_pixels = _tokens(processor, showing, group, budget.max_pixels)
    except (ValueError, TypeError, RuntimeError, LookupError, AttributeError, DataError) as error:
        if frame_pixels is None and not showing.arguments:
            return replace(budget, frame_size=None)
        raise SettingsError(
            f"{type(processor).__name__} refuses a clip with frame_pixels={frame_pixels}, "
            f"processor_kwargs={dict(showing.arguments)}: {type(error).__name__}: {error}"
        ) from error
    if frame_pixels is not None and n_pixels > _ROUNDING * frame_pixels:
        raise SettingsError(
            f"{type(processor).__name__} makes {n_pixels:,} pixels of a frame, and has no way to "
            f"make at most frame_pixels={frame_pixels:,}: leave frame_pixels out, or see its own "
            "arguments (processor_kwargs)"
        )
    budget = replace(budget, n_group=n_group, group=group, n_text=n_text)
    if n_frames is None:
        fitting = max((most - n_text) // n_group, 1) * group
        budget = replace(budget, n_frames=min(DEFAULT_FRAMES, fitting))
    if positions is not None and budget.n_clip + n_text >= positions:
        budget.check(PROMPT_TOKENS, DEFAULT_MAX_NEW_TOKENS)
    return budget


def _tokens(
    processor: Processor, showing: Showing, group: int, max_pixels: int | None
) -> tuple[int, int, int]:
    """What a processor makes of large frames: tokens of a group, of the template, and pixels.

    It shows in what the processor returns; nowhere does it say so in one form.
    """
    width, height = shrunk(1920, 1080, max_pixels) if max_pixels else (1920, 1080)
    counts: list[int] = []
    seen = 0
    for n_frames in (group, 2 * group):
        # Squares of other colours in each frame: some models leave out what does not change.
        colours = np.random.default_rng(0).integers(0, 256, (n_frames, 9, 16, 3), np.uint8)
        rows, columns = np.arange(height) * 9 // height, np.arange(width) * 16 // width
        frames = colours[:, rows][:, :, columns]
        clip = make_clip(frames, np.arange(n_frames, dtype=np.float64), fps=1.0, n_total=n_frames)
        inputs = inputs_of(processor, [job_about(clip)], showing)
        counts.append(int(inputs["input_ids"].shape[1]))
        tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
        seen = max((tensor.numel() for tensor in tensors if tensor.is_floating_point()), default=0)
    n_group = max(counts[1] - counts[0], 1)
    return n_group, counts[0] - n_group, seen // 3 // (2 * group)


def job_about(clip: Clip) -> CaptionJob:
    """A made-up clip to describe."""
    nothing = DocVisuals("measuring", "", 0, read=_nothing)
    return CaptionJob([clip], asked_about(1, "Describe."), nothing, nothing.task, 0)


def _nothing() -> Any:  # noqa: ANN401 (never called: a made-up clip is read from nowhere)
    raise NotImplementedError
