"""Qwen2.5-Omni and Qwen3-Omni, whole: with what speaks, which writes no captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from zoo.architecture import Architecture
from zoo.building import chatml, library, make_tokenizer, save, text_config, token_id
from zoo.qwen_vl import rotary
from zoo.recipes import chat_about_pairs, chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_NAMED: Final = {
    "image_token": "<|IMAGE|>",
    "video_token": "<|VIDEO|>",
    "audio_token": "<|AUDIO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
_TEMPLATE: Final = chatml(
    "<|vision_bos|><|IMAGE|><|vision_eos|>", "<|vision_bos|><|VIDEO|><|vision_eos|>"
)
_ENCODER: Final = {
    "encoder_layers": 1,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "d_model": 32,
    "output_dim": 64,
}


def write_qwen2_5_omni(folder: Path, **text: object) -> Path:
    """Qwen2.5-Omni, with talker and vocoder."""
    hf = library()
    tokenizer = make_tokenizer(("<|im_start|>",), **_NAMED)
    size = {"shortest_edge": 28 * 28, "longest_edge": 56 * 56}
    processor = hf.Qwen2_5OmniProcessor(
        hf.Qwen2VLImageProcessor(size=size),
        hf.Qwen2VLVideoProcessor(size=size),
        hf.WhisperFeatureExtractor(feature_size=128),
        tokenizer,
        chat_template=_TEMPLATE,
    )
    config = hf.Qwen2_5OmniConfig(
        thinker_config={
            "audio_config": {**_ENCODER, "num_mel_bins": 128},
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 64,
                "fullatt_block_indexes": [1],
                "initializer_range": 0.2,
            },
            "text_config": text_config(tokenizer, rope_parameters=rotary([2, 3, 3]), **text),
            **_marks(tokenizer, "index"),
        },
        talker_config={
            "vocab_size": 32,
            "embedding_size": 64,
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_parameters": rotary([2, 3, 3]),
        },
        token2wav_config={
            "dit_config": {
                "hidden_size": 32,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "head_dim": 16,
                "emb_dim": 16,
                "num_embeds": 33,
                "mel_dim": 8,
                "enc_dim": 8,
                "enc_emb_dim": 8,
                "enc_channels": [8, 8, 8, 8, 24],
                "enc_attention_channels": 8,
                "enc_res2net_scale": 2,
                "enc_se_channels": 8,
                "look_ahead_layers": [0],
                "look_backward_layers": [0],
            },
            "bigvgan_config": {"mel_dim": 8, "upsample_initial_channel": 64},
        },
    )
    return save("Qwen2_5OmniForConditionalGeneration", config, processor, folder)


def write_qwen3_omni_moe(folder: Path, **text: object) -> Path:
    """Qwen3-Omni, with talker and vocoder, all of them mixtures of experts."""
    hf = library()
    tokenizer = make_tokenizer(("<|im_start|>",), **_NAMED)
    size = {"shortest_edge": 32 * 32, "longest_edge": 64 * 64}
    patches = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2}
    processor = hf.Qwen3OmniMoeProcessor(
        hf.Qwen2VLImageProcessor(size=size, **patches),
        hf.Qwen2VLVideoProcessor(size=size, **patches),
        hf.WhisperFeatureExtractor(feature_size=128),
        tokenizer,
        chat_template=_TEMPLATE,
    )
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    small = {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
    }
    config = hf.Qwen3OmniMoeConfig(
        thinker_config={
            "audio_config": {
                **_ENCODER,
                "num_mel_bins": 128,
                "downsample_hidden_size": 16,
            },
            "vision_config": {
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 64,
                "num_position_embeddings": 16,
                "deepstack_visual_indexes": [0],
                "initializer_range": 0.2,
            },
            "text_config": text_config(
                tokenizer,
                head_dim=16,
                rope_parameters=rotary([4, 2, 2], mrope_interleaved=True),
                **experts,
                **text,
            ),
            **_marks(tokenizer, "id"),
        },
        talker_config={
            "thinker_hidden_size": 64,
            "num_code_groups": 2,
            "text_config": {
                "vocab_size": 32,
                "shared_expert_intermediate_size": 32,
                "rope_parameters": rotary([4, 2, 2], mrope_interleaved=True),
                **small,
                **experts,
            },
            "code_predictor_config": {"vocab_size": 32, "num_code_groups": 2, **small},
            "accept_hidden_layer": 1,
            "spatial_merge_size": 2,
        },
        code2wav_config={
            "codebook_size": 32,
            "hidden_size": 32,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_quantizers": 2,
            "decoder_dim": 64,
        },
    )
    return save("Qwen3OmniMoeForConditionalGeneration", config, processor, folder)


def _marks(tokenizer: Any, ending: str) -> dict[str, int]:
    ids = {
        f"{kind}_token_{ending}": token_id(tokenizer, f"<|{kind.upper()}|>")
        for kind in ("image", "video", "audio")
    }
    return {
        **ids,
        "vision_start_token_id": token_id(tokenizer, "<|vision_bos|>"),
        "vision_end_token_id": token_id(tokenizer, "<|vision_eos|>"),
        "audio_start_token_id": token_id(tokenizer, "<|audio_bos|>"),
        "audio_end_token_id": token_id(tokenizer, "<|audio_eos|>"),
    }


ARCHITECTURES = {
    "qwen2_5_omni": Architecture(
        write_qwen2_5_omni,
        "Qwen2_5OmniThinkerForConditionalGeneration",
        "Qwen/Qwen2.5-Omni-7B",
        chat_about_video,
    ),
    "qwen3_omni_moe": Architecture(
        write_qwen3_omni_moe,
        "Qwen3OmniMoeThinkerForConditionalGeneration",
        "Qwen/Qwen3-Omni-30B-A3B-Instruct",
        chat_about_pairs,
    ),
}
