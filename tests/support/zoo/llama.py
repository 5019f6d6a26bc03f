"""Llama 3.2 Vision and Llama 4: images alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path

_TURNS = (
    "{{{{ bos_token }}}}{{% for m in messages %}}{start}{{{{ m['role'] }}}}{stop}\n\n"
    "{{% for c in m['content'] %}}{{% if c['type'] == 'image' %}}<|image|>"
    "{{% elif c['type'] == 'text' %}}{{{{ c['text'] }}}}{{% endif %}}{{% endfor %}}{end}"
    "{{% endfor %}}{{% if add_generation_prompt %}}{start}assistant{stop}\n\n{{% endif %}}"
)
_SIZE = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}


def write_llama4(folder: Path, **text: object) -> Path:
    """Llama 4, with experts."""
    hf = library()
    tokenizer = make_tokenizer(
        (
            "<|header_start|>",
            "<|header_end|>",
            "<|image|>",
            "<|image_start|>",
            "<|image_end|>",
            "<|patch|>",
            "<|tile_x_separator|>",
            "<|tile_y_separator|>",
        ),
        start="<|begin_of_text|>",
        end="<|eot|>",
        pad="<|finetune_right_pad|>",
    )
    processor = hf.Llama4Processor(
        hf.Llama4ImageProcessor(size=_SIZE, max_patches=2, resize_to_max_canvas=False),
        tokenizer,
        patch_size=7,
        chat_template=_TURNS.format(start="<|header_start|>", stop="<|header_end|>", end="<|eot|>"),
    )
    config = hf.Llama4Config(
        text_config=text_config(
            tokenizer,
            head_dim=16,
            intermediate_size_mlp=64,
            num_local_experts=2,
            interleave_moe_layer_step=2,
            **text,
        ),
        vision_config=tower(
            vision_output_dim=32,
            intermediate_size=128,
            projector_input_dim=32,
            projector_output_dim=32,
            initializer_range=0.2,
        ),
        boi_token_index=token_id(tokenizer, "<|image_start|>"),
        eoi_token_index=token_id(tokenizer, "<|image_end|>"),
        image_token_index=token_id(tokenizer, "<|patch|>"),
        tie_word_embeddings=False,
    )
    return save("Llama4ForConditionalGeneration", config, processor, folder)


def write_mllama(folder: Path, **text: object) -> Path:
    """Llama 3.2 Vision: the text looks at the images by attention across."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<|image|>"),
        start="<|begin_of_text|>",
        end="<|eot_id|>",
        pad="<|finetune_right_pad_id|>",
    )
    processor = hf.MllamaProcessor(
        hf.MllamaImageProcessor(size=_SIZE, max_image_tiles=4),
        tokenizer,
        chat_template=_TURNS.format(
            start="<|start_header_id|>", stop="<|end_header_id|>", end="<|eot_id|>"
        ),
    )
    config = hf.MllamaConfig(
        text_config=text_config(
            tokenizer,
            num_hidden_layers=3,
            cross_attention_layers=[1],
            **text,
        ),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_global_layers": 1,
            "attention_heads": 2,
            "vision_output_dim": 64,
            "image_size": IMAGE_SIZE,
            "patch_size": 7,
            "intermediate_layers_indices": [1],
            "initializer_range": 0.2,
        },
        image_token_index=token_id(tokenizer, "<|image|>"),
        tie_word_embeddings=False,
    )
    return save("MllamaForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "llama4": Architecture(
        write_llama4,
        "Llama4ForConditionalGeneration",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        chat_about_images,
        shown="images",
    ),
    "mllama": Architecture(
        write_mllama,
        "MllamaForConditionalGeneration",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        chat_about_images,
        shown="images",
    ),
}
