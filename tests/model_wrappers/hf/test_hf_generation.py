"""Generation settings as transformers takes them."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from transformers import GenerationConfig

from lmms_eval_captions.model_wrappers.hf.loading import (
    generation_config,
    n_written,
    new_tokens,
)
from lmms_eval_captions.model_wrappers.model_args import Generation


class Tokenizer(NamedTuple):
    """The two tokens that a tokenizer always has."""

    pad_token_id: int
    eos_token_id: int


TOKENIZER = Tokenizer(pad_token_id=9, eos_token_id=2)


def test_greedy_captions_are_drawn_from_nothing() -> None:
    own = GenerationConfig(do_sample=True, temperature=0.7, top_p=0.8, top_k=20, max_length=77)
    settings = generation_config(own, TOKENIZER, Generation(max_new_tokens=5))
    assert (settings.do_sample, settings.max_new_tokens, settings.max_length) == (False, 5, None)
    assert (settings.temperature, settings.top_p, settings.top_k) == (None, None, None)
    assert (settings.pad_token_id, settings.eos_token_id) == (9, 2)
    assert (own.do_sample, own.top_k) == (True, 20)


def test_a_task_s_settings_win_over_the_checkpoint_s() -> None:
    own = GenerationConfig(
        top_p=0.8, top_k=20, repetition_penalty=1.05, pad_token_id=0, eos_token_id=[1, 3]
    )
    drawn = Generation(do_sample=True, temperature=0.3, top_p=0.5)
    settings = generation_config(own, TOKENIZER, drawn)
    assert (settings.temperature, settings.top_p, settings.top_k) == (0.3, 0.5, 20)
    assert settings.repetition_penalty == 1.05
    assert (settings.pad_token_id, settings.eos_token_id) == (0, [1, 3])


@pytest.mark.parametrize("ends", [2, [2, 3]])
def test_written_tokens_are_counted_with_their_end_and_without_padding(ends: object) -> None:
    """A caption that was cut at its longest has no end to count."""
    new = torch.tensor([[5, 6, 2, 9, 9], [5, 6, 7, 8, 5], [2, 9, 9, 9, 9], [5, 2, 2, 2, 2]])
    settings = GenerationConfig(eos_token_id=ends, pad_token_id=9)
    assert n_written(new, settings) == [3, 5, 1, 2]


@pytest.mark.parametrize(
    ("written", "is_encoder_decoder", "new"),
    [
        pytest.param([[5, 6, 7, 1]], False, [[7, 1]], id="the prompt comes first"),
        pytest.param([[7, 1, 8]], False, [[7, 1, 8]], id="embeddings: what is new alone"),
        pytest.param([[5, 6]], False, [[]], id="nothing is written"),
        pytest.param([[0, 5, 6, 7]], True, [[5, 6, 7]], id="an encoder read the prompt"),
    ],
)
def test_what_is_new(
    written: list[list[int]], is_encoder_decoder: bool, new: list[list[int]]
) -> None:
    """The prompt is no part of a caption, whichever way a model returns it."""
    found = new_tokens(
        torch.tensor(written), torch.tensor([[5, 6]]), is_encoder_decoder=is_encoder_decoder
    )
    assert found.tolist() == new
