"""Gemma 3 and Gemma 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images, chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

TURNS = (
    "{{{{ bos_token }}}}{{% for m in messages %}}{start}"
    "{{{{ 'model' if m['role'] == 'assistant' else m['role'] }}}}\n"
    "{{% for c in m['content'] %}}{{% if c['type'] == 'image' %}}{image}"
    "{{% elif c['type'] == 'video' %}}{video}"
    "{{% elif c['type'] == 'text' %}}{{{{ c['text'] | trim }}}}{{% endif %}}{{% endfor %}}{end}\n"
    "{{% endfor %}}{{% if add_generation_prompt %}}{start}model\n{{% endif %}}"
)


def write_gemma3(folder: Path, **text: object) -> Path:
    """Gemma 3: images alone, which are attended to in both directions."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<start_of_turn>",),
        start="<bos>",
        end="<end_of_turn>",
        pad="<pad>",
        boi_token="<start_of_image>",  # noqa: S106
        eoi_token="<end_of_image>",  # noqa: S106
        image_token="<image_soft_token>",  # noqa: S106
    )
    size = {"height": IMAGE_SIZE, "width": IMAGE_SIZE}
    processor = hf.Gemma3Processor(
        hf.Gemma3ImageProcessor(size=size),
        tokenizer,
        image_seq_length=4,
        chat_template=TURNS.format(
            start="<start_of_turn>", end="<end_of_turn>", image="<start_of_image>", video=""
        ),
    )
    config = hf.Gemma3Config(
        text_config=text_config(
            tokenizer,
            head_dim=16,
            query_pre_attn_scalar=16,
            sliding_window=32,
            num_hidden_layers=4,
            layer_types=["sliding_attention", "full_attention"] * 2,
            **text,
        ),
        vision_config={"model_type": "siglip_vision_model", **tower(vision_use_head=False)},
        mm_tokens_per_image=4,
        boi_token_index=token_id(tokenizer, "<start_of_image>"),
        eoi_token_index=token_id(tokenizer, "<end_of_image>"),
        image_token_index=token_id(tokenizer, "<image_soft_token>"),
        tie_word_embeddings=False,
    )
    return save("Gemma3ForConditionalGeneration", config, processor, folder)


def _audio(hf: Any) -> Any:
    return hf.Gemma4AudioFeatureExtractor()


def write_gemma4(folder: Path, **text: object) -> Path:
    """Gemma 4, without its audio tower, as the larger ones are."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<|turn>", "<|video|>"),
        start="<bos>",
        end="<turn|>",
        pad="<pad>",
        boi_token="<|image>",  # noqa: S106
        eoi_token="<image|>",  # noqa: S106
        image_token="<|image|>",  # noqa: S106
        boa_token="<|audio>",  # noqa: S106
        eoa_token="<audio|>",  # noqa: S106
        audio_token="<|audio|>",  # noqa: S106
    )
    patches = {"patch_size": 4, "pooling_kernel_size": 2, "max_soft_tokens": 70}
    processor = hf.Gemma4Processor(
        _audio(hf),
        hf.Gemma4ImageProcessor(**patches),
        tokenizer,
        hf.Gemma4VideoProcessor(**patches),
        image_seq_length=70,
        chat_template=TURNS.format(
            start="<|turn>", end="<turn|>", image="<|image|>", video="<|video|>"
        ),
    )
    config = hf.Gemma4Config(
        text_config=text_config(
            tokenizer,
            head_dim=16,
            global_head_dim=16,
            sliding_window=32,
            layer_types=["sliding_attention", "full_attention"],
            hidden_size_per_layer_input=0,
            vocab_size_per_layer_input=len(tokenizer),
            **text,
        ),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "patch_size": 4,
            "pooling_kernel_size": 2,
            "position_embedding_size": 256,
            "initializer_range": 0.2,
        },
        audio_config=None,
        image_token_id=token_id(tokenizer, "<|image|>"),
        video_token_id=token_id(tokenizer, "<|video|>"),
        boi_token_id=token_id(tokenizer, "<|image>"),
        eoi_token_id=token_id(tokenizer, "<image|>"),
        audio_token_id=token_id(tokenizer, "<|audio|>"),
        boa_token_id=token_id(tokenizer, "<|audio>"),
        eoa_token_id=token_id(tokenizer, "<audio|>"),
        tie_word_embeddings=False,
    )
    return save("Gemma4ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "gemma3": Architecture(
        write_gemma3,
        "Gemma3ForConditionalGeneration",
        "google/gemma-3-4b-it",
        chat_about_images,
        shown="images",
    ),
    "gemma4": Architecture(
        write_gemma4,
        "Gemma4ForConditionalGeneration",
        "google/gemma-4-E4B-it",
        chat_about_video,
    ),
}
