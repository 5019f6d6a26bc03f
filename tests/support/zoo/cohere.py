"""Aya Vision and Command A Vision: images alone, in tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_TURNS = (
    "{{{{ bos_token }}}}{{% for m in messages %}}<|START_OF_TURN_TOKEN|>"
    "{{% if m['role'] == 'user' %}}<|USER_TOKEN|>{{% elif m['role'] == 'assistant' %}}"
    "<|CHATBOT_TOKEN|>{{% else %}}<|SYSTEM_TOKEN|>{{% endif %}}"
    "{{% for c in m['content'] %}}{{% if c['type'] == 'image' %}}{image}"
    "{{% elif c['type'] == 'text' %}}{{{{ c['text'] }}}}{{% endif %}}{{% endfor %}}"
    "<|END_OF_TURN_TOKEN|>{{% endfor %}}"
    "{{% if add_generation_prompt %}}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{{% endif %}}"
)
_SPECIALS = (
    "<|START_OF_TURN_TOKEN|>",
    "<|USER_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
    "<|SYSTEM_TOKEN|>",
    "<|IMG_PATCH|>",
    "<|START_OF_IMG|>",
    "<|END_OF_IMG|>",
    "<|IMG_LINE_BREAK|>",
)
_SIZE = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
_COHERE = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64}


def write_aya_vision(folder: Path, **text: object) -> Path:
    """Aya Vision, with Cohere2."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<image>", "TILE", "TILE_GLOBAL", *_SPECIALS),
        start="<BOS_TOKEN>",
        end="<|END_OF_TURN_TOKEN|>",
        pad="<PAD>",
    )
    processor = hf.AyaVisionProcessor(
        hf.GotOcr2ImageProcessor(size=_SIZE, min_patches=1, max_patches=2),
        tokenizer,
        patch_size=7,
        img_size=IMAGE_SIZE,
        downsample_factor=2,
        chat_template=_TURNS.format(image="<image>"),
    )
    config = hf.AyaVisionConfig(
        text_config={"model_type": "cohere2", **text_config(tokenizer, **{**_COHERE, **text})},
        vision_config={"model_type": "siglip_vision_model", **tower(vision_use_head=False)},
        downsample_factor=2,
        image_token_index=token_id(tokenizer, "<|IMG_PATCH|>"),
        tie_word_embeddings=False,
    )
    return save("AyaVisionForConditionalGeneration", config, processor, folder)


def write_cohere2_vision(folder: Path, **text: object) -> Path:
    """Command A Vision, with Cohere2."""
    hf = library()
    tokenizer = make_tokenizer(
        _SPECIALS,
        start="<BOS_TOKEN>",
        end="<|END_OF_TURN_TOKEN|>",
        pad="<PAD>",
        boi_token="<|START_OF_IMG|>",  # noqa: S106
        eoi_token="<|END_OF_IMG|>",  # noqa: S106
        image_token="<|IMG_PATCH|>",  # noqa: S106
        img_line_break_token="<|IMG_LINE_BREAK|>",  # noqa: S106
    )
    # One token for each of patch_size ** 2 parts of a tile: 2 by 2, of 4 by 4 patches in fours.
    processor = hf.Cohere2VisionProcessor(
        hf.Cohere2VisionImageProcessor(size=_SIZE, min_patches=1, max_patches=2, patch_size=2),
        tokenizer,
        chat_template=_TURNS.format(image="<|IMG_PATCH|>"),
    )
    config = hf.Cohere2VisionConfig(
        text_config={"model_type": "cohere2", **text_config(tokenizer, **{**_COHERE, **text})},
        vision_config={"model_type": "siglip_vision_model", **tower(vision_use_head=False)},
        downsample_factor=2,
        alignment_intermediate_size=64,
        image_token_id=token_id(tokenizer, "<|IMG_PATCH|>"),
        tie_word_embeddings=False,
    )
    return save("Cohere2VisionForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "aya_vision": Architecture(
        write_aya_vision,
        "AyaVisionForConditionalGeneration",
        "CohereLabs/aya-vision-8b",
        chat_about_images,
        shown="images",
    ),
    "cohere2_vision": Architecture(
        write_cohere2_vision,
        "Cohere2VisionForConditionalGeneration",
        "CohereLabs/command-a-vision-07-2025",
        chat_about_images,
        shown="images",
    ),
}
