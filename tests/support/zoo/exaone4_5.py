"""EXAONE 4.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config
from zoo.qwen_vl import SPECIALS, TEMPLATE, marks
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path


def write_exaone4_5(folder: Path, **text: object) -> Path:
    """EXAONE 4.5."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    size = {"shortest_edge": 28 * 28, "longest_edge": 56 * 56}
    processor = hf.Exaone4_5_Processor(
        hf.Qwen2VLImageProcessor(size=size),
        tokenizer,
        hf.Qwen2VLVideoProcessor(size=size),
        chat_template=TEMPLATE,
    )
    shown = marks(tokenizer)
    config = hf.Exaone4_5_Config(
        text_config={
            "model_type": "exaone4",
            **text_config(
                tokenizer,
                layer_types=["sliding_attention", "full_attention"],
                sliding_window=64,
                **text,
            ),
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "num_key_value_heads": 1,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.2,
        },
        image_token_id=shown["image_token_id"],
        video_token_id=shown["video_token_id"],
        tie_word_embeddings=False,
    )
    return save("Exaone4_5_ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "exaone4_5": Architecture(
        write_exaone4_5,
        "Exaone4_5_ForConditionalGeneration",
        "LGAI-EXAONE/EXAONE-4.5-33B",
        chat_about_video,
    ),
}
