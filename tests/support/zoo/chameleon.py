"""Chameleon: images alone, which become words of the text's own vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import BatchFeature

    from zoo.recipes import Shown

_SIDE = 16


def write_chameleon(folder: Path, **text: object) -> Path:
    """Chameleon; it has no chat template, neither has the real one."""
    hf = library()
    # The numbers of what a picture may be made of, by letters for digits.
    codes = [
        f"IMGIMG{''.join(chr(ord('A') + int(digit)) for digit in str(code))}Z" for code in range(16)
    ]
    tokenizer = make_tokenizer(
        ("<image>", "<racm3:break>", "<eoss>", *codes),
        start="<s>",
        end="</s>",
        pad="<pad>",
        sep_token="<reserved08706>",  # noqa: S106
    )
    processor = hf.ChameleonProcessor(
        hf.ChameleonImageProcessor(
            size={"shortest_edge": _SIDE}, crop_size={"height": _SIDE, "width": _SIDE}
        ),
        tokenizer,
        image_seq_length=16,
    )
    config = hf.ChameleonConfig(
        **text_config(tokenizer, num_key_value_heads=4, **text),
        vq_config={
            "embed_dim": 8,
            "num_embeddings": 16,
            "latent_channels": 8,
            "resolution": _SIDE,
            "base_channels": 32,
            "channel_multiplier": [1, 1, 1],
            "num_res_blocks": 1,
        },
        vocabulary_map=tokenizer.get_vocab(),
    )
    return save("ChameleonForConditionalGeneration", config, processor, folder)


def _documented(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    marks = "<image>" * len(shown.frames)
    inputs: BatchFeature = processor(
        images=shown.pictures(), text=marks + prompt, return_tensors="pt"
    )
    return inputs


ARCHITECTURES = {
    "chameleon": Architecture(
        write_chameleon,
        "ChameleonForConditionalGeneration",
        "facebook/chameleon-7b",
        _documented,
        shown="images",
    ),
}
