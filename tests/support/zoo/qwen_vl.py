"""Qwen2-VL, Qwen2.5-VL, Qwen3-VL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import chatml, library, make_tokenizer, save, text_config, token_id
from zoo.recipes import chat_about_pairs, chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

SPECIALS = (
    "<|im_start|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
TEMPLATE = chatml(
    "<|vision_start|><|image_pad|><|vision_end|>", "<|vision_start|><|video_pad|><|vision_end|>"
)


def rotary(sections: list[int], **more: object) -> dict[str, object]:
    """Positions in time, height and width."""
    return {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections, **more}


def marks(tokenizer: Any) -> dict[str, int]:
    """Ids of the tokens at which something is shown."""
    return {
        "image_token_id": token_id(tokenizer, "<|image_pad|>"),
        "video_token_id": token_id(tokenizer, "<|video_pad|>"),
        "vision_start_token_id": token_id(tokenizer, "<|vision_start|>"),
        "vision_end_token_id": token_id(tokenizer, "<|vision_end|>"),
    }


def write_qwen2_vl(folder: Path, **text: object) -> Path:
    """Qwen2-VL."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    size = {"shortest_edge": 28 * 28, "longest_edge": 56 * 56}
    processor = hf.Qwen2VLProcessor(
        hf.Qwen2VLImageProcessor(size=size),
        tokenizer,
        hf.Qwen2VLVideoProcessor(size=size),
        chat_template=TEMPLATE,
    )
    config = hf.Qwen2VLConfig(
        text_config=text_config(tokenizer, **{"rope_parameters": rotary([2, 3, 3]), **text}),
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": 64,
            "num_heads": 2,
            "mlp_ratio": 2,
            "initializer_range": 0.2,
        },
        **marks(tokenizer),
        tie_word_embeddings=False,
    )
    return save("Qwen2VLForConditionalGeneration", config, processor, folder)


def write_qwen2_5_vl(folder: Path, **text: object) -> Path:
    """Qwen2.5-VL."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    size = {"shortest_edge": 28 * 28, "longest_edge": 56 * 56}
    processor = hf.Qwen2_5_VLProcessor(
        hf.Qwen2VLImageProcessor(size=size),
        tokenizer,
        hf.Qwen2VLVideoProcessor(size=size),
        chat_template=TEMPLATE,
    )
    config = hf.Qwen2_5_VLConfig(
        text_config=text_config(tokenizer, rope_parameters=rotary([2, 3, 3]), **text),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.2,
        },
        **marks(tokenizer),
        tie_word_embeddings=False,
    )
    return save("Qwen2_5_VLForConditionalGeneration", config, processor, folder)


def tower_of_qwen3(**more: object) -> dict[str, object]:
    """Sizes of a tiny tower of Qwen3-VL."""
    return {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "initializer_range": 0.2,
        **more,
    }


def processor_of_qwen3(tokenizer: Any) -> Any:
    """Patches of 16 pixels; the size of a video is that of all its frames."""
    hf = library()
    return hf.Qwen3VLProcessor(
        hf.Qwen2VLImageProcessor(
            size={"shortest_edge": 32 * 32, "longest_edge": 64 * 64}, patch_size=16
        ),
        tokenizer,
        hf.Qwen3VLVideoProcessor(size={"shortest_edge": 32 * 32, "longest_edge": 8 * 64 * 64}),
        chat_template=TEMPLATE,
    )


def write_qwen3_vl(folder: Path, **text: object) -> Path:
    """Qwen3-VL."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    config = hf.Qwen3VLConfig(
        text_config=text_config(
            tokenizer,
            **{
                "head_dim": 16,
                "rope_parameters": rotary([2, 3, 3], mrope_interleaved=True),
                **text,
            },
        ),
        vision_config=tower_of_qwen3(deepstack_visual_indexes=[0, 1]),
        **marks(tokenizer),
        tie_word_embeddings=False,
    )
    processor = processor_of_qwen3(tokenizer)
    return save("Qwen3VLForConditionalGeneration", config, processor, folder)


def write_qwen3_vl_moe(folder: Path, **text: object) -> Path:
    """Qwen3-VL with experts."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    config = hf.Qwen3VLMoeConfig(
        text_config=text_config(
            tokenizer,
            head_dim=16,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            rope_parameters=rotary([2, 3, 3], mrope_interleaved=True),
            **text,
        ),
        vision_config=tower_of_qwen3(deepstack_visual_indexes=[0, 1]),
        **marks(tokenizer),
        tie_word_embeddings=False,
    )
    processor = processor_of_qwen3(tokenizer)
    return save("Qwen3VLMoeForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "qwen2_vl": Architecture(
        write_qwen2_vl,
        "Qwen2VLForConditionalGeneration",
        "Qwen/Qwen2-VL-7B-Instruct",
        chat_about_video,
    ),
    "qwen2_5_vl": Architecture(
        write_qwen2_5_vl,
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        chat_about_video,
    ),
    "qwen3_vl": Architecture(
        write_qwen3_vl,
        "Qwen3VLForConditionalGeneration",
        "Qwen/Qwen3-VL-8B-Instruct",
        chat_about_pairs,
    ),
    "qwen3_vl_moe": Architecture(
        write_qwen3_vl_moe,
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        chat_about_pairs,
    ),
}
