"""AuroraCap's released layout, read by path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPVisionModel

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.auroracap.checkpoint import (
    load_auroracap,
    load_processor,
)
from tiny_auroracap import IMAGE_SIZE, write_auroracap

if TYPE_CHECKING:
    from pathlib import Path

TOWER_FILE = "visual_encoder/model.safetensors"

pytestmark = pytest.mark.filterwarnings("ignore:.*")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A tiny AuroraCap."""
    return write_auroracap(tmp_path / "auroracap")


def seen_with(checkpoint: Path) -> torch.Tensor:
    pixels = torch.randn(1, 3, IMAGE_SIZE, IMAGE_SIZE, generator=torch.Generator().manual_seed(0))
    return load_auroracap(str(checkpoint)).see(pixels, kept_ratio=1.0)[0]


def test_every_weight_is_the_written_one(checkpoint: Path) -> None:
    """Tower, projector and language model hold what was saved, by the names of transformers 4."""
    model = load_auroracap(str(checkpoint))
    tower = load_file(checkpoint / TOWER_FILE)
    assert all(name.startswith("vision_model.") for name in tower)
    loaded = model.tower.state_dict()
    assert len(loaded) < len(tower), "the last layer is cut off"
    for name, tensor in loaded.items():
        assert torch.equal(tensor, tower[f"vision_model.{name.removeprefix('vision_model.')}"])
    projector = load_file(checkpoint / "projector/model.safetensors")
    assert set(projector) == {f"model.{i}.{kind}" for i in (0, 2) for kind in ("weight", "bias")}
    assert all(
        torch.equal(model.projector.state_dict()[name], projector[name]) for name in projector
    )
    llm = load_file(checkpoint / "model.safetensors")
    assert all(torch.equal(model.llm.state_dict()[name], tensor) for name, tensor in llm.items())


def test_what_is_read_is_the_last_but_one_hidden_state(checkpoint: Path) -> None:
    """The tower's last but one output without the class token, through two layers and a GELU."""
    pixels = torch.randn(1, 3, IMAGE_SIZE, IMAGE_SIZE, generator=torch.Generator().manual_seed(0))
    tower = CLIPVisionModel.from_pretrained(checkpoint / "visual_encoder").eval()
    weights = load_file(checkpoint / "projector/model.safetensors")
    with torch.no_grad():
        hidden = tower(pixels, output_hidden_states=True).hidden_states[-2][0, 1:]
        inner = torch.nn.functional.gelu(
            hidden @ weights["model.0.weight"].T + weights["model.0.bias"]
        )
        expected = inner @ weights["model.2.weight"].T + weights["model.2.bias"]
    torch.testing.assert_close(seen_with(checkpoint), expected)


def test_a_missing_weight_is_an_error_and_not_a_random_number(checkpoint: Path) -> None:
    """A tower, a projector or a language model that lacks a weight is refused by name."""
    for file, name in {
        TOWER_FILE: "vision_model.encoder.layers.1.mlp.fc1.weight",
        "projector/model.safetensors": "model.2.bias",
        "model.safetensors": "model.norm.weight",
    }.items():
        weights = load_file(checkpoint / file)
        save_file(
            {k: v for k, v in weights.items() if k != name}, checkpoint / file, {"format": "pt"}
        )
        with pytest.raises(
            SettingsError, match=name.removeprefix("vision_model.").replace(".", r"\.")
        ):
            load_auroracap(str(checkpoint))
        save_file(weights, checkpoint / file, {"format": "pt"})


def test_pixels_are_a_middle_square(checkpoint: Path) -> None:
    """The released inference code crops, too."""
    frame = torch.zeros(1, 3, 90, 160, dtype=torch.uint8)
    square = load_processor(str(checkpoint))(images=frame, return_tensors="pt")["pixel_values"]
    assert square.shape == (1, 3, IMAGE_SIZE, IMAGE_SIZE)
