"""A tiny AuroraCap with random weights, in the released layout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.utils.logging import disable_progress_bar

from lmms_eval_captions.model_wrappers.auroracap.checkpoint import Projector

if TYPE_CHECKING:
    from pathlib import Path

IMAGE_SIZE = 56
PATCH_SIZE = 14
N_LAYERS = 4


def tiny_tokenizer() -> Any:  # its class says that a text of ids may be a list
    """One token a byte, and a start, an end and an unknown."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(["<unk>", "<s>", "</s>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", vocabulary["<s>"])]
    )
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def tiny_tower(**changes: Any) -> CLIPVisionModel:
    """A CLIP tower of 16 patches."""
    settings = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": N_LAYERS,
        "num_attention_heads": 4,
        "image_size": IMAGE_SIZE,
        "patch_size": PATCH_SIZE,
    }
    tower = CLIPVisionModel(CLIPVisionConfig(**{**settings, **changes}))
    tower.eval()
    return tower


def tiny_llm(n_words: int) -> LlamaForCausalLM:
    """A Llama of two layers whose words differ enough that greedy decoding has no ties."""
    config = LlamaConfig(
        vocab_size=n_words,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=None,
    )
    llm = LlamaForCausalLM(config)
    llm.eval()
    return llm


def write_auroracap(folder: Path, seed: int = 0) -> Path:
    """Write a checkpoint as AuroraCap's are: LLM at the root, ``visual_encoder``, ``projector``."""
    torch.manual_seed(seed)
    tokenizer = tiny_tokenizer()
    llm, tower = tiny_llm(len(tokenizer)), tiny_tower()
    disable_progress_bar()
    # What Vicuna's own generation_config.json says, which greedy decoding must not trip over.
    llm.generation_config.update(do_sample=True, temperature=0.9, top_p=0.6)
    llm.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tower.save_pretrained(folder / "visual_encoder")
    rename_weights(folder / "visual_encoder" / "model.safetensors")
    save_projector(Projector(32, 48), folder / "projector")
    return folder


def rename_weights(file: Path) -> None:
    """Give a tower's weights the names that transformers 4 wrote."""
    names = {name: f"vision_model.{name.removeprefix('vision_model.')}" for name in load_file(file)}
    save_file(
        {names[name]: tensor for name, tensor in load_file(file).items()},
        file,
        metadata={"format": "pt"},
    )


def save_projector(projector: Projector, folder: Path) -> None:
    """Write a projector as xtuner does."""
    folder.mkdir()
    first = projector.model[0]
    config = {
        "architectures": ["ProjectorModel"],
        "auto_map": {"AutoModel": "modeling_projector.ProjectorModel"},
        "model_type": "projector",
        "visual_hidden_size": first.in_features,
        "llm_hidden_size": first.out_features,
        "depth": 2,
        "hidden_act": "gelu",
        "bias": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(projector.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
