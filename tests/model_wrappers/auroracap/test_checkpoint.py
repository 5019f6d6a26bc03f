"""AuroraCap's released layout, read by path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPImageProcessor, CLIPVisionModel

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.auroracap.checkpoint import (
    Projector,
    load_auroracap,
    load_processor,
)
from tiny_auroracap import IMAGE_SIZE, tiny_tower, write_auroracap

if TYPE_CHECKING:
    from pathlib import Path

TOWER_FILE = "visual_encoder/model.safetensors"
POSITIONS = "vision_model.embeddings.position_embedding.weight"

pytestmark = pytest.mark.filterwarnings("ignore:.*")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A tiny AuroraCap."""
    return write_auroracap(tmp_path / "auroracap")


def seen_with(checkpoint: Path) -> torch.Tensor:
    """What the loaded networks make of one picture, tower and projector."""
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


@pytest.mark.parametrize("n_files", [1, 3])
def test_pickled_and_split_weights_are_read(checkpoint: Path, n_files: int) -> None:
    """``pytorch_model*.bin`` serves as well as safetensors, in one file or several."""
    expected = seen_with(checkpoint)
    weights = load_file(checkpoint / TOWER_FILE)
    (checkpoint / TOWER_FILE).unlink()
    names = sorted(weights)
    for number in range(n_files):
        part = {name: weights[name] for name in names[number::n_files]}
        torch.save(part, checkpoint / f"visual_encoder/pytorch_model-0000{number}.bin")
    assert torch.equal(seen_with(checkpoint), expected)


def test_learned_positions_win_over_stretched_ones(checkpoint: Path) -> None:
    """Where a checkpoint has ``pos_emb``, the embedding may be of another picture's shape."""
    expected = seen_with(checkpoint)
    weights = load_file(checkpoint / TOWER_FILE)
    weights["pos_emb"] = weights[POSITIONS].clone()
    weights[POSITIONS] = torch.randn(29, 32)
    save_file(weights, checkpoint / TOWER_FILE)
    assert torch.equal(seen_with(checkpoint), expected)


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


def test_weights_of_another_size_are_refused(checkpoint: Path) -> None:
    """A projector whose config says otherwise than its weights is named."""
    config = json.loads((checkpoint / "projector/config.json").read_text())
    (checkpoint / "projector/config.json").write_text(
        json.dumps({**config, "visual_hidden_size": 33})
    )
    with pytest.raises(SettingsError, match="do not fit"):
        load_auroracap(str(checkpoint))


@pytest.mark.parametrize("part", ["config.json", "visual_encoder", "projector"])
def test_another_layout_is_refused_by_what_is_missing(checkpoint: Path, part: str) -> None:
    """The message names the file that AuroraCap's layout has."""
    (checkpoint / part).rename(checkpoint / "elsewhere")
    with pytest.raises(SettingsError, match=part):
        load_processor(str(checkpoint))


@pytest.mark.parametrize("depth", [1, 3])
def test_a_projector_of_another_depth(tmp_path: Path, depth: int) -> None:
    """Depth, activation and bias are those of the config."""
    written = Projector(4, 6, depth=depth, hidden_act="relu", bias=False)
    config = {"visual_hidden_size": 4, "llm_hidden_size": 6, "depth": depth}
    (tmp_path / "config.json").write_text(
        json.dumps({**config, "hidden_act": "relu", "bias": False})
    )
    save_file(written.state_dict(), tmp_path / "model.safetensors")
    read = Projector.from_pretrained(tmp_path)
    features = torch.randn(2, 4)
    assert torch.equal(read(features), written(features))
    assert len(read.state_dict()) == depth


def test_pixels_are_a_middle_square_or_the_whole_frame(checkpoint: Path) -> None:
    """Released inference crops; training kept the aspect, its short side at the tower's size."""
    frame = torch.zeros(1, 3, 90, 160, dtype=torch.uint8)
    square = load_processor(str(checkpoint))(images=frame, return_tensors="pt")["pixel_values"]
    whole = load_processor(str(checkpoint), keep_aspect=True)(images=frame, return_tensors="pt")
    assert square.shape == (1, 3, IMAGE_SIZE, IMAGE_SIZE)
    assert whole["pixel_values"].shape == (1, 3, IMAGE_SIZE, IMAGE_SIZE * 160 // 90)


def test_a_processor_in_the_checkpoint_is_used(checkpoint: Path) -> None:
    """``visual_encoder/preprocessor_config.json`` goes before CLIP's own numbers."""
    theirs = CLIPImageProcessor(
        size={"shortest_edge": 28}, crop_size=28, image_mean=[0.5, 0.5, 0.5]
    )
    theirs.save_pretrained(checkpoint / "visual_encoder")
    processor = load_processor(str(checkpoint))
    assert list(processor.image_mean) == [0.5, 0.5, 0.5]
    frame = torch.zeros(1, 3, 90, 160, dtype=torch.uint8)
    assert processor(images=frame, return_tensors="pt")["pixel_values"].shape == (1, 3, 28, 28)


def test_half_precision_holds_for_all_three(checkpoint: Path) -> None:
    """One dtype for tower, projector and language model."""
    model = load_auroracap(str(checkpoint), dtype=torch.bfloat16)
    seen = model.see(torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE), kept_ratio=0.5)
    assert {seen[0].dtype, model.tower.dtype, model.llm.dtype} == {torch.bfloat16}
    assert tiny_tower().dtype == torch.float32
