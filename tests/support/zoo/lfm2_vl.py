"""LFM2-VL: images alone, in their own shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import chatml, library, make_tokenizer, save, text_config, token_id
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path


def write_lfm2_vl(folder: Path, **text: object) -> Path:
    """LFM2-VL: layers of convolution and of attention."""
    hf = library()
    tiles = [f"<|img_row_{row}_col_{column}|>" for row in range(1, 5) for column in range(1, 5)]
    tokenizer = make_tokenizer(
        (
            "<|im_start|>",
            "<image>",
            "<|image_start|>",
            "<|image_end|>",
            "<|img_thumbnail|>",
            *tiles,
        ),
        start="<|startoftext|>",
        pad="<|pad|>",
    )
    processor = hf.Lfm2VlProcessor(
        hf.Lfm2VlImageProcessor(
            encoder_patch_size=7,
            tile_size=28,
            min_image_tokens=4,
            max_image_tokens=16,
            max_tiles=2,
            max_num_patches=64,
        ),
        tokenizer,
        chat_template="{{ bos_token }}" + chatml("<image>"),
    )
    config = hf.Lfm2VlConfig(
        text_config={
            "model_type": "lfm2",
            **text_config(tokenizer, layer_types=["conv", "full_attention"], **text),
        },
        vision_config={
            "model_type": "siglip2_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_patches": 64,
            "patch_size": 7,
            "vision_use_head": False,
        },
        image_token_id=token_id(tokenizer, "<image>"),
        projector_hidden_size=64,
        tie_word_embeddings=False,
    )
    return save("Lfm2VlForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "lfm2_vl": Architecture(
        write_lfm2_vl,
        "Lfm2VlForConditionalGeneration",
        "LiquidAI/LFM2-VL-1.6B",
        chat_about_images,
        shown="images",
    ),
}
