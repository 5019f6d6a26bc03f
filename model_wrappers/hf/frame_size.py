"""How large a model sees a frame, and how its processor is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FRAME_TOKENS: Final = 768
"""Most tokens of a group of frames unless the user says otherwise.

Source: qwen-vl-utils, ``VIDEO_MAX_TOKEN_NUM``; the default of transformers' own class."""
SOFT_TOKENS: Final = (70, 140, 280, 560, 1120)
"""What ``max_soft_tokens`` of a frame may be. Source: transformers 5.23, Gemma4VideoProcessor."""


@dataclass(frozen=True, slots=True)
class FrameSize:
    """How many pixels a frame has after the processor's resizing."""

    unit: Literal["frame", "clip", "soft tokens"]
    """What the processor counts: pixels of a frame, of a whole clip, tokens of a frame."""
    pixels: int
    """Most pixels of a frame."""
    is_asked: bool = False
    """Whether the user says so: then pictures that a task shows are held to it, too."""

    def arguments(
        self, processor: object, n_frames: Sequence[int], *, has_pictures: bool
    ) -> dict[str, object]:
        """What the processor is called with.

        Args:
            processor: Of a multimodal model.
            n_frames: Frames of each video of the call, all alike.
            has_pictures: Whether it shows pictures, or frames as such.
        """
        told: dict[str, object] = {}
        videos: Any = getattr(processor, "video_processor", None)
        images: Any = getattr(processor, "image_processor", None)
        if n_frames and self.unit == "soft tokens":
            told["videos_kwargs"] = {"max_soft_tokens": _soft_tokens(videos, self.pixels)}
        elif n_frames:
            n_counted = 1
            if self.unit == "clip":
                n_counted = _counted_frames(min(n_frames), frames_per_group(videos))
            told["videos_kwargs"] = _size(videos, self.pixels * n_counted)
        if has_pictures and counts_area(images) and (self.is_asked or videos is None):
            told["images_kwargs"] = _size(images, self.pixels)
        return told


def frame_size(
    processor: object, asked: int | None, n_frames: int, clip_tokens: int
) -> FrameSize | None:
    """How large frames are, as the user asks, else so that a clip is of ``clip_tokens``.

    Returns:
        ``None`` where the processor takes no size, or its own is right.
    """
    videos: Any = getattr(processor, "video_processor", None)
    part: Any = getattr(processor, "image_processor", None) if videos is None else videos
    if hasattr(part, "max_soft_tokens") and hasattr(part, "pooling_kernel_size"):
        return None if asked is None else FrameSize("soft tokens", asked, is_asked=True)
    if not counts_area(part):
        return None
    unit: Literal["clip", "frame"] = (
        "clip" if videos is not None and _is_of_clip(videos) else "frame"
    )
    if asked is not None:
        return FrameSize(unit, asked, is_asked=True)
    n_groups = -(-n_frames // frames_per_group(videos))
    n_tokens = max(min(clip_tokens // n_groups, FRAME_TOKENS), 1)
    own = (_edge(part.size, "longest_edge") or 0) // (n_frames if unit == "clip" else 1)
    patch: Any = part.patch_size * part.merge_size
    if unit == "frame" and own <= n_tokens * patch**2:
        return None
    return FrameSize(unit, min(n_tokens * patch**2, own))


def _is_of_clip(videos: Any) -> bool:  # noqa: ANN401 (processors have no common type)
    """Whether a video processor shares the area among frames: more of them are smaller ones."""
    grids = [
        videos(
            videos=[torch.zeros(n_frames, 3, 448, 448, dtype=torch.uint8)],
            do_sample_frames=False,
            return_tensors="pt",
            **_size(videos, 448 * 448),
        )["video_grid_thw"][0, 1:]
        for n_frames in (frames_per_group(videos), 4 * frames_per_group(videos))
    ]
    return not torch.equal(*grids)


def counts_area(part: object) -> bool:
    """Whether an image or video processor takes a size in pixels of area, as Qwen-VL's do."""
    size: Any = getattr(part, "size", None)
    if size is None or getattr(part, "merge_size", None) is None:
        return False
    return bool(_edge(size, "shortest_edge") and _edge(size, "longest_edge"))


def frames_per_group(part: object) -> int:
    """Frames that a model sees as one, 2 for Qwen-VL."""
    return int(getattr(part, "temporal_patch_size", None) or 1)


def _counted_frames(n_frames: int, group: int) -> int:
    """Frames by which a clip's budget may be multiplied, so that no frame gets more than its own.

    Processors round the number of frames to whole groups, to the even one in the middle, where
    they compare, and do not where they shrink.

    >>> [_counted_frames(n, 2) for n in (1, 2, 3, 5, 6)]
    [2, 2, 3, 4, 6]
    """
    return max(group, min(n_frames, round(n_frames / group) * group))


def _soft_tokens(part: Any, pixels: int) -> int:  # noqa: ANN401 (processors have no common type)
    """Most tokens of a frame that stand for so many pixels, at least the fewest there are."""
    pixels_of_token = int(part.patch_size * part.pooling_kernel_size) ** 2
    return max((n for n in SOFT_TOKENS if n * pixels_of_token <= pixels), default=SOFT_TOKENS[0])


def _size(part: object, pixels: int) -> Mapping[str, object]:
    shortest = _edge(getattr(part, "size", None), "shortest_edge") or 1
    longest = max(pixels, 1)
    return {"size": {"shortest_edge": min(shortest, longest), "longest_edge": longest}}


def _edge(size: Any, name: str) -> int | None:  # noqa: ANN401 (a mapping, or transformers' SizeDict)
    value = size.get(name) if hasattr(size, "get") else getattr(size, name, None)
    return None if value is None else int(value)
