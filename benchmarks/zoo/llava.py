"""LLaVA-1.5: images alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower

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


def vicuna_tokenizer() -> Any:  # noqa: ANN401
    """With a start token, as Llama's, and marks of visuals."""
    return make_tokenizer(("<image>", "<video>"), start="<s>", end="</s>", pad="<pad>")


def clip_processor(name: str) -> Any:  # noqa: ANN401
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
