"""Processors that put the marks of pictures before the text themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from lmms_eval_captions.model_wrappers.hf.loading import load_processor
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of four frames."""
    folder = tmp_path_factory.mktemp("model") / "instructblipvideo"
    return ARCHITECTURES["instructblipvideo"].write(folder)


@pytest.fixture
def processor(checkpoint: Path) -> Any:
    loaded = load_processor(str(checkpoint), revision="main", trust_remote_code=False)
    loaded.tokenizer.padding_side = "left"
    return loaded


def clip(n_frames: int) -> torch.Tensor:
    """Frames of rising level."""
    levels = torch.arange(n_frames, dtype=torch.uint8) * 20
    return levels[:, None, None, None].expand(n_frames, 3, 28, 28).contiguous()


def test_short_clips_repeat_their_frames(processor: Any) -> None:
    """Four frames are shown of any clip, those of a shorter one several times, in order."""
    inputs = processor(
        text=["A", "A"], videos=[clip(4), clip(2)], padding=True, return_tensors="pt"
    )
    long, short = inputs["pixel_values"]
    assert long.shape == (4, 3, 28, 28)
    assert torch.equal(short, long[[0, 0, 1, 1]])


def test_a_picture_is_a_clip(processor: Any) -> None:
    """A model of videos is shown a picture four times."""
    picture = np.full((28, 28, 3), 20, np.uint8)
    shown = processor(text=["A"], images=[[picture]], padding=True, return_tensors="pt")
    inputs = processor(text=["A"], videos=[clip(2)[1:]], padding=True, return_tensors="pt")
    assert torch.equal(shown["pixel_values"], inputs["pixel_values"])


def test_each_tokenizer_pads_on_its_side(processor: Any) -> None:
    """The language model's on the left, after the marks; the Q-Former's on the right."""
    inputs = processor(
        text=["Describe.", "A"], videos=[clip(4)] * 2, padding=True, return_tensors="pt"
    )
    assert inputs["attention_mask"][1].tolist() == [1] * 16 + [0] * 8 + [1] * 2
    assert inputs["qformer_attention_mask"][1].tolist() == [1, 1] + [0] * 8
