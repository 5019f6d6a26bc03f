"""DeepSeek-VL and Janus: images alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<|User|>: ' }}"
    "{% elif m['role'] == 'assistant' %}{{ '<|Assistant|>: ' }}{% endif %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<image_placeholder>"
    "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}\n\n"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|Assistant|>:' }}{% endif %}"
)
_SIZE = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
_TOKENS = (IMAGE_SIZE // 7) ** 2


def write_deepseek_vl(folder: Path, **text: object) -> Path:
    """DeepSeek-VL, with Llama."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|User|>", "<|Assistant|>"),
        start="<s>",
        end="</s>",
        pad="<pad>",
        image_token="<image_placeholder>",  # noqa: S106
    )
    processor = hf.DeepseekVLProcessor(
        hf.DeepseekVLImageProcessor(size=_SIZE),
        tokenizer,
        chat_template=_TEMPLATE,
        num_image_tokens=_TOKENS,
    )
    config = hf.DeepseekVLConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={"model_type": "siglip_vision_model", **tower(vision_use_head=False)},
        image_token_id=token_id(tokenizer, "<image_placeholder>"),
        tie_word_embeddings=False,
    )
    return save("DeepseekVLForConditionalGeneration", config, processor, folder)


def write_janus(folder: Path, **text: object) -> Path:
    """Janus, with Llama; what draws pictures in it is never asked."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|User|>", "<|Assistant|>"),
        start="<s>",
        end="</s>",
        pad="<pad>",
        image_token="<image_placeholder>",  # noqa: S106
        boi_token="<begin_of_image>",  # noqa: S106
        eoi_token="<end_of_image>",  # noqa: S106
    )
    processor = hf.JanusProcessor(
        hf.JanusImageProcessor(size=_SIZE),
        tokenizer,
        chat_template=_TEMPLATE,
        num_image_tokens=_TOKENS,
    )
    config = hf.JanusConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": IMAGE_SIZE,
            "patch_size": 7,
            "mlp_ratio": 2.0,
            "projection_dim": 64,
            "num_image_tokens": _TOKENS,
            "initializer_range": 0.2,
        },
        vq_config={
            "embed_dim": 4,
            "num_embeddings": 16,
            "latent_channels": 32,
            "base_channels": 32,
            "channel_multiplier": [1, 1],
            "num_res_blocks": 1,
            "projection_dim": 64,
            "image_token_embed_dim": 64,
        },
        image_token_id=token_id(tokenizer, "<image_placeholder>"),
        tie_word_embeddings=False,
    )
    return save("JanusForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "deepseek_vl": Architecture(
        write_deepseek_vl,
        "DeepseekVLForConditionalGeneration",
        "deepseek-community/deepseek-vl-7b-chat",
        chat_about_images,
        shown="images",
    ),
    "janus": Architecture(
        write_janus,
        "JanusForConditionalGeneration",
        "deepseek-community/Janus-Pro-7B",
        chat_about_images,
        shown="images",
    ),
}
