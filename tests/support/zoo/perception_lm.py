"""PerceptionLM, whose tower is timm's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<|image|>"
    "{% elif c['type'] == 'video' %}<|video|>"
    "{% elif c['type'] == 'text' %}{{ c['text'] | trim }}{% endif %}{% endfor %}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def write_perception_lm(folder: Path, **text: object) -> Path:
    """PerceptionLM, with Llama."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|start_header_id|>", "<|end_header_id|>"),
        start="<|begin_of_text|>",
        end="<|eot_id|>",
        pad="<|end_of_text|>",
        image_token="<|image|>",  # noqa: S106
        video_token="<|video|>",  # noqa: S106
    )
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.PerceptionLMProcessor(
        hf.PerceptionLMVideoProcessor(size=size),
        hf.PerceptionLMImageProcessor(size=size, tile_size=IMAGE_SIZE, max_num_tiles=2),
        tokenizer,
        patch_size=7,
        pooling_ratio=2,
        chat_template=_TEMPLATE,
    )
    config = hf.PerceptionLMConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={
            "model_type": "timm_wrapper",
            "architecture": "vit_pe_core_large_patch14_336",
            "do_pooling": False,
            "num_classes": 0,
            "model_args": {
                "embed_dim": 32,
                "depth": 2,
                "num_heads": 2,
                "mlp_ratio": 2,
                "patch_size": 7,
                "img_size": [IMAGE_SIZE, IMAGE_SIZE],
                "ref_feat_shape": [4, 4],
                "global_pool": "",
                "use_post_transformer_norm": False,
                "init_values": 0.1,
            },
        },
        vision_use_cls_token=True,
        projector_pooling_ratio=2,
        image_token_id=token_id(tokenizer, "<|image|>"),
        video_token_id=token_id(tokenizer, "<|video|>"),
        tie_word_embeddings=False,
    )
    return save("PerceptionLMForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "perception_lm": Architecture(
        write_perception_lm,
        "PerceptionLMForConditionalGeneration",
        "facebook/Perception-LM-8B",
        chat_about_video,
        needs=("timm",),
    ),
}
