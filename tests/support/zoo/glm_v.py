"""GLM-4V and GLM-4.6V: the size of a video is that of all its frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id
from zoo.recipes import chat_about_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MARKS = {
    "image_token_id": "<|image|>",
    "video_token_id": "<|video|>",
    "image_start_token_id": "<|begin_of_image|>",
    "image_end_token_id": "<|end_of_image|>",
    "video_start_token_id": "<|begin_of_video|>",
    "video_end_token_id": "<|end_of_video|>",
}
_TEMPLATE = (
    "[gMASK]<sop>{% for m in messages %}<|{{ m['role'] }}|>\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|begin_of_image|><|image|><|end_of_image|>"
    "{% elif c['type'] == 'video' %}<|begin_of_video|><|video|><|end_of_video|>"
    "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def _write(
    name: str, folder: Path, text: Mapping[str, object], *, parts: str, processing: str
) -> Path:
    hf: Any = library()
    tokenizer = make_tokenizer(
        ("[gMASK]", "<sop>", "<|system|>", "<|assistant|>", *_MARKS.values()), end="<|user|>"
    )
    # The smallest size is what one frame needs, as of the real ones; a clip has several.
    size = {"shortest_edge": 28 * 28, "longest_edge": 8 * 56 * 56}
    processor = getattr(hf, f"{processing}Processor")(
        getattr(hf, f"{processing}ImageProcessor")(size=size),
        tokenizer,
        getattr(hf, f"{processing}VideoProcessor")(size=size),
        chat_template=_TEMPLATE,
    )
    config = getattr(hf, f"{name}Config")(
        text_config={
            "model_type": f"{parts}_text",
            **text_config(
                tokenizer,
                rope_parameters={
                    "rope_type": "default",
                    "rope_theta": 1e4,
                    "mrope_section": [2, 1, 1],
                    "partial_rotary_factor": 0.5,
                },
                **text,
            ),
        },
        vision_config={
            "model_type": f"{parts}_vision",
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "image_size": 56,
            "out_hidden_size": 64,
            "initializer_range": 0.2,
        },
        **{name: token_id(tokenizer, token) for name, token in _MARKS.items()},
        tie_word_embeddings=False,
    )
    return save(f"{name}ForConditionalGeneration", config, processor, folder)


def write_glm4v(folder: Path, **text: object) -> Path:
    """GLM-4.1V."""
    return _write("Glm4v", folder, text, parts="glm4v", processing="Glm4v")


def write_glm46v(folder: Path, **text: object) -> Path:
    """GLM-4.6V."""
    return _write("Glm46V", folder, text, parts="glm4v", processing="Glm46V")


def write_glm4v_moe(folder: Path, **text: object) -> Path:
    """GLM-4.5V, with experts."""
    experts = {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "n_shared_experts": 1,
        "head_dim": 16,
    }
    sizes = {**experts, **text}
    return _write("Glm4vMoe", folder, sizes, parts="glm4v_moe", processing="Glm4v")


ARCHITECTURES = {
    "glm4v_moe": Architecture(
        write_glm4v_moe,
        "Glm4vMoeForConditionalGeneration",
        "zai-org/GLM-4.5V",
        chat_about_pairs,
    ),
    "glm4v": Architecture(
        write_glm4v,
        "Glm4vForConditionalGeneration",
        "zai-org/GLM-4.1V-9B-Thinking",
        chat_about_pairs,
    ),
    "glm46v": Architecture(
        write_glm46v,
        "Glm46VForConditionalGeneration",
        "zai-org/GLM-4.6V",
        chat_about_pairs,
    ),
}
