"""Idefics2: images through a perceiver, and a processor that refuses arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "{% for message in messages %}{{message['role'].capitalize()}}"
    "{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}"
    "{% for line in message['content'] %}"
    "{% if line['type'] == 'text' %}{{line['text']}}"
    "{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}"
    "<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
_LATENTS = 4


def write_idefics2(folder: Path, **text: object) -> Path:
    """Idefics2, with Mistral."""
    hf = library()
    tokenizer = make_tokenizer(start="<s>", end="<end_of_utterance>", pad="<unk>")
    processor = hf.Idefics2Processor(
        hf.Idefics2ImageProcessor(
            size={"longest_edge": 56, "shortest_edge": 28}, do_image_splitting=False
        ),
        tokenizer,
        image_seq_len=_LATENTS,
        chat_template=_TEMPLATE,
    )
    config = hf.Idefics2Config(
        text_config={"model_type": "mistral", **text_config(tokenizer, **text)},
        vision_config=tower(image_size=56, initializer_range=0.2),
        perceiver_config={
            "hidden_size": 64,
            "resampler_n_latents": _LATENTS,
            "resampler_depth": 1,
            "resampler_n_heads": 2,
            "resampler_head_dim": 16,
            "num_key_value_heads": 2,
            "initializer_range": 0.2,
        },
        image_token_id=token_id(tokenizer, "<image>"),
        tie_word_embeddings=False,
    )
    return save("Idefics2ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "idefics2": Architecture(
        write_idefics2,
        "Idefics2ForConditionalGeneration",
        "HuggingFaceM4/idefics2-8b",
        chat_about_images,
        shown="images",
    ),
}
