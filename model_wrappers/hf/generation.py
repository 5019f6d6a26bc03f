"""Generation settings as transformers takes them, and the tokens that were written."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from lmms_eval_captions.model_wrappers.model_args import Generation


def generation_config(
    own: GenerationConfig,
    tokenizer: Any,  # noqa: ANN401 (tokenizers have no common type)
    generation: Generation,
) -> GenerationConfig:
    """Return the checkpoint's own settings, overridden by those of the task."""
    settings = copy.deepcopy(own)
    settings.max_length = None
    settings.num_return_sequences = 1
    settings.return_dict_in_generate = settings.output_scores = settings.output_logits = False
    settings.max_new_tokens = generation.max_new_tokens
    settings.num_beams = generation.num_beams
    settings.do_sample = drawn = generation.do_sample
    settings.temperature = generation.temperature if drawn else None
    settings.top_p = (generation.top_p or settings.top_p) if drawn else None
    settings.top_k = (generation.top_k or settings.top_k) if drawn else None
    if generation.repetition_penalty is not None:
        settings.repetition_penalty = generation.repetition_penalty
    if settings.pad_token_id is None:
        settings.pad_token_id = tokenizer.pad_token_id
    if settings.eos_token_id is None:
        settings.eos_token_id = tokenizer.eos_token_id
    return settings


def new_tokens(
    written: torch.Tensor, prompt: torch.Tensor, *, is_encoder_decoder: bool
) -> torch.Tensor:
    """Return the written tokens, without the prompt.

    Args:
        written: Return value of ``generate``, shape (n_captions, n_tokens): prompt and caption, or
            the caption alone of a model that was handed embeddings; start token and caption of a
            model with an encoder.
        prompt: ``input_ids``, shape (n_captions, n_prompt).
        is_encoder_decoder: Whether an encoder has read the prompt.
    """
    if is_encoder_decoder:
        return written[:, 1:]
    n_prompt = prompt.shape[1]
    repeats = written.shape[1] >= n_prompt and torch.equal(written[:, :n_prompt], prompt)
    return written[:, n_prompt:] if repeats else written


def n_written(new: torch.Tensor, settings: GenerationConfig) -> list[int]:
    """Return the number of tokens of each caption, with its end, without padding."""
    ends = settings.eos_token_id
    is_end = torch.isin(new, torch.as_tensor(ends, device=new.device).reshape(-1))
    first = torch.where(is_end.any(dim=1), is_end.int().argmax(dim=1) + 1, new.shape[1])
    return [int(n) for n in first]
