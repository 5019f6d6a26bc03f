"""LLaVA-OneVision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import (
    IMAGE_SIZE,
    chatml,
    library,
    make_tokenizer,
    save,
    text_config,
    token_id,
    tower,
)
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_PINPOINTS = [[28, 28], [28, 56], [56, 28], [56, 56]]


def write_llava_onevision(folder: Path, **text: object) -> Path:
    """LLaVA-OneVision, with Qwen2."""
    hf = library()
    tokenizer = make_tokenizer(("<|im_start|>", "<image>", "<video>"))
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.LlavaOnevisionProcessor(
        hf.LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=_PINPOINTS),
        tokenizer,
        hf.LlavaOnevisionVideoProcessor(size=size),
        num_image_tokens=(IMAGE_SIZE // 7) ** 2,
        vision_feature_select_strategy="full",
        chat_template=chatml("<image>", "<video>"),
    )
    config = hf.LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", **text_config(tokenizer, **text)},
        vision_config={"model_type": "siglip_vision_model", **tower(vision_use_head=False)},
        image_token_index=token_id(tokenizer, "<image>"),
        video_token_index=token_id(tokenizer, "<video>"),
        image_grid_pinpoints=_PINPOINTS,
        tie_word_embeddings=False,
    )
    return save("LlavaOnevisionForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "llava_onevision": Architecture(
        write_llava_onevision,
        "LlavaOnevisionForConditionalGeneration",
        "llava-hf/llava-onevision-qwen2-7b-ov-hf",
        chat_about_video,
    ),
}
