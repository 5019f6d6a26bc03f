"""Mistral 3 and Pixtral: images alone, in their own shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}[SYSTEM_PROMPT]"
    "{{ m['content'][0]['text'] }}[/SYSTEM_PROMPT]{% elif m['role'] == 'user' %}[INST]"
    "{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}"
    "{% elif c['type'] == 'image' %}[IMG]{% endif %}{% endfor %}[/INST]"
    "{% else %}{{ m['content'][0]['text'] }}{{ eos_token }}{% endif %}{% endfor %}"
)


def _parts(merge: int) -> tuple[Any, Any]:
    hf = library()
    tokenizer = make_tokenizer(
        (
            "[INST]",
            "[/INST]",
            "[IMG]",
            "[IMG_BREAK]",
            "[IMG_END]",
            "[SYSTEM_PROMPT]",
            "[/SYSTEM_PROMPT]",
        ),
        start="<s>",
        end="</s>",
        pad="<pad>",
    )
    processor = hf.PixtralProcessor(
        hf.PixtralImageProcessor(
            size={"longest_edge": 56}, patch_size={"height": 7 * merge, "width": 7 * merge}
        ),
        tokenizer,
        patch_size=7,
        spatial_merge_size=merge,
        chat_template=_TEMPLATE,
    )
    return tokenizer, processor


def _pixtral() -> dict[str, object]:
    return {"model_type": "pixtral", **tower(image_size=56, initializer_range=0.2)}


def write_mistral3(folder: Path, **text: object) -> Path:
    """Mistral Small 3.1: patches are merged by four."""
    tokenizer, processor = _parts(merge=2)
    config = library().Mistral3Config(
        text_config={"model_type": "mistral", **text_config(tokenizer, head_dim=16, **text)},
        vision_config=_pixtral(),
        image_token_index=token_id(tokenizer, "[IMG]"),
        spatial_merge_size=2,
        vision_feature_layer=-1,
        tie_word_embeddings=False,
    )
    return save("Mistral3ForConditionalGeneration", config, processor, folder)


def write_pixtral(folder: Path, **text: object) -> Path:
    """Pixtral: LLaVA's model with a tower and a processor of its own."""
    tokenizer, processor = _parts(merge=1)
    config = library().LlavaConfig(
        text_config={"model_type": "mistral", **text_config(tokenizer, head_dim=16, **text)},
        vision_config=_pixtral(),
        image_token_index=token_id(tokenizer, "[IMG]"),
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
        image_seq_length=1,
        tie_word_embeddings=False,
    )
    return save("LlavaForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "mistral3": Architecture(
        write_mistral3,
        "Mistral3ForConditionalGeneration",
        "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        chat_about_images,
        shown="images",
    ),
    "pixtral": Architecture(
        write_pixtral,
        "LlavaForConditionalGeneration",
        "mistral-community/pixtral-12b",
        chat_about_images,
        shown="images",
    ),
}
