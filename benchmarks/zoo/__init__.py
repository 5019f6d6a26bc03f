"""Tiny checkpoints of the architectures of transformers that caption, written as real ones are.

Weights are random; tokenizer, processor and model are made here and saved with
``save_pretrained``, to be loaded by path. ``ARCHITECTURES["qwen2_5_vl"].write(folder)`` writes one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from zoo import (
    blip,
    cohere,
    gemma,
    gemma3n,
    glm_v,
    idefics,
    idefics2,
    internvl,
    llama,
    llava,
    llava_onevision,
    llava_video,
    mistral,
    paligemma,
    phi4_multimodal,
    qwen3_5,
    qwen_omni,
    qwen_vl,
    video_llama_3,
)
from zoo.architecture import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ARCHITECTURES", "Architecture"]

ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        **blip.ARCHITECTURES,
        **cohere.ARCHITECTURES,
        **gemma.ARCHITECTURES,
        **gemma3n.ARCHITECTURES,
        **glm_v.ARCHITECTURES,
        **idefics.ARCHITECTURES,
        **idefics2.ARCHITECTURES,
        **internvl.ARCHITECTURES,
        **llama.ARCHITECTURES,
        **llava.ARCHITECTURES,
        **llava_onevision.ARCHITECTURES,
        **llava_video.ARCHITECTURES,
        **mistral.ARCHITECTURES,
        **paligemma.ARCHITECTURES,
        **phi4_multimodal.ARCHITECTURES,
        **qwen3_5.ARCHITECTURES,
        **qwen_omni.ARCHITECTURES,
        **qwen_vl.ARCHITECTURES,
        **video_llama_3.ARCHITECTURES,
    }
)
"""By the name of their folder in ``transformers.models``."""
