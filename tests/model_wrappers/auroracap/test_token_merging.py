"""Token merging in CLIP towers."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import CLIPVisionConfig, CLIPVisionModel

from lmms_eval_captions.model_wrappers.auroracap.token_merging import (
    TokenMerging,
    merged_per_layer,
)
from plain_merging import plain_counts, plain_states

N_LAYERS = 4


@cache
def make_tower(attention: str = "sdpa") -> torch.nn.Module:
    """A tower of random weights for pictures of 84 x 84, 36 patches."""
    torch.manual_seed(0)
    config: Any = CLIPVisionConfig
    return CLIPVisionModel(
        config(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=N_LAYERS,
            num_attention_heads=4,
            image_size=84,
            patch_size=14,
            attn_implementation=attention,
        )
    ).eval()


def look(tower: torch.nn.Module, pixels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """All hidden states, the embeddings first."""
    with torch.no_grad():
        outputs = tower(pixels, output_hidden_states=True, interpolate_pos_encoding=True)
    states: tuple[torch.Tensor, ...] = outputs.hidden_states
    return states


def picture(height: int = 84, width: int = 84, batch: int = 2) -> torch.Tensor:
    """Noise, the same each time."""
    return torch.randn(batch, 3, height, width, generator=torch.Generator().manual_seed(1))


attentions = pytest.mark.parametrize("attention", ["sdpa", "eager"])


@attentions
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_ratio_one_is_the_plain_tower_bit_for_bit(attention: str, dtype: torch.dtype) -> None:
    """Nothing is merged and no hidden state changes in any bit."""
    tower = make_tower(attention).to(dtype)
    plain = look(tower, picture().to(dtype))
    with TokenMerging(tower, 1.0) as merging:
        merged = look(tower, picture().to(dtype))
    tower.float()
    assert len(plain) == N_LAYERS + 1
    assert all(torch.equal(first, other) for first, other in zip(plain, merged, strict=True))
    assert all((sizes == 1).all() for sizes in merging.sizes)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0, 1),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_sizes_and_counts_over_ratios_and_shapes(ratio: float, rows: int, columns: int) -> None:
    """For any picture and ratio the sizes add up to the patches, and equation 2 gives the count."""
    tower = make_tower()
    with TokenMerging(tower, ratio) as merging:
        hidden = look(tower, picture(14 * rows, 14 * columns))
    n_patches = rows * columns
    counts = plain_counts(n_patches, ratio, N_LAYERS)
    assert [states.shape[1] - 1 for states in hidden] == counts
    for sizes, states in zip(merging.sizes, hidden, strict=True):
        assert sizes.shape == states.shape[:2]
        assert (sizes.sum(dim=1) == n_patches + 1).all()
        assert (sizes[:, 0] == 1).all()


@pytest.mark.parametrize(
    ("ratio", "n_merged", "n_left"),
    [
        pytest.param(1.0, 0, 729, id="all"),
        pytest.param(0.8, 4, 605, id="0.8"),
        pytest.param(0.5, 11, 388, id="half"),
        pytest.param(0.1, 20, 109, id="0.1"),
        pytest.param(0.0, 22, 47, id="as few as there are layers for"),
    ],
)
def test_equation_2_at_the_released_size(ratio: float, n_merged: int, n_left: int) -> None:
    """378 x 378 pictures, patches of 14, 32 layers of which 31 are read (worked by hand)."""
    assert merged_per_layer(27 * 27, ratio, 32) == n_merged
    assert plain_counts(27 * 27, ratio, 32)[31] == n_left == 729 - 31 * n_merged


def distance(some: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    """The largest difference of any two numbers in like places."""
    return max(
        float((first - other).abs().max()) for first, other in zip(some, others, strict=True)
    )


@attentions
@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_every_layer_is_that_of_a_plain_one(attention: str, ratio: float) -> None:
    """Log s stands where the released code puts it, worked out by independent, plain code."""
    tower = make_tower(attention)
    frame = picture(batch=1)
    with TokenMerging(tower, ratio):
        seen = [states[0] for states in look(tower, frame)]
    assert distance(seen, plain_states(tower, frame[0], ratio)) < 1e-5


@pytest.mark.parametrize("fails", [False, True])
def test_the_tower_is_as_before_after_the_context(*, fails: bool) -> None:
    """No hook and no replaced forward stays, also where the pass failed."""
    tower = make_tower()
    plain = look(tower, picture())[-1]
    mine = tower.encoder.layers[0].forward
    tower.encoder.layers[0].forward = mine  # Someone else's replacement, as accelerate makes them.
    try:
        with TokenMerging(tower, 0.3):
            look(tower, torch.zeros(1, 5, 84, 84) if fails else picture())
    except RuntimeError:
        assert fails
    assert tower.encoder.layers[0].forward is mine
    del tower.encoder.layers[0].forward
    assert not any("forward" in vars(layer) for layer in tower.encoder.layers)
    assert not any(layer.self_attn.k_proj._forward_hooks for layer in tower.encoder.layers)
    assert torch.equal(look(tower, picture())[-1], plain)
