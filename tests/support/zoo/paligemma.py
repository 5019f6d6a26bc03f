"""PaliGemma: no chat template, its processor adds what stands around the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import BatchFeature

    from zoo.recipes import Shown


def write_paligemma(folder: Path, **text: object) -> Path:
    """PaliGemma, with Gemma."""
    hf = library()
    tokenizer = make_tokenizer(start="<bos>", end="<eos>", pad="<pad>")
    # Gemma's own tokenizer leaves the start token to the processor, too.
    tokenizer.backend_tokenizer.post_processor = None
    image_processor = hf.SiglipImageProcessor(size={"height": IMAGE_SIZE, "width": IMAGE_SIZE})
    image_processor.image_seq_length = (IMAGE_SIZE // 7) ** 2
    processor = hf.PaliGemmaProcessor(image_processor, tokenizer)
    config = hf.PaliGemmaConfig(
        text_config={"model_type": "gemma", **text_config(tokenizer, head_dim=16, **text)},
        vision_config={"model_type": "siglip_vision_model", **tower(vision_use_head=False)},
        image_token_index=token_id(tokenizer, "<image>"),
        projection_dim=64,
        hidden_size=64,
        tie_word_embeddings=False,
    )
    return save("PaliGemmaForConditionalGeneration", config, processor, folder)


def _recipe(processor: Any, shown: Shown, prompt: str) -> BatchFeature:
    marks = "<image>" * len(shown.frames)
    inputs: BatchFeature = processor(
        text=marks + prompt, images=shown.pictures(), return_tensors="pt"
    )
    return inputs


ARCHITECTURES = {
    "paligemma": Architecture(
        write_paligemma,
        "PaliGemmaForConditionalGeneration",
        "google/paligemma2-3b-mix-224",
        _recipe,
        shown="images",
    ),
}
