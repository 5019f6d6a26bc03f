"""Recipes of transformers' documentation: from frames and a prompt to a model's inputs.

Nothing here is shared with ``caption_hf``: its captions are compared with these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transformers import BatchFeature


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Frames that are decoded already, and what the file says of them."""

    frames: np.ndarray
    """(n, height, width, 3), uint8, RGB."""
    positions: Sequence[int]
    fps: float
    """Frames a second of the file."""
    n_total: int
    """Frames of the file."""
    duration_s: float
    is_picture: bool = False

    def filled(self, n_frames: int) -> Shown:
        """The last frame shown again until there are so many."""
        missing = max(n_frames - len(self.frames), 0)
        return replace(
            self,
            frames=np.concatenate([self.frames, *[self.frames[-1:]] * missing]),
            positions=[*self.positions, *[self.positions[-1]] * missing],
        )

    def pictures(self) -> list[Image.Image]:
        """The frames one by one."""
        return [Image.fromarray(frame) for frame in self.frames]

    def video(self) -> torch.Tensor:
        """(n, 3, height, width), as torchcodec decodes."""
        return torch.from_numpy(self.frames).permute(0, 3, 1, 2)

    def metadata(self) -> dict[str, object]:
        return {
            "total_num_frames": self.n_total,
            "fps": self.fps,
            "duration": self.duration_s,
            "frames_indices": list(self.positions),
            "height": self.frames.shape[1],
            "width": self.frames.shape[2],
            "video_backend": "torchcodec",
        }


def chat_about_video(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    """``apply_chat_template`` with a video, as of most documented models."""
    video = {"type": "video", "video": shown.video()}
    return _chat(
        processor,
        [video],
        prompt,
        {"video_metadata": [shown.metadata()], "do_sample_frames": False},
    )


def chat_about_pairs(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    """The same for models that see frames in pairs, fill up odd ones, and refuse a single one."""
    return chat_about_video(processor, shown.filled(2), prompt)


def chat_about_images(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    """``apply_chat_template`` with one image per frame, of models that know no videos."""
    return _chat(processor, [{"type": "image", "image": one} for one in shown.pictures()], prompt)


def _chat(
    processor: Any,
    visuals: list[dict[str, object]],
    prompt: str,
    processor_kwargs: dict[str, object] | None = None,
) -> BatchFeature:
    content = [*visuals, {"type": "text", "text": prompt}]
    inputs: BatchFeature = processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        processor_kwargs=processor_kwargs or {},
    )
    return inputs


def text_about_video(form: str) -> Callable[[Any, Shown, str], BatchFeature]:
    """A prompt written out with the video's mark in it; ``{}`` is where the question stands."""

    def recipe(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
        inputs: BatchFeature = processor(
            text=form.format(prompt), videos=shown.video(), return_tensors="pt"
        )
        return inputs

    return recipe


def text_about_image(form: str) -> Callable[[Any, Shown, str], BatchFeature]:
    """The same with an image's mark."""

    def recipe(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
        inputs: BatchFeature = processor(
            text=form.format(prompt), images=shown.pictures(), return_tensors="pt"
        )
        return inputs

    return recipe
