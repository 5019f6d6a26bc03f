"""Ovis2: images alone, whose patches are words of a vocabulary of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import (
    IMAGE_SIZE,
    chatml,
    library,
    make_tokenizer,
    save,
    text_config,
    token_id,
    tower,
)
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_INDICATORS = ("<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>")


def write_ovis2(folder: Path, **text: object) -> Path:
    """Ovis2, with Qwen2."""
    hf = library()
    tokenizer = make_tokenizer(("<|im_start|>", "<image>", "<IMG_ATOM>", *_INDICATORS))
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.Ovis2Processor(
        hf.Ovis2ImageProcessor(size=size),
        tokenizer,
        image_seq_length=4,
        chat_template=chatml("<image>\n"),
    )
    config = hf.Ovis2Config(
        text_config={"model_type": "qwen2", **text_config(tokenizer, **text)},
        vision_config=tower(
            hidden_stride=2,
            vocab_size=64,
            num_visual_indicator_tokens=len(_INDICATORS),
            initializer_range=0.2,
        ),
        image_token_id=token_id(tokenizer, "<IMG_ATOM>"),
        visual_indicator_token_ids=[token_id(tokenizer, token) for token in _INDICATORS],
        vocab_size=len(tokenizer),
        hidden_size=64,
        tie_word_embeddings=False,
    )
    return save("Ovis2ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "ovis2": Architecture(
        write_ovis2,
        "Ovis2ForConditionalGeneration",
        "thisisiron/Ovis2-8B-hf",
        chat_about_images,
        shown="images",
    ),
}
