"""Processors that put the marks of pictures before the text themselves."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.hf.loading import load_processor, prepare_tokenizer
from lmms_eval_captions.model_wrappers.hf.qformer import check_frames
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
    """Its processor."""
    loaded = load_processor(str(checkpoint), revision="main", trust_remote_code=False)
    prepare_tokenizer(loaded)
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


def test_more_than_one_visual_a_question(processor: Any) -> None:
    """What the model cannot be shown is named."""
    with pytest.raises(DataError, match="one clip or picture for each question, got 2 for 1"):
        processor(text=["A"], videos=[clip(4)] * 2, padding=True, return_tensors="pt")


def test_a_processor_can_be_copied(processor: Any) -> None:
    """Each thread that prepares has its own."""
    other = copy.deepcopy(processor)
    assert (other.n_frames, other.tokenizer is processor.tokenizer) == (4, False)


@pytest.mark.parametrize(
    "asked",
    [{"n_frames": 8}, {"fps": 1.0}, {"frame_pixels": 100}],
    ids=lambda asked: next(iter(asked)),
)
def test_other_frames_are_refused(processor: Any, asked: dict[str, Any]) -> None:
    """A number, rate or size that the model cannot take is an error before it loads."""
    given = {"n_frames": None, "fps": None, "frame_pixels": None, **asked}
    with pytest.raises(SettingsError, match="takes exactly 4 frame"):
        check_frames(processor, **given)
    check_frames(processor, 4, None, None)
    check_frames(object(), 8, 1.0, 100)


def test_its_frames_are_the_default(checkpoint: Path) -> None:
    """Nothing need be said of them."""
    model = CaptionHf(pretrained=str(checkpoint), device="cpu")
    assert model.budget.n_frames == 4
    with pytest.raises(SettingsError, match="max_num_frames=8"):
        CaptionHf(pretrained=str(checkpoint), device="cpu", max_num_frames=8)
