"""Tiny checkpoints of the architectures of transformers that caption, written as real ones are.

Weights are random; tokenizer, processor and model are made here and saved with
``save_pretrained``, to be loaded by path. ``ARCHITECTURES["qwen2_5_vl"].write(folder)`` writes one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.internvl import write_internvl
from zoo.llava import write_llava
from zoo.llava_onevision import write_llava_onevision
from zoo.qwen_vl import write_qwen2_5_vl, write_qwen2_vl, write_qwen3_vl, write_qwen3_vl_moe
from zoo.recipes import chat_about_images, chat_about_video
from zoo.video_llama_3 import write_video_llama_3

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ARCHITECTURES", "Architecture"]

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "qwen2_vl": Architecture(
            write_qwen2_vl,
            "Qwen2VLForConditionalGeneration",
            "Qwen/Qwen2-VL-7B-Instruct",
            chat_about_video,
        ),
        "qwen2_5_vl": Architecture(
            write_qwen2_5_vl,
            "Qwen2_5_VLForConditionalGeneration",
            "Qwen/Qwen2.5-VL-7B-Instruct",
            chat_about_video,
        ),
        "qwen3_vl": Architecture(
            write_qwen3_vl,
            "Qwen3VLForConditionalGeneration",
            "Qwen/Qwen3-VL-8B-Instruct",
            chat_about_video,
        ),
        "qwen3_vl_moe": Architecture(
            write_qwen3_vl_moe,
            "Qwen3VLMoeForConditionalGeneration",
            "Qwen/Qwen3-VL-30B-A3B-Instruct",
            chat_about_video,
        ),
        "llava_onevision": Architecture(
            write_llava_onevision,
            "LlavaOnevisionForConditionalGeneration",
            "llava-hf/llava-onevision-qwen2-7b-ov-hf",
            chat_about_video,
        ),
        "internvl": Architecture(
            write_internvl,
            "InternVLForConditionalGeneration",
            "OpenGVLab/InternVL3-8B-hf",
            chat_about_video,
        ),
        "video_llama_3": Architecture(
            write_video_llama_3,
            "VideoLlama3ForConditionalGeneration",
            "lkhl/VideoLLaMA3-7B-HF",
            chat_about_video,
        ),
        "llava": Architecture(
            write_llava,
            "LlavaForConditionalGeneration",
            "llava-hf/llava-1.5-7b-hf",
            chat_about_images,
            shown="images",
        ),
    }
)
"""By the ``model_type`` of their configuration."""
