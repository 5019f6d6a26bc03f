"""Tiny checkpoints of the architectures of transformers that caption, written as real ones are.

Weights are random; tokenizer, processor and model are made here and saved with
``save_pretrained``, to be loaded by path. ``ARCHITECTURES["qwen2_5_vl"].write(folder)`` writes one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from zoo import (
    aria,
    blip,
    chameleon,
    cohere,
    deepseek,
    exaone4_5,
    gemma,
    gemma3n,
    glm_v,
    hyperclovax,
    idefics,
    idefics2,
    internvl,
    lfm2_vl,
    lfm3_vl,
    llama,
    llava,
    llava_onevision,
    llava_video,
    minicpmv,
    mistral,
    molmo2,
    ovis2,
    paligemma,
    perception_lm,
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
        **aria.ARCHITECTURES,
        **blip.ARCHITECTURES,
        **chameleon.ARCHITECTURES,
        **cohere.ARCHITECTURES,
        **deepseek.ARCHITECTURES,
        **exaone4_5.ARCHITECTURES,
        **gemma.ARCHITECTURES,
        **gemma3n.ARCHITECTURES,
        **glm_v.ARCHITECTURES,
        **hyperclovax.ARCHITECTURES,
        **idefics.ARCHITECTURES,
        **idefics2.ARCHITECTURES,
        **internvl.ARCHITECTURES,
        **lfm2_vl.ARCHITECTURES,
        **lfm3_vl.ARCHITECTURES,
        **llama.ARCHITECTURES,
        **llava.ARCHITECTURES,
        **llava_onevision.ARCHITECTURES,
        **llava_video.ARCHITECTURES,
        **minicpmv.ARCHITECTURES,
        **mistral.ARCHITECTURES,
        **molmo2.ARCHITECTURES,
        **ovis2.ARCHITECTURES,
        **paligemma.ARCHITECTURES,
        **perception_lm.ARCHITECTURES,
        **phi4_multimodal.ARCHITECTURES,
        **qwen3_5.ARCHITECTURES,
        **qwen_omni.ARCHITECTURES,
        **qwen_vl.ARCHITECTURES,
        **video_llama_3.ARCHITECTURES,
    }
)
"""By the name of their folder in ``transformers.models``."""
