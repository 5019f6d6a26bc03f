"""MiniCPM-V 4.6 and 4.7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import chatml, library, make_tokenizer, save, text_config
from zoo.recipes import chat_about_video

if TYPE_CHECKING:
    from pathlib import Path


def _write(name: str, folder: Path, **text: object) -> Path:
    hf = library()
    tokenizer = make_tokenizer(
        ("<|im_start|>",),
        image_token="<|image_pad|>",  # noqa: S106
        video_token="<|video_pad|>",  # noqa: S106
        image_start_token="<image>",  # noqa: S106
        image_end_token="</image>",  # noqa: S106
        slice_start_token="<slice>",  # noqa: S106
        slice_end_token="</slice>",  # noqa: S106
        image_id_start_token="<image_id>",  # noqa: S106
        image_id_end_token="</image_id>",  # noqa: S106
    )
    sizes = {"scale_resolution": 56, "patch_size": 7, "max_slice_nums": 2}
    processor = getattr(hf, f"{name}Processor")(
        hf.MiniCPMV4_6ImageProcessor(**sizes),
        hf.MiniCPMV4_6VideoProcessor(**sizes),
        tokenizer,
        chat_template=chatml("<|image_pad|>\n", "<|video_pad|>\n"),
    )
    config = getattr(hf, f"{name}Config")(
        text_config={
            "model_type": "qwen3_5_text",
            **text_config(
                tokenizer,
                head_dim=16,
                linear_key_head_dim=16,
                linear_value_head_dim=16,
                linear_num_key_heads=2,
                linear_num_value_heads=4,
                num_hidden_layers=3,
                layer_types=["full_attention", "linear_attention", "full_attention"],
                **text,
            ),
        },
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "image_size": 56,
            "patch_size": 7,
        },
        insert_layer_id=1,
        image_size=56,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        **_marks(name, tokenizer),
        tie_word_embeddings=False,
    )
    return save(f"{name}ForConditionalGeneration", config, processor, folder)


def _marks(name: str, tokenizer: object) -> dict[str, int]:
    if name == "MiniCPMV4_6":
        return {}
    return {
        f"{part}_id": getattr(tokenizer, f"{part}_token_id")
        for part in ("image_start", "image_end", "slice_start", "slice_end")
    }


def write_minicpmv4_6(folder: Path, **text: object) -> Path:
    """MiniCPM-V 4.6, with Qwen3.5."""
    return _write("MiniCPMV4_6", folder, **text)


def write_minicpmv4_7(folder: Path, **text: object) -> Path:
    """MiniCPM-V 4.7, with Qwen3.5."""
    return _write("MiniCPMV4_7", folder, **text)


ARCHITECTURES = {
    "minicpmv4_6": Architecture(
        write_minicpmv4_6,
        "MiniCPMV4_6ForConditionalGeneration",
        "openbmb/MiniCPM-V-4.6",
        chat_about_video,
    ),
    "minicpmv4_7": Architecture(
        write_minicpmv4_7,
        "MiniCPMV4_7ForConditionalGeneration",
        "openbmb/MiniCPM-V-4.7",
        chat_about_video,
    ),
}
