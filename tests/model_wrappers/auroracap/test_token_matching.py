"""Bipartite soft matching and the size-weighted average."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_captions.model_wrappers.auroracap.token_matching import match, merge, most_merged


def groups_of(
    keys: torch.Tensor, n_merged: int, *, class_token: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """What each token left is made of: the sources' shares, and its size."""
    n_tokens = keys.shape[1]
    identity = torch.eye(n_tokens).expand(keys.shape[0], -1, -1)
    sizes = torch.ones(keys.shape[:2])
    pairs = match(keys, n_merged, class_token=class_token)
    return (identity, sizes) if pairs is None else merge(identity, sizes, pairs)


@st.composite
def frames(draw: st.DrawFn) -> tuple[torch.Tensor, int, bool]:
    """Keys of a few frames, a wanted number of merges, and whether there is a class token."""
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 40)), draw(st.integers(1, 8)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    return (
        torch.randn(shape, generator=generator),
        draw(st.integers(0, 40)),
        draw(st.booleans()),
    )


@settings(max_examples=150, deadline=None)
@given(frames())
def test_every_token_ends_in_one_group_with_its_share(
    frame: tuple[torch.Tensor, int, bool],
) -> None:
    """Each group is the plain mean of its members, and the groups share out all tokens."""
    keys, n_merged, class_token = frame
    shares, sizes = groups_of(keys, n_merged, class_token=class_token)
    members = shares > 0
    assert torch.equal(members.sum(dim=1), torch.ones_like(keys[..., 0]).long())
    assert torch.equal(members.sum(dim=2).float(), sizes)
    torch.testing.assert_close(shares, members / sizes[..., None])


@settings(max_examples=100, deadline=None)
@given(frames())
def test_the_number_of_tokens_follows_from_the_number_of_merges(
    frame: tuple[torch.Tensor, int, bool],
) -> None:
    """As many tokens go as are asked for, up to half of all but the class token."""
    keys, n_merged, class_token = frame
    _, sizes = groups_of(keys, n_merged, class_token=class_token)
    n_tokens = keys.shape[1]
    expected = min(n_merged, (n_tokens - int(class_token)) // 2)
    assert sizes.shape[1] == n_tokens - expected
    assert most_merged(n_tokens, n_merged, class_token=class_token) == expected


@settings(max_examples=100, deadline=None)
@given(frames())
def test_the_class_token_stays_alone_and_first(frame: tuple[torch.Tensor, int, bool]) -> None:
    """However many tokens are merged, the class token is not touched."""
    keys, n_merged, _ = frame
    shares, sizes = groups_of(keys, n_merged, class_token=True)
    assert torch.equal(shares[:, 0], torch.eye(keys.shape[1])[0].expand(keys.shape[0], -1))
    assert (sizes[:, 0] == 1).all()


@given(st.integers(0, 1000), st.integers(0, 15), st.integers(0, 15))
@settings(max_examples=50, deadline=None)
def test_duplicates_merge_first(seed: int, even: int, odd: int) -> None:
    """Of many tokens, the two with the same key are the first pair."""
    keys = torch.randn(1, 32, 8, generator=torch.Generator().manual_seed(seed))
    keys[0, 2 * even] = 3.0 * keys[0, 2 * odd + 1]  # The length of a key does not count.
    shares, _ = groups_of(keys, 1, class_token=False)
    merged = shares[0][(shares[0] > 0).sum(dim=1) == 2][0]
    assert merged.nonzero().flatten().tolist() == sorted([2 * even, 2 * odd + 1])


@pytest.mark.parametrize(
    ("tokens", "sizes", "expected", "expected_sizes"),
    [
        pytest.param([1, 2, 3, 4], [1, 1, 1, 1], [1, 2.5, 4], [1, 2, 1], id="equal sizes"),
        pytest.param([1, 2, 6, 4], [1, 1, 3, 1], [1, 5, 4], [1, 4, 1], id="weighted by size"),
        pytest.param([1, 9, 6, 4], [5, 2, 1, 7], [1, 8, 4], [5, 3, 7], id="of a bigger target"),
    ],
)
def test_the_third_token_merges_into_the_second(
    tokens: list[float], sizes: list[float], expected: list[float], expected_sizes: list[float]
) -> None:
    """The average is weighted by the patches that each token stands for (worked by hand)."""
    keys = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-1.0, 0.0]]])
    pairs = match(keys, 1, class_token=False)
    assert pairs is not None
    merged, merged_sizes = merge(
        torch.tensor([tokens])[..., None] * 1.0, torch.tensor([sizes]) * 1.0, pairs
    )
    assert merged[0, :, 0].tolist() == expected
    assert merged_sizes[0].tolist() == expected_sizes


def test_several_tokens_merge_into_one() -> None:
    """Tokens of A with one nearest token of B all go into it."""
    keys = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, -0.1]]])
    pairs = match(keys, 2, class_token=False)
    assert pairs is not None
    tokens = torch.tensor([[[3.0], [6.0], [1.0], [7.0], [100.0]]])
    merged, sizes = merge(tokens, torch.ones(1, 5), pairs)
    assert merged[0, :, 0].tolist() == [100.0, pytest.approx(10 / 3), 7.0]
    assert sizes[0].tolist() == [1.0, 3.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_counts_patches_exactly(dtype: torch.dtype) -> None:
    """Sizes stay whole numbers where bfloat16 could not count them."""
    keys = torch.ones(1, 3, 4)
    pairs = match(keys, 1, class_token=False)
    assert pairs is not None
    merged, sizes = merge(
        torch.ones(1, 3, 4, dtype=dtype), torch.tensor([[256.0, 1.0, 1.0]]), pairs
    )
    assert sizes[0].tolist() == [1.0, 257.0]
    assert merged.dtype == dtype
    assert (merged == 1).all()
