"""VideoLLaMA3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import chatml, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path


def write_video_llama_3(folder: Path, **text: object) -> Path:
    """VideoLLaMA3, with Qwen2; the size of a video is that of all its frames."""
    hf = library()
    tokenizer = make_tokenizer(("<|im_start|>", "<|image_pad|>", "<|video_pad|>"))
    processor = hf.VideoLlama3Processor(
        hf.VideoLlama3ImageProcessor(size={"shortest_edge": 28 * 28, "longest_edge": 56 * 56}),
        tokenizer,
        hf.VideoLlama3VideoProcessor(size={"shortest_edge": 28 * 28, "longest_edge": 8 * 56 * 56}),
        chat_template=chatml("<|image_pad|>", "<|video_pad|>"),
    )
    config = hf.VideoLlama3Config(
        text_config={"model_type": "qwen2", **text_config(tokenizer, **text)},
        vision_config=tower(patch_size=14, initializer_range=0.2),
        image_token_id=token_id(tokenizer, "<|image_pad|>"),
        video_token_id=token_id(tokenizer, "<|video_pad|>"),
        tie_word_embeddings=False,
    )
    return save("VideoLlama3ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "video_llama_3": Architecture(
        write_video_llama_3,
        "VideoLlama3ForConditionalGeneration",
        "lkhl/VideoLLaMA3-7B-HF",
        chat_about_video,
    ),
}
