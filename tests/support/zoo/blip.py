"""BLIP-2, InstructBLIP, InstructBlipVideo: a Q-Former between tower and language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transformers import BatchFeature

    from zoo.recipes import Shown

_QUERIES: Final = 4


def write_blip_2(folder: Path, **text: object) -> Path:
    """BLIP-2, with OPT: one picture, which the prompt does not reach."""
    hf = library()
    tokenizer = _tokenizer()
    processor = hf.Blip2Processor(_pictures(hf), tokenizer, num_query_tokens=_QUERIES)
    config = hf.Blip2Config(
        text_config=_opt(tokenizer, **text),
        vision_config=tower(initializer_range=0.2),
        qformer_config=_qformer(tokenizer),
        num_query_tokens=_QUERIES,
        initializer_range=0.2,
        image_token_index=token_id(tokenizer, "<image>"),
        image_text_hidden_size=32,
    )
    return save("Blip2ForConditionalGeneration", config, processor, folder)


def write_instructblip(folder: Path, **text: object) -> Path:
    """InstructBLIP, with Llama: one picture."""
    hf = library()
    tokenizer, reader = _tokenizer(), _tokenizer()
    processor = hf.InstructBlipProcessor(
        _pictures(hf), tokenizer, reader, num_query_tokens=_QUERIES
    )
    config = hf.InstructBlipConfig(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config=tower(initializer_range=0.2),
        qformer_config=_qformer(reader),
        num_query_tokens=_QUERIES,
        initializer_range=0.2,
        image_token_index=token_id(tokenizer, "<image>"),
    )
    return save("InstructBlipForConditionalGeneration", config, processor, folder)


def write_instructblipvideo(folder: Path, **text: object) -> Path:
    """InstructBlipVideo, with Llama: four frames."""
    tokenizer = _tokenizer()
    return _instructblipvideo(
        folder, tokenizer, {"model_type": "llama", **text_config(tokenizer, **text)}
    )


def write_instructblipvideo_t5(folder: Path, **text: object) -> Path:
    """InstructBlipVideo, with T5: an encoder reads."""
    tokenizer = _tokenizer()
    sizes = text_config(tokenizer, **text)
    return _instructblipvideo(
        folder,
        tokenizer,
        {
            "model_type": "t5",
            "vocab_size": sizes["vocab_size"],
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
            "feed_forward_proj": "gated-gelu",
            "initializer_factor": 4.0,
            "decoder_start_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            "tie_word_embeddings": False,
        },
    )


def _instructblipvideo(folder: Path, tokenizer: Any, text: dict[str, Any]) -> Path:
    hf = library()
    reader = _tokenizer()
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.InstructBlipVideoProcessor(
        hf.InstructBlipVideoVideoProcessor(size=size),
        tokenizer,
        reader,
        num_query_tokens=_QUERIES,
    )
    config = hf.InstructBlipVideoConfig(
        text_config=text,
        vision_config=tower(initializer_range=0.2),
        qformer_config=_qformer(reader),
        num_query_tokens=_QUERIES,
        initializer_range=0.2,
        video_token_index=token_id(tokenizer, "<video>"),
    )
    return save("InstructBlipVideoForConditionalGeneration", config, processor, folder)


def _tokenizer() -> Any:
    return make_tokenizer(("<image>", "<video>"), start="<s>", end="</s>", pad="<pad>")


def _pictures(hf: Any) -> Any:
    return hf.BlipImageProcessor(size={"height": IMAGE_SIZE, "width": IMAGE_SIZE})


def _qformer(tokenizer: Any) -> dict[str, object]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "initializer_range": 0.2,
        "pad_token_id": tokenizer.pad_token_id,
    }


def _opt(tokenizer: Any, **text: object) -> dict[str, object]:
    sizes = text_config(tokenizer, **text)
    return {
        "model_type": "opt",
        **{name: sizes[name] for name in sizes if name.endswith("token_id")},
        "vocab_size": sizes["vocab_size"],
        "max_position_embeddings": sizes["max_position_embeddings"],
        "hidden_size": 64,
        "ffn_dim": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "word_embed_proj_dim": 64,
        "init_std": 0.6,
    }


def _one_picture(form: str) -> Callable[[Any, Shown, str], BatchFeature]:
    def recipe(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
        inputs: BatchFeature = processor(
            images=shown.pictures()[0], text=form.format(prompt), return_tensors="pt"
        )
        return inputs

    return recipe


def _four_frames(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    # The documentation reads four frames of a clip that has more.
    where = torch.linspace(0, len(shown.frames) - 1, 4).round().long()
    inputs: BatchFeature = processor(text=prompt, images=shown.video()[where], return_tensors="pt")
    return inputs


ARCHITECTURES = {
    "blip_2": Architecture(
        write_blip_2,
        "Blip2ForConditionalGeneration",
        "Salesforce/blip2-opt-2.7b",
        _one_picture("Question: {} Answer:"),
        shown="images",
        arguments={"max_num_frames": 1},
    ),
    "instructblip": Architecture(
        write_instructblip,
        "InstructBlipForConditionalGeneration",
        "Salesforce/instructblip-vicuna-7b",
        _one_picture("{}"),
        shown="images",
        arguments={"max_num_frames": 1},
    ),
    "instructblipvideo": Architecture(
        write_instructblipvideo,
        "InstructBlipVideoForConditionalGeneration",
        "Salesforce/instructblip-vicuna-7b",
        _four_frames,
        _four_frames,
        arguments={"max_num_frames": 4},
    ),
    "instructblipvideo (T5)": Architecture(
        write_instructblipvideo_t5,
        "InstructBlipVideoForConditionalGeneration",
        "Salesforce/instructblip-flan-t5-xl",
        _four_frames,
        _four_frames,
        repeats_prompt=False,
        arguments={"max_num_frames": 4},
    ),
}
