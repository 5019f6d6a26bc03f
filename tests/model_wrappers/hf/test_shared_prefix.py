"""Prompts about one clip share what the model makes of it, and captions stay the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from caption_requests import GREEDY, caption_all, results_of
from hostile_clips import write_clip
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.hf import sharing
from zoo import ARCHITECTURES

pytestmark = pytest.mark.filterwarnings("ignore:.*")

PROMPTS = {
    "short": "Describe.",
    "long": "Describe the camera, then the background, in detail.",
    "other": "What is seen?",
}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of several lengths and shapes."""
    folder = tmp_path_factory.mktemp("clips")
    shapes = [(3, (64, 48)), (24, (64, 48)), (9, (48, 96))]
    return [
        write_clip(folder / f"{index}.mp4", n, size=size) for index, (n, size) in enumerate(shapes)
    ]


def captioner(name: str, folder: Path, **arguments: Any) -> CaptionHf:
    """A captioner of a family, exact enough to compare captions token for token."""
    common = {"device": "cpu", "dtype": "float32", "max_num_frames": 4}
    return CaptionHf(
        **{"pretrained": str(folder), **common, **ARCHITECTURES[name].arguments, **arguments}
    )


@pytest.mark.parametrize(
    ("name", "is_shared"),
    [
        pytest.param("qwen2_5_vl", True, id="positions of several axes"),
        pytest.param("llava", True, id="pictures"),
        pytest.param("qwen3_5", True, id="a state in place of keys"),
        pytest.param("gemma3", True, id="sliding windows"),
        pytest.param("mllama", False, id="inputs that cannot be cut"),
    ],
)
def test_captions_are_the_same(
    name: str, is_shared: bool, clips: list[Path], tmp_path: Path
) -> None:
    """A clip that is encoded once for its prompts has the captions of one that is read for each."""
    folder = ARCHITECTURES[name].write(tmp_path / name)
    alone = captioner(name, folder, share_prefix=False)
    expected = [(one.text, one.token_counts) for one in results_of(alone, clips, PROMPTS)]
    for batch_size in (1, 9):
        model = captioner(name, folder, batch_size=batch_size)
        assert [(r.text, r.token_counts) for r in results_of(model, clips, PROMPTS)] == expected
        assert bool(model.sharing.is_possible) == is_shared


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One checkpoint."""
    return ARCHITECTURES["qwen2_5_vl"].write(tmp_path_factory.mktemp("model") / "qwen")


def test_a_clip_is_encoded_once(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vision tower sees each clip once for all prompts, but for the two that are tried."""
    model = captioner("qwen2_5_vl", qwen)
    seen: list[int] = []
    tower = model.model.model.visual
    forward = tower.forward

    def counted(*args: object, **kwargs: object) -> object:
        seen.append(1)
        return forward(*args, **kwargs)

    monkeypatch.setattr(tower, "forward", counted)
    results_of(model, clips, PROMPTS)
    n_tried = 3  # once shared, and two jobs whole
    assert len(seen) == len(clips) + n_tried
    results_of(model, clips, PROMPTS)
    assert len(seen) == 2 * len(clips) + n_tried


def test_a_model_that_reads_otherwise_is_asked_apart(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = caption_all(captioner("qwen2_5_vl", qwen, share_prefix=False), clips, PROMPTS)
    wrong = sharing._continued

    def moved(*args: Any) -> dict[str, torch.Tensor]:
        tokens = wrong(*args)
        return {**tokens, "position_ids": tokens["position_ids"] + 5}

    monkeypatch.setattr(sharing, "_continued", moved)
    model = captioner("qwen2_5_vl", qwen)
    assert caption_all(model, clips, PROMPTS) == expected
    assert model.sharing.is_possible is False
    assert "logits differ" in model.sharing.reason


def test_drawn_captions_are_shared_and_beams_are_not(qwen: Path, clips: list[Path]) -> None:
    """Beams move the rows of a cache, so that each job goes with its clip."""
    model = captioner("qwen2_5_vl", qwen)
    beams = caption_all(model, clips[:1], PROMPTS, {**GREEDY, "num_beams": 2})
    assert all(len(caption) == 16 for caption in beams)
    assert model.sharing.is_possible is None
    drawn = caption_all(model, clips[:1], PROMPTS, {"max_new_tokens": 16, "temperature": 3.0})
    assert all(len(caption) == 16 for caption in drawn)
    assert model.sharing.is_possible
