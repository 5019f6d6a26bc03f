"""Size of frames in the processor's own argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import torch

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

FRAME_TOKENS: Final = 768
"""Most tokens of a group of frames by default.

Source: qwen-vl-utils, ``VIDEO_MAX_TOKEN_NUM``; the default of transformers' own class."""
CLIP_TOKENS: Final = 16_384
"""Most tokens of a clip by default, on models that take a size."""
SOFT_TOKENS: Final = (70, 140, 280, 560, 1120)
"""Values of ``max_soft_tokens`` of a frame. Source: transformers 5.23, Gemma4VideoProcessor."""
_PARTS: Final = {
    "text_kwargs": "tokenizer",
    "images_kwargs": "image_processor",
    "videos_kwargs": "video_processor",
    "audio_kwargs": "feature_extractor",
}
"""Arguments that hold those of one part. Source: transformers 5.23, ``ProcessorMixin``."""
_SIZES: Final = ("size", "min_pixels", "max_pixels", "max_soft_tokens")
_OURS: Final = frozenset(
    {"text", "images", "videos", "audio", "padding", "padding_side", "return_tensors"}
)


@dataclass(frozen=True, slots=True)
class FrameSize:
    """Most pixels of a frame after the processor's resizing."""

    pixels: int
    is_of_clip: bool = False
    """True if the processor counts the pixels of a complete clip, not of a frame."""
    is_asked: bool = False
    """True if it is the user's: then pictures that a task shows are held to it, too."""

    def arguments(
        self, processor: object, n_frames: Sequence[int], *, has_pictures: bool
    ) -> dict[str, object]:
        """Return arguments for a call of the processor.

        Args:
            processor: Of a multimodal model.
            n_frames: Frames of each video of the call, all alike.
            has_pictures: If pictures are shown, or frames as pictures.
        """
        arguments: dict[str, object] = {}
        videos: Any = getattr(processor, "video_processor", None)
        images: Any = getattr(processor, "image_processor", None)
        if n_frames and hasattr(videos, "max_soft_tokens"):
            token = int(videos.patch_size * videos.pooling_kernel_size) ** 2
            fitting = [n for n in SOFT_TOKENS if n * token <= self.pixels] or SOFT_TOKENS[:1]
            arguments["videos_kwargs"] = {"max_soft_tokens": max(fitting)}
        elif n_frames:
            # Processors round the number of frames to complete groups when they compare, not when
            # they shrink: no frame gets more.
            n, group = min(n_frames), frames_per_group(videos)
            counted = max(group, min(n, round(n / group) * group)) if self.is_of_clip else 1
            arguments["videos_kwargs"] = _size(videos, self.pixels * counted)
        if has_pictures and counts_area(images) and (self.is_asked or videos is None):
            arguments["images_kwargs"] = _size(images, self.pixels)
        return arguments


def frame_size(processor: object, asked: int | None, n_frames: int) -> FrameSize | None:
    """Return the size of frames: the user's, else one that keeps clips to ``CLIP_TOKENS``.

    Returns:
        ``None`` if the processor takes no size, or its own is smaller.
    """
    videos: Any = getattr(processor, "video_processor", None)
    part: Any = getattr(processor, "image_processor", None) if videos is None else videos
    if hasattr(part, "max_soft_tokens"):
        return None if asked is None else FrameSize(asked, is_asked=True)
    if not counts_area(part):
        return None
    is_of_clip = videos is not None and _is_of_clip(videos)
    if asked is not None:
        return FrameSize(asked, is_of_clip, is_asked=True)
    n_groups = -(-n_frames // frames_per_group(videos))
    patch: Any = part.patch_size * part.merge_size
    most = max(min(CLIP_TOKENS // n_groups, FRAME_TOKENS), 1) * patch**2
    own = (_edge(part.size, "longest_edge") or 0) // (n_frames if is_of_clip else 1)
    return None if not is_of_clip and own <= most else FrameSize(min(most, own), is_of_clip)


def check_arguments(processor: object, arguments: Mapping[str, object], asked: int | None) -> bool:
    """Return if the user's ``processor_kwargs`` set a size.

    Raises:
        SettingsError: If the processor does not know an argument, which it would leave out, or two
            arguments set a size.
    """
    flat = {
        name
        for key, value in arguments.items()
        for name in (value if key in _PARTS and isinstance(value, Mapping) else (key,))
    }
    kwargs: Any = getattr(processor, "valid_processor_kwargs", None)
    annotations = dict(getattr(kwargs, "__annotations__", {}))
    known = set(annotations) - set(_PARTS)
    for name, part in _PARTS.items():
        of_part = getattr(getattr(processor, part, None), "valid_kwargs", None)
        for kind in (annotations.get(name), of_part):
            known |= set(getattr(kind, "__annotations__", {}))
    if known and (unknown := sorted(flat - known)):
        raise SettingsError(
            f"processor_kwargs: {type(processor).__name__} does not know {unknown}; "
            f"it takes {sorted(known)}"
        )
    if taken := sorted(flat & _OURS):
        raise SettingsError(f"processor_kwargs: {taken} are filled in here")
    has_size = not flat.isdisjoint(_SIZES)
    if has_size and asked is not None:
        raise SettingsError(
            f"give frame_pixels={asked} or a size in processor_kwargs={dict(arguments)}, not both"
        )
    return has_size


def counts_area(part: object) -> bool:
    """Return if an image or video processor takes a size in pixels of area, as Qwen-VL's do."""
    size: Any = getattr(part, "size", None)
    if size is None or getattr(part, "merge_size", None) is None:
        return False
    return bool(_edge(size, "shortest_edge") and _edge(size, "longest_edge"))


def frames_per_group(part: object) -> int:
    """Return the number of frames that a model sees as one, 2 for Qwen-VL."""
    return int(getattr(part, "temporal_patch_size", None) or 1)


def _is_of_clip(videos: Any) -> bool:  # noqa: ANN401 (processors have no common type)
    """Return if a video processor shares the area among frames: more of them are smaller ones."""
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


def _size(part: object, pixels: int) -> Mapping[str, object]:
    shortest = _edge(getattr(part, "size", None), "shortest_edge") or 1
    longest = max(pixels, 1)
    return {"size": {"shortest_edge": min(shortest, longest), "longest_edge": longest}}


def _edge(size: Any, name: str) -> int | None:  # noqa: ANN401 (a mapping, or transformers' SizeDict)
    value = size.get(name) if hasattr(size, "get") else getattr(size, name, None)
    return None if value is None else int(value)
