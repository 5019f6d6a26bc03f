"""``frame_pixels`` is a frame's, whatever a processor counts: told by the tokens that it makes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers import caption_hf
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.hf.fitting import Wanted, fit
from lmms_eval_captions.model_wrappers.hf.frame_size import frames_per_group, patch_sides
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, inputs_of, make_parts
from lmms_eval_captions.model_wrappers.hf.measuring import job_about
from lmms_eval_captions.model_wrappers.video.clip import Clip, make_clip
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Processors = Callable[[str], Any]

pytestmark = pytest.mark.filterwarnings("ignore:.*")

SIZED = (
    "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "glm4v", "glm46v", "video_llama_3", "exaone4_5"
)  # fmt: skip
FIXED = ("llava_onevision", "internvl", "video_llava", "llava_next_video", "llava", "gemma3")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Tiny checkpoints, each written once."""
    root = tmp_path_factory.mktemp("zoo")
    return cache(lambda name: ARCHITECTURES[name].write(root / name))


@pytest.fixture(scope="module")
def processors(folders: Callable[[str], Path]) -> Processors:
    """Their processors."""
    from transformers import AutoProcessor

    load: Callable[[Path], Any] = AutoProcessor.from_pretrained
    return cache(lambda name: load(folders(name)))


def clip_of(n_frames: int, size: tuple[int, int] = (640, 360)) -> Clip:
    """A clip of noise."""
    width, height = size
    frames = np.random.default_rng(1).integers(0, 256, (n_frames, height, width, 3), np.uint8)
    return make_clip(frames, np.arange(n_frames) / 2, fps=2.0, n_total=n_frames)


def seen(processor: Any, showing: Showing, clip: Clip) -> tuple[int, int]:
    """Pixels of each frame after the processor's resizing, and tokens of the clip, counted."""
    inputs = inputs_of(processor, [job_about(clip)], showing)
    [[n_groups, high, wide]] = inputs["video_grid_thw"].tolist()
    part = processor.video_processor
    n_tokens = int((inputs["input_ids"] == processor.video_token_id).sum())
    if type(processor).__name__.startswith("Glm"):
        n_tokens = int((inputs["input_ids"] == processor.image_token_id).sum())
    assert n_tokens == n_groups * high * wide // part.merge_size**2
    return high * wide * part.patch_size**2, n_tokens


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("n_frames", [1, 2, 3, 5, 8, 16])
def test_frame_pixels_is_one_frame_s(name: str, n_frames: int, processors: Processors) -> None:
    """Frames of clips of any length are as large as is asked for, and no larger."""
    processor = processors(name)
    part = processor.video_processor
    asked = 100 * patch_sides(part) ** 2
    budget = fit(processor, Showing(), Wanted(n_frames=16, frame_pixels=asked), None)
    n_pixels, n_tokens = seen(processor, Showing(frame_size=budget.frame_size), clip_of(n_frames))
    is_odd_pair = n_frames % frames_per_group(part) and n_frames > 2
    # Sides are whole patches; of odd numbers, which processors round, frames come out smaller.
    assert (0.6 if is_odd_pair else 0.8) * asked <= n_pixels <= asked
    assert n_tokens == n_pixels // patch_sides(part) ** 2 * -(-n_frames // frames_per_group(part))
    assert n_tokens <= budget.n_clip


def test_a_long_clip_of_qwen3_has_the_tokens_of_its_frames(processors: Processors) -> None:
    """32 frames of 720p at 602,112 pixels are not those of one frame."""
    processor = processors("qwen3_vl")
    budget = fit(processor, Showing(), Wanted(32, 602_112), None)
    size = (1280, 720)
    _, n_tokens = seen(processor, Showing(frame_size=budget.frame_size), clip_of(32, size))
    assert 0.85 * 16 * 588 <= n_tokens <= 16 * 588


def test_clips_of_different_lengths_keep_their_frames_sizes_in_a_batch(
    processors: Processors,
) -> None:
    """A clip's frames are as large beside a longer clip as alone."""
    processor = processors("qwen3_vl")
    budget = fit(processor, Showing(), Wanted(8, 64 * 32 * 32), None)
    showing = Showing(frame_size=budget.frame_size, is_row=budget.is_row)
    clips = [clip_of(2), clip_of(8), clip_of(4, (360, 640))]
    [part] = make_parts(processor, [job_about(clip) for clip in clips], showing)
    alone = [seen(processor, showing, clips[index])[0] for index in part.jobs]
    side = processor.video_processor.patch_size
    assert [
        high * wide * side**2 for _, high, wide in part.inputs["video_grid_thw"].tolist()
    ] == alone


@pytest.mark.parametrize("name", FIXED)
def test_what_a_tower_of_one_size_cannot_do_is_said_before_the_model_loads(
    name: str, folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``frame_pixels`` below the only size is an error in words, and none above it."""

    def load_model(*_: object, **__: object) -> None:
        raise InterruptedError("the model is loaded")

    monkeypatch.setattr(caption_hf, "load_model", load_model)
    with pytest.raises(SettingsError, match=r"frame_pixels=100\b.*leave frame_pixels out"):
        CaptionHf(pretrained=str(folders(name)), device="cpu", frame_pixels=100)
    with pytest.raises(InterruptedError):
        CaptionHf(pretrained=str(folders(name)), device="cpu", frame_pixels=5 * 28 * 28)


def test_soft_tokens_are_the_most_that_stay_below(processors: Processors) -> None:
    """Gemma 4 knows five sizes of frames: the largest that is small enough is taken."""
    processor = processors("gemma4")
    part = processor.video_processor
    pixels = 300 * (part.patch_size * part.pooling_kernel_size) ** 2
    budget = fit(processor, Showing(), Wanted(2, pixels), None)
    assert budget.frame_size is not None
    arguments = budget.frame_size.arguments(processor, [2], has_pictures=False)
    assert arguments == {"videos_kwargs": {"max_soft_tokens": 280}}
    showing = Showing(frame_size=budget.frame_size)
    few = fit(processor, Showing(), Wanted(2, pixels // 4), None).frame_size
    n_many, n_few = (
        inputs_of(processor, [job_about(clip_of(2))], s)["input_ids"].shape[1]
        for s in (showing, replace(showing, frame_size=few))
    )
    assert n_many > 3 * n_few
    with pytest.raises(SettingsError, match="smallest frame"):
        fit(processor, Showing(), Wanted(2, pixels // 10), None)


def test_frames_are_shrunk_where_the_processor_only_leaves_small_ones_small(
    folders: Callable[[str], Path],
) -> None:
    """Pixtral takes no area: its frames arrive as small as is asked for."""
    whole = CaptionHf(pretrained=str(folders("pixtral")), device="cpu")
    small = CaptionHf(pretrained=str(folders("pixtral")), device="cpu", frame_pixels=900)
    assert whole.max_pixels > 10**6
    assert small.max_pixels <= 900
    assert small.budget.n_group < whole.budget.n_group


def test_pictures_are_held_to_frame_pixels_too(processors: Processors) -> None:
    """A picture beside a clip has the user's size; by default the checkpoint's own."""
    processor = processors("qwen2_5_vl")
    picture = replace(clip_of(1), is_image=True)
    asked = fit(processor, Showing(), Wanted(8, 28 * 28), None).frame_size
    few, own = (
        inputs_of(processor, [job_about(picture)], Showing(frame_size=size))["image_grid_thw"]
        for size in (asked, None)
    )
    assert few.prod() == 4
    assert own.prod() > 4
