"""Kimi K2.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_VIDEO = "<|kimi_k25_video_placeholder|>"
_TEMPLATE = (
    "{% for m in messages %}<|im_{{ m['role'] }}|>{{ m['role'] }}<|im_middle|>"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>"
    f"{{% elif c['type'] == 'video' %}}{_VIDEO}"
    "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}"
)


def write_kimi_k25(folder: Path, **text: object) -> Path:
    """Kimi K2.5, with DeepSeek-V3's experts."""
    hf = library()
    tokenizer = make_tokenizer(
        (
            "<|im_user|>",
            "<|im_system|>",
            "<|im_assistant|>",
            "<|im_middle|>",
            "<|media_begin|>",
            "<|media_content|>",
            "<|media_end|>",
            "<|media_pad|>",
            _VIDEO,
        ),
        start="[BOS]",
        pad="[PAD]",
    )
    size = {"max_height": 56, "max_width": 56}
    processor = hf.Kimi_K25Processor(
        hf.Kimi_K25ImageProcessor(size=size, max_patches=64),
        tokenizer,
        hf.Kimi_K25VideoProcessor(size=size, max_patches=64),
        chat_template=_TEMPLATE,
    )
    config = hf.Kimi_K25Config(
        text_config={
            "model_type": "deepseek_v3",
            **text_config(
                tokenizer,
                num_key_value_heads=4,
                n_routed_experts=4,
                num_experts_per_tok=2,
                n_group=1,
                topk_group=1,
                moe_intermediate_size=32,
                first_k_dense_replace=1,
                q_lora_rank=16,
                kv_lora_rank=16,
                qk_rope_head_dim=8,
                qk_nope_head_dim=8,
                v_head_dim=16,
                **text,
            ),
        },
        vision_config={
            "pos_emb_height": 8,
            "pos_emb_width": 8,
            "num_attention_heads": 2,
            "num_hidden_layers": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
        },
        projection_hidden_size=32,
        image_token_id=token_id(tokenizer, "<|media_pad|>"),
        video_token_id=token_id(tokenizer, _VIDEO),
        vision_start_token_id=token_id(tokenizer, "<|media_begin|>"),
        vision_end_token_id=token_id(tokenizer, "<|media_end|>"),
        tie_word_embeddings=False,
    )
    return save("Kimi_K25ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "kimi_k25": Architecture(
        write_kimi_k25,
        "Kimi_K25ForConditionalGeneration",
        "moonshotai/Kimi-K2.5",
        chat_about_video,
    ),
}
