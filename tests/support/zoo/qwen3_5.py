"""Qwen3.5: layers of linear and of full attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config
from zoo.qwen_vl import SPECIALS, marks, processor_of_qwen3, rotary, tower_of_qwen3
from zoo.recipes import chat_about_pairs

if TYPE_CHECKING:
    from pathlib import Path

_MIXED = {
    "head_dim": 16,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"],
}
_ROTARY = rotary([1, 1, 2], mrope_interleaved=True, partial_rotary_factor=0.5)


def write_qwen3_5(folder: Path, **text: object) -> Path:
    """Qwen3.5."""
    tokenizer = make_tokenizer(SPECIALS)
    config = library().Qwen3_5Config(
        text_config=text_config(tokenizer, rope_parameters=_ROTARY, **{**_MIXED, **text}),
        vision_config=tower_of_qwen3(),
        **marks(tokenizer),
        tie_word_embeddings=False,
    )
    processor = processor_of_qwen3(tokenizer)
    return save("Qwen3_5ForConditionalGeneration", config, processor, folder)


def write_qwen3_5_moe(folder: Path, **text: object) -> Path:
    """Qwen3.5 with experts."""
    tokenizer = make_tokenizer(SPECIALS)
    experts = {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
    }
    config = library().Qwen3_5MoeConfig(
        text_config=text_config(
            tokenizer, rope_parameters=_ROTARY, **{**_MIXED, **experts, **text}
        ),
        vision_config=tower_of_qwen3(),
        **marks(tokenizer),
        tie_word_embeddings=False,
    )
    processor = processor_of_qwen3(tokenizer)
    return save("Qwen3_5MoeForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "qwen3_5": Architecture(
        write_qwen3_5,
        "Qwen3_5ForConditionalGeneration",
        "Qwen/Qwen3.5-9B",
        chat_about_pairs,
    ),
    "qwen3_5_moe": Architecture(
        write_qwen3_5_moe,
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen/Qwen3.5-35B-A3B",
        chat_about_pairs,
    ),
}
