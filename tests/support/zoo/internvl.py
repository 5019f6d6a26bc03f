"""InternVL in the form of transformers."""

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
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path


def write_internvl(folder: Path, **text: object) -> Path:
    """InternVL, with Qwen2."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|im_start|>",),
        start_image_token="<img>",  # noqa: S106
        end_image_token="</img>",  # noqa: S106
        context_image_token="<IMG_CONTEXT>",  # noqa: S106
        video_token="<video>",  # noqa: S106
    )
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.InternVLProcessor(
        hf.GotOcr2ImageProcessor(size=size),
        tokenizer,
        hf.InternVLVideoProcessor(size=size),
        image_seq_length=4,
        chat_template=chatml("<IMG_CONTEXT>\n", "<video>\n"),
    )
    config = hf.InternVLConfig(
        text_config={"model_type": "qwen2", **text_config(tokenizer, **text)},
        vision_config=tower(image_size=[IMAGE_SIZE, IMAGE_SIZE], patch_size=[7, 7]),
        image_token_id=token_id(tokenizer, "<IMG_CONTEXT>"),
        image_seq_length=4,
        downsample_ratio=0.5,
        tie_word_embeddings=False,
    )
    return save("InternVLForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "internvl": Architecture(
        write_internvl,
        "InternVLForConditionalGeneration",
        "OpenGVLab/InternVL3-8B-hf",
        chat_about_video,
    ),
}
