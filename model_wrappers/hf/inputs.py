"""Inputs of a transformers model from frames and prompts, by its own processor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from PIL import Image

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.hf.prompts import OWN_TEMPLATE, Processor, PromptFormat, Turn

if TYPE_CHECKING:
    from transformers import BatchFeature

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.video.clip import Clip

FRAME_TOKENS: Final = 768
"""Most tokens of a group of frames by default.

Source: qwen-vl-utils, ``VIDEO_MAX_TOKEN_NUM``; the default of transformers' own class."""
CLIP_TOKENS: Final = 16_384
"""Most tokens of a clip by default, on models that take a size."""
SOFT_TOKENS: Final = (70, 140, 280, 560, 1120)
"""Values of ``max_soft_tokens`` of a frame. Source: transformers 5.23, Gemma4VideoProcessor."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Jobs of a batch that go through the model together."""

    jobs: Sequence[int]
    """Indices in the batch."""
    inputs: BatchFeature

    def n_inputs(self) -> list[int]:
        """Return the tokens of each job's input, without padding."""
        return [int(n) for n in self.inputs["attention_mask"].sum(dim=1)]


@dataclass(frozen=True, slots=True)
class Showing:
    """Arguments of a processor's call, the same for all jobs of a captioner."""

    system_prompt: str | None = None
    form: PromptFormat = OWN_TEMPLATE
    """Form of prompts."""
    frame_size: FrameSize | None = None
    """``None``: the processor's own."""


def text_of(processor: Processor, job: CaptionJob, showing: Showing) -> str:
    """Return a job's question as one text, with the marks at which its frames are shown."""
    sees_videos = getattr(processor, "video_processor", None) is not None
    content: list[dict[str, str]] = []
    for part in job.content:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif sees_videos and not job.clips[part].is_image:
            content.append({"type": "video"})
        else:
            content += [{"type": "image"}] * len(job.clips[part].frames)
    turns: list[Turn] = [{"role": "user", "content": content}]
    if showing.system_prompt:
        system = [{"type": "text", "text": showing.system_prompt}]
        turns.insert(0, {"role": "system", "content": system})
    return showing.form.text(processor, turns)


def make_parts(processor: Processor, jobs: Sequence[CaptionJob], showing: Showing) -> list[Part]:
    """Return the inputs of a batch, a part for each number of frames.

    Some processors stack clips, others fill up the shorter ones and tell the model of frames that
    do not exist (SmolVLM), and some have one number of pixels for all clips of a call. Some stack
    pictures, of which each is cut into as many tiles as its shape asks for: these go one by one.
    """
    alike: dict[object, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        alike[tuple((clip.is_image, len(clip.frames)) for clip in job.clips)].append(index)
    parts: list[Part] = []
    waiting = list(alike.values())[::-1]
    while waiting:
        indices = waiting.pop()
        chosen = [jobs[index] for index in indices]
        try:
            parts.append(Part(indices, inputs_of(processor, chosen, showing)))
        except (ValueError, RuntimeError) as error:
            if len(indices) == 1:
                sizes = sorted({clip.frames.shape[:3] for clip in chosen[0].clips})
                raise DataError(
                    f"the model's processor refuses clips of (frames, height, width) {sizes}: "
                    f"{error}"
                ) from error
            waiting += [[index] for index in reversed(indices)]
    return parts


def inputs_of(processor: Processor, jobs: Sequence[CaptionJob], showing: Showing) -> BatchFeature:
    """Return the inputs of jobs whose clips have equally many frames."""
    texts = [text_of(processor, job, showing) for job in jobs]
    start = getattr(processor.tokenizer, "bos_token", None)
    inputs: BatchFeature = processor(
        text=texts,
        padding=True,
        padding_side=getattr(processor.tokenizer, "padding_side", "left"),
        return_tensors="pt",
        # The template has written the start token already.
        add_special_tokens=not (start and texts[0].startswith(start)),
        **_visuals(processor, jobs, showing),
    )
    return inputs


def _visuals(
    processor: Processor, jobs: Sequence[CaptionJob], showing: Showing
) -> dict[str, object]:
    """Return the frames, and the arguments that describe them."""
    video_processor: Any = getattr(processor, "video_processor", None)

    def is_video(clip: Clip) -> bool:
        return video_processor is not None and not clip.is_image

    pictures = [
        [Image.fromarray(frame) for c in job.clips if not is_video(c) for frame in c.frames]
        for job in jobs
    ]
    videos = [at_least(c, video_processor) for job in jobs for c in job.clips if is_video(c)]
    visuals: dict[str, object] = {"images": pictures} if any(pictures) else {}
    if videos:
        visuals |= {
            # Channels first: a clip one or three pixels wide leaves no room for guesses.
            "videos": [torch.from_numpy(clip.frames).permute(0, 3, 1, 2) for clip in videos],
            "video_metadata": [metadata_of(clip) for clip in videos],
            "do_sample_frames": False,
        }
    if showing.frame_size is not None:
        counts = [len(clip.frames) for clip in videos]
        visuals |= showing.frame_size.arguments(processor, counts, has_pictures=any(pictures))
    return visuals


def at_least(clip: Clip, video_processor: object) -> Clip:
    """Return a clip whose last frame is repeated until there are enough.

    Qwen-VL and GLM-4V see frames in pairs and fill up odd numbers in this way, but Qwen3-VL and
    GLM-4V refuse a single frame all the same.
    """
    shortest = frames_per_group(video_processor) if counts_area(video_processor) else 1
    missing = shortest - len(clip.frames)
    if missing <= 0:
        return clip
    return replace(
        clip,
        frames=np.concatenate([clip.frames, *[clip.frames[-1:]] * missing]),
        timestamps_s=np.concatenate([clip.timestamps_s, *[clip.timestamps_s[-1:]] * missing]),
    )


def metadata_of(clip: Clip) -> dict[str, object]:
    """Return when the frames are shown, for models that take it.

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
        """Return arguments for a call with videos of ``n_frames`` each, all alike, or pictures."""
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


MARKS_FIRST: Final[Mapping[str, int]] = {
    "Blip2Processor": 1,
    "InstructBlipProcessor": 1,
    "InstructBlipVideoProcessor": 4,
}
"""Frames of a prompt, by processor."""


class MarksFirst:
    """A processor of ``MARKS_FIRST`` with the arguments of others.

    Its Q-Former reads the prompt, too, by a tokenizer of its own. That one counts positions from
    the left, so that it pads on the right, whatever the language model's does.
    """

    chat_template = None

    def __init__(self, processor: Any) -> None:  # noqa: ANN401 (three classes without a common one)
        self._processor = processor
        self.n_frames = MARKS_FIRST[type(processor).__name__]
        """Frames of each clip; shorter clips repeat theirs."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):  # a copy asks before there is anything in it
            raise AttributeError(name)
        return getattr(self._processor, name)

    def __call__(
        self,
        *,
        text: Sequence[str],
        images: Sequence[Sequence[Any]] | None = None,
        videos: Sequence[torch.Tensor] | None = None,
        **kwargs: object,
    ) -> BatchFeature:
        """Return tokens and pixels of one clip or picture for each text."""
        for unknown in ("padding_side", "video_metadata", "do_sample_frames"):
            kwargs.pop(unknown, None)
        shown: list[Any] = list(videos or images or ())
        if len(shown) != len(text):
            raise DataError(
                f"the model takes one clip or picture for each question, got {len(shown)} for "
                f"{len(text)}"
            )
        shaped = [self._clip(clip) if self.n_frames > 1 else self._picture(clip) for clip in shown]
        return self._processor(text=list(text), images=shaped, **kwargs)  # type: ignore[no-any-return]

    def _clip(self, clip: torch.Tensor | Sequence[Any]) -> torch.Tensor:
        """Return a number of frames, evenly spaced: those of a shorter clip several times."""
        if not isinstance(clip, torch.Tensor):
            clip = torch.from_numpy(np.stack([np.asarray(frame) for frame in clip]))
            clip = clip.permute(0, 3, 1, 2)
        return clip[np.linspace(0, len(clip) - 1, self.n_frames).round().astype(int)]

    def _picture(self, pictures: Sequence[Any]) -> Any:  # noqa: ANN401
        if len(pictures) != 1:
            raise DataError(
                f"the model takes one picture a question, got {len(pictures)}: give "
                "max_num_frames=1"
            )
        return pictures[0]


def check_frames(
    processor: object, n_frames: int | None, fps: float | None, frame_pixels: int | None
) -> None:
    """Refuse the user's arguments that a processor of ``MARKS_FIRST`` cannot follow."""
    if not isinstance(processor, MarksFirst):
        return
    if n_frames not in {None, processor.n_frames} or fps is not None or frame_pixels is not None:
        raise SettingsError(
            f"this model takes exactly {processor.n_frames} frame(s) of a clip, evenly "
            "spaced and of one size: leave out fps, frame_pixels and max_num_frames, got "
            f"fps={fps!r}, frame_pixels={frame_pixels!r}, max_num_frames={n_frames!r}"
        )
