"""Molmo2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, chatml, library, make_tokenizer, save, text_config, token_id
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_PARTS = (
    "<im_patch>",
    "<im_col>",
    "<im_start>",
    "<low_res_im_start>",
    "<frame_start>",
    "<im_end>",
    "<frame_end>",
    "<im_low>",
)


def write_molmo2(folder: Path, **text: object) -> Path:
    """Molmo2, with Qwen3."""
    hf = library()
    tokenizer = make_tokenizer(("<|im_start|>", "<|image|>", "<|video|>", *_PARTS))
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.Molmo2Processor(
        hf.Molmo2ImageProcessor(size=size, patch_size=7, max_crops=2, overlap_margins=[0, 0]),
        hf.Molmo2VideoProcessor(size=size, patch_size=7),
        tokenizer,
        chat_template=chatml("<|image|>", "<|video|>"),
    )
    config = hf.Molmo2Config(
        text_config=text_config(tokenizer, head_dim=16, additional_vocab_size=len(_PARTS), **text),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "image_size": [IMAGE_SIZE, IMAGE_SIZE],
            "patch_size": 7,
            "initializer_range": 0.2,
        },
        adapter_config={
            "vision_feature_layer": [-1, -2],
            "hidden_size": 32,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": 64,
            "text_hidden_size": 64,
            "initializer_range": 0.2,
        },
        image_start_token_id=token_id(tokenizer, "<im_start>"),
        low_res_image_start_token_id=token_id(tokenizer, "<low_res_im_start>"),
        image_end_token_id=token_id(tokenizer, "<im_end>"),
        image_patch_id=token_id(tokenizer, "<im_patch>"),
        frame_start_token_id=token_id(tokenizer, "<frame_start>"),
        frame_end_token_id=token_id(tokenizer, "<frame_end>"),
        tie_word_embeddings=False,
    )
    return save("Molmo2ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "molmo2": Architecture(
        write_molmo2,
        "Molmo2ForConditionalGeneration",
        "allenai/Molmo2-8B",
        chat_about_video,
    ),
}
