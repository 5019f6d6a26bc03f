"""Frames and pixels of a clip fit what a model holds: by default, or there is an error."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from caption_requests import results_of
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers import caption_hf
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.hf.budget import fit, job_about
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, inputs_of
from lmms_eval_captions.model_wrappers.video.clip import make_clip
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.filterwarnings("ignore:.*")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Tiny checkpoints, each written once."""
    root = tmp_path_factory.mktemp("zoo")

    @cache
    def write(name: str, n_positions: int = 8192) -> Path:
        folder = root / f"{name}-{n_positions}"
        return ARCHITECTURES[name].write(folder, max_position_embeddings=n_positions)

    return write


@pytest.fixture(scope="module")
def processor_of(checkpoint: Callable[..., Path]) -> Callable[[str], Any]:
    """Processors of tiny checkpoints."""
    from transformers import AutoProcessor

    load: Callable[[Path], Any] = AutoProcessor.from_pretrained
    return lambda name: load(checkpoint(name))


@pytest.mark.parametrize(
    ("name", "own", "n_tokens", "n_mib"),
    [
        # Source: preprocessor_config.json of the released checkpoints.
        pytest.param("qwen2_5_vl", 12_845_056, 11_520, 210, id="43,056 tokens by itself"),
        pytest.param("qwen3_vl", 25_165_824, 11_520, 280, id="a clip's budget"),
        pytest.param("glm4v", 47_040_000, 11_520, 210, id="30,000 tokens by itself"),
    ],
)
def test_thirty_two_frames_of_1080p_are_of_moderate_size_by_default(
    name: str, own: int, n_tokens: int, n_mib: int, processor_of: Callable[[str], Any]
) -> None:
    """README's first example makes what lmms-eval's own settings make, counted."""
    processor = processor_of(name)
    processor.video_processor.size["longest_edge"] = own
    budget = fit(processor, Showing(), positions=128_000)
    assert budget.n_frames == 32
    assert n_tokens <= budget.n_clip <= 16_384
    frames = np.zeros((32, 1080, 1920, 3), np.uint8)
    clip = make_clip(frames, np.arange(32) / 2, fps=2.0, n_total=32)
    inputs = inputs_of(processor, [job_about(clip)], Showing(frame_size=budget.frame_size))
    grid = inputs["video_grid_thw"].prod() // processor.video_processor.merge_size**2
    assert abs(int(grid) - n_tokens) <= n_tokens // 10
    n_bytes = inputs["pixel_values_videos"].numel() * 4
    assert n_bytes <= n_mib * 2**20


def _llava(processor: Any, side: int = 336) -> None:
    """Sizes of the released LLaVA-1.5, or of Video-LLaVA at half the side."""
    for part in (processor.image_processor, getattr(processor, "video_processor", None)):
        if part is not None:
            part.size, part.crop_size = {"shortest_edge": side}, {"height": side, "width": side}
    processor.patch_size, processor.num_additional_image_tokens = 14, 1
    processor.vision_feature_select_strategy = "default"


def _llava_next(processor: Any) -> None:
    _llava(processor)
    grid = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
    processor.image_processor.image_grid_pinpoints = grid


@pytest.mark.parametrize(
    ("name", "released", "n_positions", "n_frames", "n_overflowing"),
    [
        pytest.param("llava", _llava, 4096, 4, 19_000, id="LLaVA-1.5"),
        pytest.param("llava_next", _llava_next, 4096, 1, 63_000, id="LLaVA-1.6, Vicuna"),
        pytest.param("llava_next", _llava_next, 32768, 8, 63_000, id="LLaVA-1.6, Mistral"),
        pytest.param("video_llava", lambda p: _llava(p, 224), 4096, 10, 9_000, id="Video-LLaVA"),
    ],
)
def test_released_models_are_shown_what_they_hold(
    name: str,
    released: Callable[[Any], None],
    n_positions: int,
    n_frames: int,
    n_overflowing: int,
    processor_of: Callable[[str], Any],
) -> None:
    """With the sizes of the released checkpoints, 32 frames overflow, and the default does not."""
    processor = processor_of(name)
    released(processor)
    assert fit(processor, Showing(), positions=n_positions).n_frames == n_frames
    with pytest.raises(SettingsError, match="32 frames of ") as error:
        fit(processor, Showing(), n_frames=32, positions=n_positions)
    [needed] = re.findall(r"are ([\d,]+) tokens", str(error.value))
    assert abs(int(needed.replace(",", "")) - n_overflowing) < 1500
    for suggested in re.findall(r"max_num_frames=(\d+)", str(error.value)):
        fitted = fit(processor, Showing(), n_frames=int(suggested), positions=n_positions)
        assert fitted.n_clip < n_positions


@pytest.mark.parametrize("name", ["llava", "video_llava", "llava_next", "qwen2_5_vl", "gemma4"])
def test_as_many_frames_as_the_model_holds(name: str, processor_of: Callable[[str], Any]) -> None:
    """A model of few positions is shown fewer frames, which leave room to ask and to write."""
    processor = processor_of(name)
    many, few = (fit(processor, Showing(), positions=n) for n in (100_000, 400))
    assert many.n_frames == 32
    assert few.n_frames < 32 or few.n_clip < many.n_clip or many.n_clip < 200
    assert few.n_clip + few.n_text < 400
    assert few.check(n_prompt=20, max_new_tokens=16) == 16


@pytest.mark.parametrize("name", ["llava", "video_llava", "llava_next"])
def test_more_frames_than_fit_are_an_error_with_the_numbers(
    name: str, checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 frames that overflow the positions end the run before the model loads."""
    monkeypatch.delattr(caption_hf, "load_model")
    folder = checkpoint(name, 500)
    with pytest.raises(SettingsError, match=r"32 frames of \d+ .*500 positions"):
        CaptionHf(pretrained=str(folder), device="cpu", max_num_frames=32)


def test_the_user_s_frames_and_the_task_s_tokens_must_fit_together(
    checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    """Where both are given, neither is cut: an error names all numbers before the first caption."""
    clips = [write_clip(tmp_path / "a.mp4", 24, size=(64, 48))]
    model = CaptionHf(pretrained=str(checkpoint("llava", 500)), device="cpu", max_num_frames=16)
    [result] = results_of(model, clips, settings={"max_new_tokens": 16})
    assert result.text
    with pytest.raises(SettingsError, match=r"16 frames.*up to 400 new.*500 positions"):
        results_of(model, clips, settings={"max_new_tokens": 400})


def test_a_prompt_that_fills_the_model_costs_its_own_caption_alone(
    checkpoint: Callable[..., Path],
) -> None:
    """Inputs of as many tokens as positions are refused by name."""
    budget = CaptionHf(pretrained=str(checkpoint("llava", 500)), device="cpu").budget
    budget.check_length(499)
    with pytest.raises(DataError, match=r"500 tokens, the model has 500 positions"):
        budget.check_length(500)
