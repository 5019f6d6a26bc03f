"""Aria: images alone, with experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'text' %}{{ c['text'] }}"
    "{% elif c['type'] == 'image' %}<fim_prefix><|img|><fim_suffix>{% endif %}{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SIDE = 980
"""The side that the processor pads to; patches are larger here instead."""


def write_aria(folder: Path, **text: object) -> Path:
    """Aria."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|im_start|>", "<fim_prefix>", "<fim_suffix>"),
        start="<s>",
        pad="<unk>",
        image_token="<|img|>",  # noqa: S106
    )
    processor = hf.AriaProcessor(
        hf.AriaImageProcessor(max_image_size=_SIDE),
        tokenizer,
        chat_template=_TEMPLATE,
        size_conversion={_SIDE: 4},
    )
    n_patches = (_SIDE // 140) ** 2
    config = hf.AriaConfig(
        text_config=text_config(
            tokenizer, moe_num_experts=4, moe_topk=2, moe_num_shared_experts=1, **text
        ),
        vision_config={
            "model_type": "idefics3_vision",
            **tower(image_size=_SIDE, patch_size=140, initializer_range=0.2),
        },
        projector_patch_to_query_dict={n_patches: 4},
        image_token_index=token_id(tokenizer, "<|img|>"),
        initializer_range=0.2,
        tie_word_embeddings=False,
    )
    return save("AriaForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "aria": Architecture(
        write_aria,
        "AriaForConditionalGeneration",
        "rhymes-ai/Aria",
        chat_about_images,
        shown="images",
    ),
}
