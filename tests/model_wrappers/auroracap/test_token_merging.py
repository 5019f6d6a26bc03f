"""Token merging in CLIP and SigLIP towers."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import CLIPVisionConfig, CLIPVisionModel, SiglipVisionConfig, SiglipVisionModel

from lmms_eval_captions.model_wrappers.auroracap.token_merging import (
    SizeBias,
    TokenMerging,
    merged_per_layer,
)
from plain_merging import LogSizesOn, plain_counts, plain_states

KINDS = {
    "clip": (CLIPVisionModel, CLIPVisionConfig),
    "siglip": (SiglipVisionModel, SiglipVisionConfig),
}
N_LAYERS = 4


@cache
def make_tower(kind: str, attention: str = "sdpa") -> torch.nn.Module:
    """A tower of random weights for pictures of 84 x 84, 36 patches."""
    torch.manual_seed(0)
    model, config = KINDS[kind]
    return model(
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


kinds = pytest.mark.parametrize("kind", KINDS)
attentions = pytest.mark.parametrize("attention", ["sdpa", "eager"])


@kinds
@attentions
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_ratio_one_is_the_plain_tower_bit_for_bit(
    kind: str, attention: str, dtype: torch.dtype
) -> None:
    """Nothing is merged and no hidden state changes in any bit."""
    tower = make_tower(kind, attention).to(dtype)
    plain = look(tower, picture().to(dtype))
    with TokenMerging(tower, 1.0) as merging:
        merged = look(tower, picture().to(dtype))
    tower.float()
    assert len(plain) == N_LAYERS + 1
    assert all(torch.equal(first, other) for first, other in zip(plain, merged, strict=True))
    assert all((sizes == 1).all() for sizes in merging.sizes)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.floats(0, 1),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_sizes_and_counts_over_ratios_and_shapes(
    kind: str, ratio: float, rows: int, columns: int
) -> None:
    """For any picture and ratio the sizes add up to the patches, and equation 2 gives the count."""
    has_class = kind == "clip"
    tower = make_tower(kind)
    with TokenMerging(tower, ratio) as merging:
        hidden = look(tower, picture(14 * rows, 14 * columns))
    n_patches = rows * columns
    # SigLIP's last hidden state is normalised after the last layer, which changes no shape.
    counts = plain_counts(n_patches, ratio, N_LAYERS)
    assert [states.shape[1] - has_class for states in hidden] == counts
    for sizes, states in zip(merging.sizes, hidden, strict=True):
        assert sizes.shape == states.shape[:2]
        assert (sizes.sum(dim=1) == n_patches + has_class).all()
        assert not has_class or (sizes[:, 0] == 1).all()


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


def strangeness_of_merged_duplicates(kind: str, attention: str, size_bias: SizeBias) -> float:
    tower = make_tower(kind, attention)
    # Columns 0-2 are one patch and 3-5 another, so that 3 merges a layer find duplicates only.
    patches = torch.randn(2, 3, 14, 14, generator=torch.Generator().manual_seed(2))
    row = torch.cat([patches[0]] * 3 + [patches[1]] * 3, dim=-1)
    pixels = torch.cat([row] * 6, dim=-2)[None]
    positions = tower.embeddings.position_embedding.weight
    learned = positions.detach().clone()
    with torch.no_grad():
        positions[int(kind == "clip") :] = 0.0
    plain = look(tower, pixels)
    with TokenMerging(tower, 0.6, size_bias=size_bias) as merging:
        merged = look(tower, pixels)
    with torch.no_grad():
        positions.copy_(learned)
    assert merging.sizes[-1].max() > 2
    return max(
        float((there - here[:, None]).abs().amax(dim=-1).amin(dim=-1).max())
        for there, here in zip((p[0] for p in plain), (m[0] for m in merged), strict=True)
    )


@kinds
@attentions
def test_merged_duplicates_weigh_as_much_as_apart(kind: str, attention: str) -> None:
    """With equation 1's log s, merging equal patches changes nothing; as released, it does."""
    assert strangeness_of_merged_duplicates(kind, attention, "equation") < 1e-4
    assert strangeness_of_merged_duplicates(kind, attention, "released") > 1e-3


def distance(some: list[torch.Tensor], others: list[torch.Tensor]) -> float:
    """The largest difference of any two numbers in like places."""
    return max(
        float((first - other).abs().max()) for first, other in zip(some, others, strict=True)
    )


@attentions
@pytest.mark.parametrize(("size_bias", "axis"), [("released", "queries"), ("equation", "keys")])
@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_every_layer_is_that_of_a_plain_one(
    attention: str, size_bias: SizeBias, axis: LogSizesOn, ratio: float
) -> None:
    """Log s stands where each of the two puts it, worked out by independent, plain code."""
    tower = make_tower("clip", attention)
    frame = picture(batch=1)
    with TokenMerging(tower, ratio, size_bias=size_bias):
        seen = [states[0] for states in look(tower, frame)]
    assert distance(seen, plain_states(tower, frame[0], ratio, axis)) < 1e-5


@pytest.mark.parametrize("fails", [False, True])
def test_the_tower_is_as_before_after_the_context(*, fails: bool) -> None:
    """No hook and no replaced forward stays, also where the pass failed."""
    tower = make_tower("clip")
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
