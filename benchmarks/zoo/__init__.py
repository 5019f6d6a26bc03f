"""Tiny checkpoints of the architectures of transformers that caption, written as real ones are.

Weights are random; tokenizer, processor and model are made here and saved with
``save_pretrained``, to be loaded by path. ``ARCHITECTURES["qwen2_5_vl"].write(folder)`` writes one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from zoo import (
    aria,
    cohere,
    deepseek,
    exaone4_5,
    gemma,
    glm_v,
    idefics,
    internvl,
    kimi_k25,
    lfm2_vl,
    llama,
    llava,
    llava_onevision,
    llava_video,
    mistral,
    molmo2,
    ovis2,
    perception_lm,
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
        **aria.ARCHITECTURES,
        **cohere.ARCHITECTURES,
        **deepseek.ARCHITECTURES,
        **exaone4_5.ARCHITECTURES,
        **gemma.ARCHITECTURES,
        **glm_v.ARCHITECTURES,
        **idefics.ARCHITECTURES,
        **internvl.ARCHITECTURES,
        **kimi_k25.ARCHITECTURES,
        **lfm2_vl.ARCHITECTURES,
        **llama.ARCHITECTURES,
        **llava.ARCHITECTURES,
        **llava_onevision.ARCHITECTURES,
        **llava_video.ARCHITECTURES,
        **mistral.ARCHITECTURES,
        **molmo2.ARCHITECTURES,
        **ovis2.ARCHITECTURES,
        **perception_lm.ARCHITECTURES,
        **qwen3_5.ARCHITECTURES,
        **qwen_vl.ARCHITECTURES,
        **video_llama_3.ARCHITECTURES,
    }
)
"""By the name of their folder in ``transformers.models``."""
