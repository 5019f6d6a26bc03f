"""Which tokens of a frame resemble each other most, and their size-weighted average."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """Tokens to merge, of the two sets that take turns: A at even positions, B at odd ones."""

    kept: torch.Tensor
    """Shape (batch, n_a - r): places in A of the tokens that stay, ascending."""
    merged: torch.Tensor
    """Shape (batch, r): places in A of the tokens that are merged away, most similar first."""
    targets: torch.Tensor
    """Shape (batch, r): places in B of the tokens that they are merged into."""


def match(keys: torch.Tensor, n_merged: int, *, class_token: bool) -> Matching | None:
    """The most similar pairs of a token of A and its nearest token of B.

    Args:
        keys: Shape (batch, n_tokens, dim), what is compared by its cosine.
        n_merged: Pairs wanted a sequence, r of the paper; at most half of the tokens go.
        class_token: Whether the first token is a class token, which is never merged.

    Returns:
        The pairs, or ``None`` where there is nothing to merge.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1, steps 1-3, after Bolya et al. (2022).

    >>> pairs = match(torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]]), 1, class_token=False)
    >>> pairs.kept.tolist(), pairs.merged.tolist(), pairs.targets.tolist()
    ([[0]], [[1]], [[0]])
    """
    n_merged = most_merged(keys.shape[1], n_merged, class_token=class_token)
    if n_merged == 0:
        return None
    with torch.no_grad():
        # Half precision ties most cosines of neighbouring patches, and bfloat16 all of them.
        unit = functional.normalize(keys.float(), dim=-1)
        cosine = unit[:, ::2] @ unit[:, 1::2].transpose(1, 2)
        if class_token:
            cosine[:, 0] = -torch.inf
        best, nearest = cosine.max(dim=-1)
        # Stable, so that equal cosines give the same pairs on every device and batch.
        ranked = best.argsort(dim=-1, descending=True, stable=True)
        merged = ranked[:, :n_merged]
        # Deviation: Bolya et al. leave the rest in order of similarity where there is no class
        # token; in order of place, what a language model reads stays closer to the picture.
        kept = ranked[:, n_merged:].sort(dim=-1).values
        return Matching(kept=kept, merged=merged, targets=nearest.gather(1, merged))


def most_merged(n_tokens: int, n_merged: int, *, class_token: bool) -> int:
    """Pairs that can be merged in one layer when ``n_merged`` are wanted.

    >>> most_merged(730, 20, class_token=True), most_merged(8, 20, class_token=True)
    (20, 3)
    """
    return max(0, min(n_merged, (n_tokens - class_token) // 2))


def merge(
    hidden: torch.Tensor, sizes: torch.Tensor, matching: Matching
) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens after merging, what is left of A first, then B, and how many patches each is.

    Args:
        hidden: Shape (batch, n_tokens, dim).
        sizes: Shape (batch, n_tokens), float32, patches that each token stands for.
        matching: The pairs.

    Returns:
        Shapes (batch, n_tokens - r, dim) and (batch, n_tokens - r). A token that nothing is merged
        into is unchanged bit for bit.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1, steps 4 and 5.

    >>> pair = Matching(*(torch.tensor([indices]) for indices in ([0], [1], [0])))
    >>> tokens, sizes = merge(torch.tensor([[[9.0], [6.0], [3.0]]]), torch.ones(1, 3), pair)
    >>> tokens.tolist(), sizes.tolist()
    ([[[9.0], [4.5]]], [[1.0, 2.0]])
    """
    tokens_a, tokens_b = hidden[:, ::2], hidden[:, 1::2]
    sizes_a, sizes_b = sizes[:, ::2], sizes[:, 1::2]
    moved = sizes_a.gather(1, matching.merged)
    sizes_b = sizes_b.scatter_add(1, matching.targets, moved)
    # The weighted mean (s_b b + sum s_a a) / s, written as b plus what the merged tokens add.
    step = _take(tokens_a, matching.merged).float() - _take(tokens_b, matching.targets).float()
    step *= (moved / sizes_b.gather(1, matching.targets))[..., None]
    # A product with the choice of target, unlike scattered sums, gives the same bits every time
    # on a GPU too; r is small, so that it costs little.
    choice = step.new_zeros(tokens_b.shape[0], tokens_b.shape[1], step.shape[1])
    choice.scatter_(1, matching.targets[:, None, :], 1.0)
    tokens_b = torch.baddbmm(tokens_b.float(), choice, step).to(hidden.dtype)
    return (
        torch.cat((_take(tokens_a, matching.kept), tokens_b), dim=1),
        torch.cat((sizes_a.gather(1, matching.kept), sizes_b), dim=1),
    )


def _take(tokens: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The tokens at some places of each sequence."""
    return tokens.gather(1, places[..., None].expand(-1, -1, tokens.shape[-1]))
