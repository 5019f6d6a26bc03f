"""LLaVA-NeXT-Video and Video-LLaVA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, save, text_config, token_id, tower
from zoo.llava import PINPOINTS, VICUNA, clip_processor, vicuna_tokenizer
from zoo.recipes import chat_about_video, text_about_image, text_about_video

if TYPE_CHECKING:
    from pathlib import Path

# A tower of the size of 28 pixels has 16 patches in a frame, and 4 after pooling.


def write_llava_next_video(folder: Path, **text: object) -> Path:
    """LLaVA-NeXT-Video, with Llama."""
    hf = library()
    tokenizer = vicuna_tokenizer()
    image_processor = clip_processor("LlavaNextImageProcessor")
    image_processor.image_grid_pinpoints = PINPOINTS
    processor = hf.LlavaNextVideoProcessor(
        clip_processor("LlavaNextVideoVideoProcessor"),
        image_processor,
        tokenizer,
        chat_template=VICUNA,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    config = hf.LlavaNextVideoConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={"model_type": "clip_vision_model", **tower(projection_dim=32)},
        image_token_index=token_id(tokenizer, "<image>"),
        video_token_index=token_id(tokenizer, "<video>"),
        image_grid_pinpoints=PINPOINTS,
        image_seq_length=(IMAGE_SIZE // 7) ** 2,
        tie_word_embeddings=False,
    )
    return save("LlavaNextVideoForConditionalGeneration", config, processor, folder)


def write_video_llava(folder: Path, **text: object) -> Path:
    """Video-LLaVA, with Llama."""
    hf = library()
    tokenizer = vicuna_tokenizer()
    processor = hf.VideoLlavaProcessor(
        clip_processor("VideoLlavaImageProcessor"),
        clip_processor("VideoLlavaVideoProcessor"),
        tokenizer,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=VICUNA,
    )
    config = hf.VideoLlavaConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config={"model_type": "clip_vision_model", **tower(projection_dim=32)},
        image_token_index=token_id(tokenizer, "<image>"),
        video_token_index=token_id(tokenizer, "<video>"),
        image_seq_length=(IMAGE_SIZE // 7) ** 2,
        tie_word_embeddings=False,
    )
    return save("VideoLlavaForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "llava_next_video": Architecture(
        write_llava_next_video,
        "LlavaNextVideoForConditionalGeneration",
        "llava-hf/LLaVA-NeXT-Video-7B-hf",
        chat_about_video,
    ),
    "video_llava": Architecture(
        write_video_llava,
        "VideoLlavaForConditionalGeneration",
        "LanguageBind/Video-LLaVA-7B-hf",
        text_about_video("USER: <video>\n{} ASSISTANT:"),
        text_about_image("USER: <image>\n{} ASSISTANT:"),
    ),
}
