"""How large a model sees a frame, and how its processor is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SizeUnit = Literal["frame", "clip", "soft tokens", "none"]
"""What a processor counts: pixels of a frame, of a whole clip, tokens of a frame, nothing."""

SOFT_TOKENS: Final = (70, 140, 280, 560, 1120)
"""What ``max_soft_tokens`` of a frame may be. Source: transformers 5.23, Gemma4VideoProcessor."""


@dataclass(frozen=True, slots=True)
class FrameSize:
    """How many pixels a frame has after the processor's resizing, in the processor's own unit."""

    unit: SizeUnit
    pixels: int
    """Most pixels of a frame."""
    is_asked: bool = False
    """Whether the user says so: then it may be more than the checkpoint's own, and pictures that a
    task shows are held to it, too."""

    def arguments(
        self, processor: object, n_frames: Sequence[int], *, has_pictures: bool
    ) -> dict[str, object]:
        """What the processor is called with.

        Args:
            processor: Of a multimodal model.
            n_frames: Frames of each video of the call.
            has_pictures: Whether it shows pictures, or frames as such.
        """
        told: dict[str, object] = {}
        videos: Any = getattr(processor, "video_processor", None)
        images: Any = getattr(processor, "image_processor", None)
        if n_frames and (arguments := self._video_arguments(videos, n_frames)):
            told["videos_kwargs"] = arguments
        if has_pictures and counts_area(images) and (self.is_asked or videos is None):
            told["images_kwargs"] = _size(images, self.pixels)
        return told

    def _video_arguments(self, videos: Any, n_frames: Sequence[int]) -> Mapping[str, object]:  # noqa: ANN401
        if self.unit == "frame":
            return _size(videos, self.pixels)
        if self.unit == "clip":
            group = frames_per_group(videos)
            # The size is one for all videos of the call: the shortest must not get too much.
            area = min(self.pixels * counted_frames(n, group) for n in n_frames)
            return _size(videos, area if self.is_asked else min(area, own_area(videos)))
        if self.unit == "soft tokens":
            return {"max_soft_tokens": soft_tokens(videos, self.pixels)}
        return {}


def counts_area(part: object) -> bool:
    """Whether an image or video processor takes a size in pixels of area, as Qwen-VL's do."""
    size: Any = getattr(part, "size", None)
    if size is None or getattr(part, "merge_size", None) is None:
        return False
    return bool(_edge(size, "shortest_edge") and _edge(size, "longest_edge"))


def own_area(part: object) -> int:
    """Most pixels by the checkpoint, in the processor's own unit."""
    return _edge(getattr(part, "size", None), "longest_edge") or 0


def patch_sides(part: object) -> int:
    """Side of the square of a frame that one token stands for, in pixels."""
    patch: Any = getattr(part, "patch_size", 1)
    merged: Any = getattr(part, "merge_size", 1)
    return int(patch) * int(merged)


def frames_per_group(part: object) -> int:
    """Frames that a model sees as one, 2 for Qwen-VL."""
    return int(getattr(part, "temporal_patch_size", None) or 1)


def counted_frames(n_frames: int, group: int) -> int:
    """Frames by which a clip's budget may be multiplied, so that no frame gets more than its own.

    Processors round the number of frames to whole groups, to the even one in the middle, where
    they compare, and do not where they shrink.

    >>> [counted_frames(n, 2) for n in (1, 2, 3, 5, 6)]
    [2, 2, 3, 4, 6]
    """
    return max(group, min(n_frames, round(n_frames / group) * group))


def soft_tokens(part: Any, pixels: int) -> int:  # noqa: ANN401
    """Tokens of a frame of at most so many pixels, of the numbers that the processor allows.

    Returns:
        0 where even the fewest stand for more pixels.
    """
    fitting = (n for n in SOFT_TOKENS if n * soft_token_pixels(part) <= pixels)
    return max(fitting, default=0)


def soft_token_pixels(part: Any) -> int:  # noqa: ANN401 (processors have no common type)
    """Pixels of a frame that one of such tokens stands for."""
    return int(part.patch_size * part.pooling_kernel_size) ** 2


def _size(part: object, pixels: int) -> Mapping[str, object]:
    shortest = _edge(getattr(part, "size", None), "shortest_edge") or 1
    longest = max(pixels, 1)
    return {"size": {"shortest_edge": min(shortest, longest), "longest_edge": longest}}


def _edge(size: Any, name: str) -> int | None:  # noqa: ANN401 (a mapping, or transformers' SizeDict)
    value = size.get(name) if hasattr(size, "get") else getattr(size, name, None)
    return None if value is None else int(value)
