"""HyperCLOVA X SEED Vision: the prompt says how long a video is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config
from zoo.qwen_vl import SPECIALS, marks
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    '{% elif c["type"] == "video" %}{"video_duration": <|video_duration|>}'
    "<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_hyperclovax_vision_v2(folder: Path, **text: object) -> Path:
    """HyperCLOVA X SEED Vision, with the tower of Qwen2.5-VL."""
    hf = library()
    tokenizer = make_tokenizer(SPECIALS)
    size = {"shortest_edge": 28 * 28, "longest_edge": 56 * 56}
    processor = hf.HyperCLOVAXVisionV2Processor(
        hf.Qwen2VLImageProcessor(size=size),
        tokenizer,
        hf.Qwen2VLVideoProcessor(size=size),
        chat_template=_TEMPLATE,
    )
    shown = marks(tokenizer)
    config = hf.HyperCLOVAXVisionV2Config(
        text_config={"model_type": "hyperclovax", **text_config(tokenizer, **text)},
        vision_config={
            "model_type": "qwen2_5_vl_vision",
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.2,
        },
        image_token_id=shown["image_token_id"],
        video_token_id=shown["video_token_id"],
        tie_word_embeddings=False,
    )
    return save("HyperCLOVAXVisionV2ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "hyperclovax_vision_v2": Architecture(
        write_hyperclovax_vision_v2,
        "HyperCLOVAXVisionV2ForConditionalGeneration",
        "naver-hyperclovax/HyperCLOVAX-SEED-Think-32B",
        chat_about_video,
    ),
}
