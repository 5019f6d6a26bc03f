"""Gemma 3n: a tower of timm's, an audio tower, layers that share keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.architecture import Architecture
from zoo.building import library, make_tokenizer, save, text_config, token_id
from zoo.gemma import TURNS
from zoo.recipes import chat_about_images

if TYPE_CHECKING:
    from pathlib import Path


def write_gemma3n(folder: Path, **text: object) -> Path:
    """Gemma 3n, its tower the smallest of its kind."""
    hf = library()
    tokenizer = make_tokenizer(
        ("<start_of_turn>",),
        start="<bos>",
        end="<end_of_turn>",
        pad="<pad>",
        boi_token="<start_of_image>",  # noqa: S106
        eoi_token="<end_of_image>",  # noqa: S106
        image_token="<image_soft_token>",  # noqa: S106
        boa_token="<start_of_audio>",  # noqa: S106
        eoa_token="<end_of_audio>",  # noqa: S106
        audio_token="<audio_soft_token>",  # noqa: S106
    )
    processor = hf.Gemma3nProcessor(
        hf.Gemma3nAudioFeatureExtractor(),
        hf.SiglipImageProcessor(size={"height": 64, "width": 64}, do_normalize=False),
        tokenizer,
        chat_template=TURNS.format(
            start="<start_of_turn>", end="<end_of_turn>", image="<image_soft_token>", video=""
        ),
        image_seq_length=4,
    )
    n_tokens = len(tokenizer)
    config = hf.Gemma3nConfig(
        text_config=text_config(
            tokenizer,
            head_dim=16,
            num_hidden_layers=4,
            num_kv_shared_layers=2,
            layer_types=["sliding_attention", "full_attention"] * 2,
            sliding_window=32,
            vocab_size_per_layer_input=n_tokens,
            hidden_size_per_layer_input=8,
            laurel_rank=8,
            **text,
        ),
        vision_config={
            # The real one is mobilenetv5_300m_enc, whose layers take seconds however narrow.
            "architecture": "test_efficientnet",
            "hidden_size": 256,
            "vocab_offset": n_tokens,
            "vocab_size": 8,
        },
        audio_config={
            "hidden_size": 32,
            "conf_num_hidden_layers": 1,
            "conf_num_attention_heads": 2,
            "sscp_conv_channel_size": [8, 4],
            "vocab_offset": n_tokens + 8,
            "vocab_size": 8,
        },
        vision_soft_tokens_per_image=4,
        image_token_id=token_id(tokenizer, "<image_soft_token>"),
        boi_token_id=token_id(tokenizer, "<start_of_image>"),
        eoi_token_id=token_id(tokenizer, "<end_of_image>"),
        audio_token_id=token_id(tokenizer, "<audio_soft_token>"),
        boa_token_id=token_id(tokenizer, "<start_of_audio>"),
        eoa_token_id=token_id(tokenizer, "<end_of_audio>"),
        tie_word_embeddings=False,
    )
    return save("Gemma3nForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "gemma3n": Architecture(
        write_gemma3n,
        "Gemma3nForConditionalGeneration",
        "google/gemma-3n-E4B-it",
        chat_about_images,
        shown="images",
        needs=("timm",),
    ),
}
