"""LLaVA-1.5, LLaVA-NeXT and VipLLaVA: images alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

# Of llava-hf/llava-1.5-7b-hf: visuals first, then texts.
VICUNA = (
    "{% for message in messages %}"
    "{% if message['role'] != 'system' %}{{ message['role'].upper() + ': '}}{% endif %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'image') %}"
    "{{ '<image>\n' }}{% endfor %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'video') %}"
    "{{ '<video>\n' }}{% endfor %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}"
    "{{ content['text'] + ' '}}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)


PINPOINTS = [[28, 56], [56, 28], [56, 56]]
"""Sizes that tiles make, height and width, in pixels."""


def vicuna_tokenizer() -> Any:
    """With a start token, as Llama's, and marks of visuals."""
    return make_tokenizer(("<image>", "<video>"), start="<s>", end="</s>", pad="<pad>")


def clip_processor(name: str) -> Any:
    """An image processor of the square that CLIP sees, cut out of the middle."""
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    return getattr(library(), name)(size={"shortest_edge": IMAGE_SIZE}, crop_size=size)


def write_llava(folder: Path, **text: object) -> Path:
    """LLaVA-1.5, with Llama."""
    hf = library()
    tokenizer = vicuna_tokenizer()
    processor = hf.LlavaProcessor(
        clip_processor("CLIPImageProcessor"),
        tokenizer,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VICUNA,
    )
    config = hf.LlavaConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={"model_type": "clip_vision_model", **tower(projection_dim=32)},
        image_token_index=token_id(tokenizer, "<image>"),
        image_seq_length=16,
        tie_word_embeddings=False,
    )
    return save("LlavaForConditionalGeneration", config, processor, folder)


def write_llava_next(folder: Path, **text: object) -> Path:
    """LLaVA-NeXT (1.6), with Llama: an image is several tiles."""
    hf = library()
    tokenizer = vicuna_tokenizer()
    image_processor = clip_processor("LlavaNextImageProcessor")
    image_processor.image_grid_pinpoints = PINPOINTS
    processor = hf.LlavaNextProcessor(
        image_processor,
        tokenizer,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VICUNA,
    )
    config = hf.LlavaNextConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={"model_type": "clip_vision_model", **tower(projection_dim=32)},
        image_token_index=token_id(tokenizer, "<image>"),
        image_grid_pinpoints=PINPOINTS,
        image_seq_length=16,
        tie_word_embeddings=False,
    )
    return save("LlavaNextForConditionalGeneration", config, processor, folder)


def write_vipllava(folder: Path, **text: object) -> Path:
    """VipLLaVA, with Llama: features of several layers of the tower."""
    hf = library()
    tokenizer = vicuna_tokenizer()
    processor = hf.LlavaProcessor(
        clip_processor("CLIPImageProcessor"),
        tokenizer,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VICUNA,
    )
    config = hf.VipLlavaConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={"model_type": "clip_vision_model", **tower(projection_dim=32)},
        vision_feature_layer=[-2, -1],
        image_token_index=token_id(tokenizer, "<image>"),
        image_seq_length=16,
        tie_word_embeddings=False,
    )
    return save("VipLlavaForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "llava": Architecture(
        write_llava,
        "LlavaForConditionalGeneration",
        "llava-hf/llava-1.5-7b-hf",
        chat_about_images,
        shown="images",
    ),
    "llava_next": Architecture(
        write_llava_next,
        "LlavaNextForConditionalGeneration",
        "llava-hf/llava-v1.6-vicuna-7b-hf",
        chat_about_images,
        shown="images",
    ),
    "vipllava": Architecture(
        write_vipllava,
        "VipLlavaForConditionalGeneration",
        "llava-hf/vip-llava-7b-hf",
        chat_about_images,
        shown="images",
    ),
}
