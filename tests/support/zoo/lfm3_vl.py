"""LFM3-VL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config
from zoo.qwen_vl import SPECIALS, TEMPLATE, marks
from zoo.recipes import chat_about_pairs

if TYPE_CHECKING:
    from pathlib import Path


def write_lfm3_vl(folder: Path, **text: object) -> Path:
    """LFM3-VL: layers of convolution and of attention."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    processor = hf.Lfm3VlProcessor(
        hf.Qwen2VLImageProcessor(
            size={"shortest_edge": 32 * 32, "longest_edge": 64 * 64}, patch_size=16
        ),
        tokenizer,
        hf.Qwen3VLVideoProcessor(size={"shortest_edge": 32 * 32, "longest_edge": 8 * 64 * 64}),
        chat_template=TEMPLATE,
    )
    config = hf.Lfm3VlConfig(
        text_config={
            "model_type": "lfm3",
            **text_config(tokenizer, layer_types=["conv", "full_attention"], **text),
        },
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "layer_types": ["conv", "full_attention"],
            "initializer_range": 0.2,
        },
        **marks(tokenizer),
        projector_hidden_size=64,
        tie_word_embeddings=False,
    )
    return save("Lfm3VlForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "lfm3_vl": Architecture(
        write_lfm3_vl,
        "Lfm3VlForConditionalGeneration",
        "LiquidAI/LFM3-VL",
        chat_about_pairs,
    ),
}
