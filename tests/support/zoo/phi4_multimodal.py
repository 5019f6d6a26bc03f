"""Phi-4-multimodal: pictures in crops, adapters to see with, a template that wants text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id, tower

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import BatchFeature

    from zoo.recipes import Shown

_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
_CROP = 64
"""Pixels of a crop; with patches of 2, its 32 x 32 patches are as many as the real one's."""


def write_phi4_multimodal(folder: Path, **text: object) -> Path:
    """Phi-4-multimodal, with the adapter for pictures."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|user|>", "<|assistant|>", "<|system|>"),
        end="<|end|>",
        image_token="<|image|>",  # noqa: S106
        audio_token="<|audio|>",  # noqa: S106
    )
    processor = hf.Phi4MultimodalProcessor(
        hf.Phi4MultimodalImageProcessor(
            size={"height": _CROP, "width": _CROP}, patch_size=2, dynamic_hd=2
        ),
        hf.Phi4MultimodalFeatureExtractor(),
        tokenizer,
        chat_template=_TEMPLATE,
    )
    config = hf.Phi4MultimodalConfig(
        **text_config(tokenizer, **text),
        original_max_position_embeddings=8192,
        vision_config=tower(
            num_hidden_layers=3,
            image_size=_CROP,
            crop_size=_CROP,
            patch_size=2,
            image_token_id=token_id(tokenizer, "<|image|>"),
        ),
        audio_config={
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_blocks": 1,
            "num_attention_heads": 2,
            "ext_pw_out_channel": 32,
            "depthwise_separable_out_channel": 32,
            "nemo_conv_channels": 32,
            "audio_token_id": token_id(tokenizer, "<|audio|>"),
        },
    )
    save("Phi4MultimodalForCausalLM", config, processor, folder)
    _write_adapter(folder)
    return folder


def _write_adapter(folder: Path) -> None:
    """An adapter of random weights, where real checkpoints have theirs."""
    import torch
    from peft import LoraConfig, get_peft_model

    model = library().Phi4MultimodalForCausalLM.from_pretrained(folder)
    torch.manual_seed(1)
    targets = r"model\.layers\.\d+\.(self_attn\.(qkv|o)_proj|mlp\.(gate_up|down)_proj)"
    adapter = LoraConfig(r=4, lora_alpha=8, target_modules=targets, init_lora_weights=False)
    get_peft_model(model, adapter).save_pretrained(str(folder / "vision-lora"))


def _load(folder: Path) -> Any:
    """The model as its page loads it, with the adapter switched on.

    The other ways of attention let a patch see those before it alone, in pictures without padding
    (transformers 5.23).
    """
    model = library().AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    model.load_adapter(
        str(folder), adapter_name="vision", adapter_kwargs={"subfolder": "vision-lora"}
    )
    model.set_adapter("vision")
    return model


def _recipe(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    marks = "<|image|>" * len(shown.frames)
    inputs: BatchFeature = processor(
        text=f"<|user|>{marks}{prompt}<|end|><|assistant|>",
        images=shown.pictures(),
        return_tensors="pt",
    )
    return inputs


ARCHITECTURES = {
    "phi4_multimodal": Architecture(
        write_phi4_multimodal,
        "Phi4MultimodalForCausalLM",
        "microsoft/Phi-4-multimodal-instruct",
        _recipe,
        shown="images",
        load=_load,
        needs=("peft",),
        # 545 tokens a frame, however small the model.
        arguments={"max_num_frames": 2},
    ),
}
