"""A checkpoint that brings its own code, as those do that transformers does not know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from zoo.building import library
from zoo.llava_onevision import write_llava_onevision

if TYPE_CHECKING:
    from pathlib import Path

_CONFIGURATION: Final = """
from transformers import LlavaOnevisionConfig

class TinyConfig(LlavaOnevisionConfig):
    model_type = "tiny_remote"
"""
_MODELING: Final = """
from transformers import LlavaOnevisionForConditionalGeneration, PreTrainedModel

from .configuration_tiny import TinyConfig

class TinyForCaptions(LlavaOnevisionForConditionalGeneration):
    config_class = TinyConfig

class TinyTower(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.post_init()
"""
_PROCESSING: Final = """
from transformers import LlavaOnevisionProcessor

class TinyProcessor(LlavaOnevisionProcessor):
    pass
"""


def write_remote_code(
    folder: Path, auto_class: str = "AutoModelForCausalLM", model: str = "TinyForCaptions"
) -> Path:
    """LLaVA-OneVision's weights and processor under code of the checkpoint's own.

    Args:
        folder: Where it is written.
        auto_class: Under which the ``auto_map`` names the model.
        model: ``TinyForCaptions``, or ``TinyTower``, which writes nothing.
    """
    from safetensors.torch import save_file

    write_llava_onevision(folder)
    # Under the names that its classes have now: what transformers renames of its own, it leaves.
    known = library().LlavaOnevisionForConditionalGeneration.from_pretrained(folder)
    save_file(known.state_dict(), folder / "model.safetensors", {"format": "pt"})
    for name, code in (
        ("configuration", _CONFIGURATION),
        ("modeling", _MODELING),
        ("processing", _PROCESSING),
    ):
        (folder / f"{name}_tiny.py").write_text(code)
    _change(
        folder / "config.json",
        model_type="tiny_remote",
        architectures=[model],
        auto_map={
            "AutoConfig": "configuration_tiny.TinyConfig",
            auto_class: f"modeling_tiny.{model}",
        },
    )
    _change(
        folder / "processor_config.json",
        processor_class="TinyProcessor",
        auto_map={"AutoProcessor": "processing_tiny.TinyProcessor"},
    )
    return folder


def _change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
