"""Token merging in a CLIP vision tower, frame by frame."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


def merged_per_layer(n_patches: int, kept_ratio: float, n_layers: int) -> int:
    """Return the number of tokens that each layer of a tower merges away.

    Source:
        AuroraCap (arXiv 2410.03051), appendix E, equation 2; rounded down as in its code.

    >>> [merged_per_layer(729, ratio, 32) for ratio in (1.0, 0.5, 0.1, 0.0)]
    [0, 11, 20, 22]
    """
    return int(n_patches * (1 - kept_ratio) / n_layers)


class TokenMerging:
    """Within the context, every layer of a tower merges its most similar tokens.

    Merging happens between a layer's attention and its MLP, on the attention's keys. The tower's
    own modules do all else, and at a ratio of 1.0 its outputs are what they are without. A tower
    serves one context and one thread at a time.

    Args:
        tower: ``CLIPVisionModel``.
        kept_ratio: Share of tokens to keep, in [0, 1].
        n_layers: Layers that the merging is spread over (all of the tower's), for a tower whose
            last ones were cut off.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1 and appendix E, equation 2; rese1f/aurora@27f6530,
        src/xtuner/xtuner/model/aurora.py, ``AuroraAttention``. Deviation from equation 1, parity
        with that code: it adds the log s of a query to all its scores, where softmax cancels it, so
        that a merged token weighs as much as any other, however many patches it stands for.
    """

    sizes: list[torch.Tensor]
    """Sizes of the last pass, aligned with the tower's hidden states: shape (batch, n_tokens) each,
    float32, patches that a token stands for, the class token included and counted as one."""

    def __init__(self, tower: nn.Module, kept_ratio: float, *, n_layers: int | None = None) -> None:
        # transformers 4 wraps the part that holds the encoder.
        self._layers = list(getattr(tower, "vision_model", tower).encoder.layers)
        self._n_layers = n_layers or len(self._layers)
        self._undo: list[Callable[[], None]] = []
        self._keys = torch.empty(0)
        self._n_merged = 0
        self.kept_ratio = kept_ratio
        self.sizes = []

    def __enter__(self) -> TokenMerging:
        for index, layer in enumerate(self._layers):
            handle = layer.self_attn.k_proj.register_forward_hook(self._keep_keys)
            self._undo += [handle.remove, partial(_restore, layer, vars(layer).get("forward"))]
            layer.forward = partial(self._forward, layer, first=index == 0)
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            self._undo.pop()()

    def _keep_keys(self, _module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        self._keys = output

    def _forward(
        self,
        layer: nn.Module,
        hidden_states: torch.Tensor,
        *args: object,
        first: bool,
        **kwargs: object,
    ) -> torch.Tensor:
        """Run one layer, with the merging between its two halves."""
        if first:  # a new batch of frames: every token is one patch
            batch, n_tokens, _ = hidden_states.shape
            self._n_merged = merged_per_layer(n_tokens - 1, self.kept_ratio, self._n_layers)
            # Float32 counts exactly; bfloat16 would round above 256.
            self.sizes = [hidden_states.new_ones((batch, n_tokens), dtype=torch.float32)]
        attended, _ = layer.self_attn(layer.layer_norm1(hidden_states), *args, **kwargs)
        hidden_states, sizes = hidden_states + attended, self.sizes[-1]
        # Parity: the mean of the heads' keys, as in Bolya et al.; the paper says keys only.
        keys = self._keys.unflatten(-1, (layer.self_attn.num_heads, -1))
        matching = match(keys.mean(dim=2, dtype=torch.float32), self._n_merged)
        if matching is not None:
            hidden_states, sizes = merge(hidden_states, sizes, matching)
        self.sizes.append(sizes)
        return hidden_states + layer.mlp(layer.layer_norm2(hidden_states))


def _restore(layer: nn.Module, forward: object) -> None:
    """Undo the replacement of a layer's forward."""
    if forward is None:
        del layer.forward
    else:
        layer.forward = forward


class Matching(NamedTuple):
    """Tokens to merge, of two alternating sets: A at even positions, B at odd ones."""

    kept: torch.Tensor
    """Shape (batch, n_a - r): positions in A of the tokens that stay, ascending."""
    merged: torch.Tensor
    """Shape (batch, r): positions in A of the tokens that are merged away, most similar first."""
    targets: torch.Tensor
    """Shape (batch, r): positions in B of the tokens that they are merged into."""


def match(keys: torch.Tensor, n_merged: int) -> Matching | None:
    """Return the most similar pairs of a token of A and its nearest token of B.

    The first token is the class token, which is never merged.

    Args:
        keys: Shape (batch, n_tokens, dim), compared by their cosine.
        n_merged: Pairs wanted a sequence, r of the paper; at most half of the tokens go.

    Returns:
        The pairs, or ``None`` if there is nothing to merge.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1, steps 1-3, after Bolya et al. (2022).

    >>> keys = torch.tensor([[[9.0, 9.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0]]])
    >>> pairs = match(keys, 1)
    >>> pairs.kept.tolist(), pairs.merged.tolist(), pairs.targets.tolist()
    ([[0]], [[1]], [[0]])
    """
    n_merged = min(n_merged, (keys.shape[1] - 1) // 2)
    if n_merged <= 0:
        return None
    with torch.no_grad():
        # Half precision ties most cosines of neighbouring patches, and bfloat16 all of them.
        unit = functional.normalize(keys.float(), dim=-1)
        cosine = unit[:, ::2] @ unit[:, 1::2].transpose(1, 2)
        cosine[:, 0] = -torch.inf
        best, nearest = cosine.max(dim=-1)
        # Stable, so that equal cosines give the same pairs on every device and batch.
        ranked = best.argsort(dim=-1, descending=True, stable=True)
        merged = ranked[:, :n_merged]
        kept = ranked[:, n_merged:].sort(dim=-1).values
        return Matching(kept=kept, merged=merged, targets=nearest.gather(1, merged))


def merge(
    hidden: torch.Tensor, sizes: torch.Tensor, matching: Matching
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens after merging, the rest of A first, then B, and the patches of each.

    Tokens of shape (batch, n_tokens, dim) and float32 sizes of (batch, n_tokens) lose r in their
    second dimension. A token that nothing is merged into is unchanged bit for bit.

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


def _take(tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return the tokens at some positions of each sequence."""
    return tokens.gather(1, positions[..., None].expand(-1, -1, tokens.shape[-1]))
