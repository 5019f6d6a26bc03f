"""Tiny checkpoints of the architectures of transformers that caption, written as real ones are.

Weights are random; tokenizer, processor and model are made here and saved with
``save_pretrained``, to be loaded by path. ``ARCHITECTURES["qwen2_5_vl"].write(folder)`` writes one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from zoo import (
    cohere,
    gemma,
    glm_v,
    idefics,
    internvl,
    llama,
    llava,
    llava_onevision,
    llava_video,
    mistral,
    qwen3_5,
    qwen_vl,
    video_llama_3,
)
from zoo.architecture import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ARCHITECTURES", "Architecture"]

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        **cohere.ARCHITECTURES,
        **gemma.ARCHITECTURES,
        **glm_v.ARCHITECTURES,
        **idefics.ARCHITECTURES,
        **internvl.ARCHITECTURES,
        **llama.ARCHITECTURES,
        **llava.ARCHITECTURES,
        **llava_onevision.ARCHITECTURES,
        **llava_video.ARCHITECTURES,
        **mistral.ARCHITECTURES,
        **qwen3_5.ARCHITECTURES,
        **qwen_vl.ARCHITECTURES,
        **video_llama_3.ARCHITECTURES,
    }
)
"""By the name of their folder in ``transformers.models``."""
