"""Checkpoints are loaded whatever their form, and those that cannot caption are told why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from loguru import logger
from transformers import AutoTokenizer

from caption_requests import caption_all
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.hf.loading import load_config, load_model
from zoo import ARCHITECTURES
from zoo.llava_onevision import write_llava_onevision
from zoo.remote_code import write_remote_code

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore:.*")

WHERE: dict[str, Any] = {"revision": "main", "trust_remote_code": False}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of more frames than are looked at."""
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", 9)


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that transformers knows."""
    return write_llava_onevision(tmp_path_factory.mktemp("model") / "llava")


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    said: list[str] = []
    sink = logger.add(lambda message: said.append(str(message)), level="WARNING")
    yield said
    logger.remove(sink)


def make(checkpoint: Path, **arguments: Any) -> CaptionHf:
    """A captioner on the CPU."""
    return CaptionHf(pretrained=str(checkpoint), device="cpu", max_num_frames=3, **arguments)


@pytest.mark.parametrize(
    "auto_class",
    ["AutoModelForCausalLM", "AutoModel", "AutoModelForVision2Seq", "AutoModelForImageTextToText"],
)
def test_a_checkpoint_with_its_own_code(
    auto_class: str, llava: Path, clip: Path, tmp_path: Path
) -> None:
    """It captions as transformers' own code for the same weights, under whichever auto class."""
    checkpoint = write_remote_code(tmp_path / auto_class.lower(), auto_class)
    model = make(checkpoint, trust_remote_code=True)
    assert type(model.model).__name__ == "TinyForCaptions"
    assert caption_all(model, [clip]) == caption_all(make(llava), [clip])


def test_code_that_is_not_trusted(tmp_path: Path) -> None:
    """A checkpoint's own code is not run unless the user says so, and what to say is named."""
    checkpoint = write_remote_code(tmp_path / "untrusted")
    with pytest.raises(SettingsError, match="add trust_remote_code=true if you trust it"):
        make(checkpoint)


def test_a_language_model_is_refused(llava: Path, tmp_path: Path) -> None:
    """A checkpoint that sees nothing is named before its weights are read."""
    AutoTokenizer.from_pretrained(llava).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    with pytest.raises(SettingsError, match="has no processor for pictures or videos"):
        make(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A wrong path is answered in words."""
    with pytest.raises(SettingsError, match=r"there is no folder .*nowhere: pretrained= takes"):
        make(tmp_path / "nowhere")


def test_weights_that_are_missing(llava: Path, tmp_path: Path, warnings: list[str]) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(llava, tmp_path / "part")
    path = tmp_path / "part" / "model.safetensors"
    weights = load_file(path)
    gone = next(name for name in weights if "language_model" in name)
    save_file({k: v for k, v in weights.items() if k != gone}, path, {"format": "pt"})
    config = load_config(str(tmp_path / "part"), **WHERE)
    load_model(str(tmp_path / "part"), config, **WHERE)
    assert "lacks 1 weights, which are random now" in "".join(warnings)
    warnings.clear()
    load_model(str(llava), load_config(str(llava), **WHERE), **WHERE)
    assert not warnings


@pytest.mark.parametrize("n_kept", [0, 1000], ids=["empty", "cut off"])
def test_damaged_weights(n_kept: int, llava: Path, tmp_path: Path) -> None:
    """A download that broke off is answered in words."""
    shutil.copytree(llava, tmp_path / "broken")
    path = tmp_path / "broken" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:n_kept])
    with pytest.raises(SettingsError, match="broken cannot be loaded"):
        make(tmp_path / "broken")


def test_an_adapter_that_is_missing_is_named(tmp_path: Path, warnings: list[str]) -> None:
    """Phi-4-multimodal sees by an adapter: with it its weights are used, without it a warning."""
    folder = ARCHITECTURES["phi4_multimodal"].write(tmp_path / "phi4")
    model = load_model(str(folder), load_config(str(folder), **WHERE), **WHERE)
    assert model.active_adapters() == ["vision"]
    assert not warnings
    shutil.rmtree(folder / "vision-lora")
    load_model(str(folder), load_config(str(folder), **WHERE), **WHERE)
    assert "the adapter in vision-lora/ cannot be loaded" in "".join(warnings)
