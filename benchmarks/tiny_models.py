"""Tiny vision-language checkpoints with random weights, written as real ones are.

Nothing is downloaded: tokenizer, processor and model are made here and saved with
``save_pretrained``. Only printable letters are ever written, and no caption ends early, so that
captions can be compared as text.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast, ProcessorMixin

IMAGE_SIZE = 28
_QWEN_SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
_HEAD = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
_TAIL = (
    "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _template(image: str, video: str) -> str:
    return (
        f"{_HEAD}{{% if c['type'] == 'image' %}}{image}"
        f"{{% elif c['type'] == 'video' %}}{video}{_TAIL}"
    )


def _tokenizer(specials: tuple[str, ...], **named: str) -> PreTrainedTokenizerFast:
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="<|im_end|>",  # noqa: S106
        pad_token="<|endoftext|>",  # noqa: S106
        extra_special_tokens=named,
    )
    tokenizer.add_tokens(list(specials), special_tokens=True)
    return tokenizer


def _token_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    token_id = tokenizer.convert_tokens_to_ids(token)
    if not isinstance(token_id, int):
        raise TypeError(f"expected one id for {token!r}, got {token_id!r}")
    return token_id


def _text_config(tokenizer: PreTrainedTokenizerFast, **more: object) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
        **more,
    }


def _save(model: PreTrainedModel, processor: ProcessorMixin, folder: Path) -> Path:
    tokenizer = processor.tokenizer
    printable = tokenizer.convert_tokens_to_ids(list(string.ascii_letters))
    head = model.get_output_embeddings().weight
    with torch.no_grad():
        rows = torch.zeros_like(head)
        rows[printable] = torch.randn(len(printable), head.shape[1])
        head.copy_(rows)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def write_qwen2_5_vl(folder: Path, **text: object) -> Path:
    """Qwen2.5-VL."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    torch.manual_seed(0)
    tokenizer = _tokenizer(_QWEN_SPECIALS)
    size = {"shortest_edge": 28 * 28, "longest_edge": 56 * 56}
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(size=size),
        tokenizer,
        Qwen2VLVideoProcessor(size=size),
        chat_template=_template(
            "<|vision_start|><|image_pad|><|vision_end|>",
            "<|vision_start|><|video_pad|><|vision_end|>",
        ),
    )
    config = Qwen2_5_VLConfig(
        text_config=_text_config(
            tokenizer,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [2, 3, 3],
            },
            initializer_range=0.2,
            **text,
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.2,
        },
        image_token_id=_token_id(tokenizer, "<|image_pad|>"),
        video_token_id=_token_id(tokenizer, "<|video_pad|>"),
        vision_start_token_id=_token_id(tokenizer, "<|vision_start|>"),
        vision_end_token_id=_token_id(tokenizer, "<|vision_end|>"),
        tie_word_embeddings=False,
    )
    return _save(Qwen2_5_VLForConditionalGeneration(config), processor, folder)


def write_llava_onevision(folder: Path) -> Path:
    """LLaVA-OneVision."""
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionImageProcessor,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
    )

    torch.manual_seed(0)
    tokenizer = _tokenizer(("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<video>"))
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = LlavaOnevisionProcessor(
        LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=[[28, 28], [56, 56]]),
        tokenizer,
        LlavaOnevisionVideoProcessor(size=size),
        num_image_tokens=(IMAGE_SIZE // 7) ** 2,
        vision_feature_select_strategy="full",
        chat_template=_template("<image>", "<video>"),
    )
    config = LlavaOnevisionConfig(
        text_config={
            "model_type": "qwen2",
            **_text_config(tokenizer, initializer_range=0.2),
        },
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": IMAGE_SIZE,
            "patch_size": 7,
            "vision_use_head": False,
        },
        image_token_index=_token_id(tokenizer, "<image>"),
        video_token_index=_token_id(tokenizer, "<video>"),
        image_grid_pinpoints=[[28, 28], [56, 56]],
        tie_word_embeddings=False,
    )
    return _save(LlavaOnevisionForConditionalGeneration(config), processor, folder)


def write_internvl(folder: Path) -> Path:
    """InternVL in the form of transformers."""
    from transformers import (
        GotOcr2ImageProcessor,
        InternVLConfig,
        InternVLForConditionalGeneration,
        InternVLProcessor,
        InternVLVideoProcessor,
    )

    torch.manual_seed(0)
    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = _tokenizer(("<|endoftext|>", "<|im_start|>", "<|im_end|>"), **named)
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = InternVLProcessor(
        GotOcr2ImageProcessor(size=size),
        tokenizer,
        InternVLVideoProcessor(size=size),
        image_seq_length=4,
        chat_template=_template("<IMG_CONTEXT>\n", "<video>\n"),
    )
    config = InternVLConfig(
        text_config={
            "model_type": "qwen2",
            **_text_config(tokenizer, initializer_range=0.2),
        },
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": [IMAGE_SIZE, IMAGE_SIZE],
            "patch_size": [7, 7],
        },
        image_token_id=_token_id(tokenizer, "<IMG_CONTEXT>"),
        image_seq_length=4,
        downsample_ratio=0.5,
        tie_word_embeddings=False,
    )
    return _save(InternVLForConditionalGeneration(config), processor, folder)


FAMILIES: dict[str, Callable[[Path], Path]] = {
    "qwen2_5_vl": write_qwen2_5_vl,
    "llava_onevision": write_llava_onevision,
    "internvl": write_internvl,
}
