"""Clips, prompts and captions fit the model's positions, or an error names number and setting."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from caption_requests import results_of
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, content_of
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, frame_size, inputs_of
from lmms_eval_captions.model_wrappers.video.clip import make_clip
from lmms_eval_captions.model_wrappers.video.sampling import Fps
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


@pytest.mark.parametrize(
    ("name", "own", "n_tokens", "n_mib"),
    [
        # Source: preprocessor_config.json of the released checkpoints.
        pytest.param("qwen2_5_vl", 12_845_056, 11_520, 210, id="43,056 tokens by itself"),
        pytest.param("qwen3_vl", 25_165_824, 11_520, 280, id="a clip's pixels"),
        pytest.param("glm4v", 47_040_000, 11_520, 210, id="30,000 tokens by itself"),
    ],
)
def test_thirty_two_frames_of_1080p_are_of_moderate_size_by_default(
    name: str, own: int, n_tokens: int, n_mib: int, checkpoint: Callable[..., Path]
) -> None:
    """README's first example makes what lmms-eval's own settings make, counted."""
    from transformers import AutoProcessor

    processor: Any = AutoProcessor.from_pretrained(checkpoint(name))
    processor.video_processor.size["longest_edge"] = own
    size = frame_size(processor, None, 32)
    frames = np.zeros((32, 1080, 1920, 3), np.uint8)
    clip = make_clip(frames, np.arange(32) / 2, fps=2.0, n_total=32)
    job = CaptionJob([clip], content_of(1, "Describe."), Path("a.mp4"), "task", 0)
    inputs = inputs_of(processor, [job], Showing(frame_size=size))
    grid = inputs["video_grid_thw"].prod() // processor.video_processor.merge_size**2
    assert abs(int(grid) - n_tokens) <= n_tokens // 10
    n_bytes = inputs["pixel_values_videos"].numel() * 4
    assert n_bytes <= n_mib * 2**20


@pytest.mark.parametrize("name", ["llava", "video_llava"])
def test_more_frames_than_fit_are_an_error_before_the_first_caption(
    name: str, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    """The number of tokens, the positions and a setting that fits are named; it does fit."""
    clips = [write_clip(tmp_path / f"{n}.mp4", 40, size=(64, 48)) for n in range(2)]
    folder = str(checkpoint(name, 300))
    settings = {"max_new_tokens": 16}
    model = CaptionHf(pretrained=folder, device="cpu", max_num_frames=32)
    with pytest.raises(SettingsError, match=r"32 frames .* tokens.*300 positions") as error:
        results_of(model, clips, settings=settings)
    fitting = int(str(error.value).partition("max_num_frames=")[2].partition(",")[0])
    model = CaptionHf(pretrained=folder, device="cpu", max_num_frames=fitting)
    assert all(result.text for result in results_of(model, clips, settings=settings))
    with pytest.raises(SettingsError, match="captions may have 290"):
        results_of(model, clips, settings={"max_new_tokens": 290})


def test_a_clip_that_is_too_long_costs_its_own_caption_alone(
    checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    """Once captions have fit, later ones that do not are named."""
    long, short = (write_clip(tmp_path / f"{n}.mp4", n, size=(64, 48)) for n in (60, 3))
    model = CaptionHf(pretrained=str(checkpoint("llava", 300)), device="cpu", max_num_frames=60)
    model.sampling = Fps(12.0, 60)
    model.cost = lambda path: -path.stat().st_size  # type: ignore[method-assign] # short ones first
    results = results_of(model, [long, short], settings={"max_new_tokens": 16})
    assert [bool(result.text) for result in results] == [False, True]
    assert "300 positions" in model.outcome.failures["task", 0]
