"""Token merging in the vision tower of a CLIP or SigLIP model, frame by frame."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

import torch
from torch.nn import functional

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

BIASABLE: Final = ("eager", "sdpa")
"""Implementations of attention that take a bias on the scores."""

SizeBias = Literal["released", "equation"]
"""Weights of sizes in attention. ``equation``: log s is added to the scores of the keys, so that a
token weighs as the patches that it stands for. ``released``: AuroraCap's code adds the log s of a
query to all its scores, where softmax cancels it, so that every token weighs the same."""


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

    Merging happens between a layer's attention and its MLP, on the attention's keys; how merged
    tokens then weigh in attention is ``size_bias``. The tower's own modules do all else, and at a
    ratio of 1.0 its outputs are what they are without. A tower serves one context and one thread at
    a time.

    Args:
        tower: ``CLIPVisionModel``, ``SiglipVisionModel``, or a model that holds one as
            ``vision_model``.
        kept_ratio: Share of tokens to keep, in [0, 1].
        n_layers: Layers that the merging is spread over, for a tower whose last ones were cut off;
            all of the tower's where it is ``None``.
        size_bias: ``equation`` suits towers that were not trained on merged tokens, ``released``
            is the network that AuroraCap's weights were tuned in.

    Raises:
        SettingsError: If the ratio is outside [0, 1], ``size_bias`` is neither of the two, the
            tower has no layers of a known kind, or its attention takes no bias and needs one.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1, equation 1, appendix E, equation 2. ``released``:
        rese1f/aurora@27f6530, src/xtuner/xtuner/model/aurora.py, ``AuroraAttention``, in training
        and inference.
    """

    sizes: list[torch.Tensor]
    """Sizes of the last pass, aligned with the tower's hidden states: shape (batch, n_tokens) each,
    float32, patches that a token stands for, the class token included and counted as one."""

    def __init__(
        self,
        tower: nn.Module,
        kept_ratio: float,
        *,
        n_layers: int | None = None,
        size_bias: SizeBias = "equation",
    ) -> None:
        if not 0.0 <= kept_ratio <= 1.0:
            raise SettingsError(
                f"expected a kept ratio of tokens between 0 and 1, got {kept_ratio!r}"
            )
        require_size_bias(size_bias)
        model = getattr(tower, "vision_model", tower)
        self._layers = _layers_of(model)
        self._class_token = hasattr(model.embeddings, "class_embedding")
        self._n_layers = n_layers or len(self._layers)
        self._undo: list[Callable[[], None]] = []
        self._keys = torch.empty(0)
        self._n_merged = 0
        self.kept_ratio = kept_ratio
        self.size_bias = size_bias
        self.sizes = []
        attention = model.config._attn_implementation
        if size_bias == "equation" and kept_ratio < 1.0 and attention not in BIASABLE:
            raise SettingsError(
                f"merged tokens need a bias on attention, which {attention!r} does not take; "
                f"load the vision tower with attn_implementation one of {', '.join(BIASABLE)}"
            )

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
        attention_mask: torch.Tensor | None = None,
        *,
        first: bool,
        **kwargs: object,
    ) -> torch.Tensor:
        """One layer, with the merging between its two halves."""
        if first:
            self._start(hidden_states)
        attended, _ = layer.self_attn(
            hidden_states=layer.layer_norm1(hidden_states),
            attention_mask=self._bias(attention_mask, hidden_states.dtype),
            **kwargs,
        )
        hidden_states = self._merge(hidden_states + attended, layer.self_attn.num_heads)
        return hidden_states + layer.mlp(layer.layer_norm2(hidden_states))

    def _start(self, hidden_states: torch.Tensor) -> None:
        """A new batch of frames: every token is one patch."""
        batch, n_tokens, _ = hidden_states.shape
        n_patches = n_tokens - self._class_token
        self._n_merged = merged_per_layer(n_patches, self.kept_ratio, self._n_layers)
        # Float32 counts exactly; bfloat16 would round above 256.
        self.sizes = [hidden_states.new_ones((batch, n_tokens), dtype=torch.float32)]

    def _bias(self, mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
        """Equation 1's log s on the scores of every query, or the mask alone."""
        # Parity: the log s of a query on all its scores, as released, changes no softmax.
        if self.size_bias == "released" or self._n_merged == 0 or len(self.sizes) == 1:
            return mask
        bias = self.sizes[-1].log().to(dtype)[:, None, None, :]
        return bias if mask is None else bias + mask

    def _merge(self, hidden_states: torch.Tensor, n_heads: int) -> torch.Tensor:
        """The tokens after this layer's share of merging."""
        sizes = self.sizes[-1]
        if self._n_merged:
            # Parity: the mean of the heads' keys, as in Bolya et al.; the paper says keys only.
            keys = self._keys.unflatten(-1, (n_heads, -1)).mean(dim=2, dtype=torch.float32)
            matching = match(keys, self._n_merged, class_token=self._class_token)
            if matching is not None:
                hidden_states, sizes = merge(hidden_states, sizes, matching)
        self.sizes.append(sizes)
        return hidden_states


def require_size_bias(value: object) -> None:
    """Raise a ``SettingsError`` if a value is no ``SizeBias``."""
    if value not in get_args(SizeBias):
        raise SettingsError(
            f"expected size_bias as one of {', '.join(get_args(SizeBias))}, got {value!r}"
        )


def _layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the layers of a tower in order, after checking that merging can use them."""
    layers = list(getattr(getattr(model, "encoder", None), "layers", ()))
    parts = ("self_attn", "layer_norm1", "layer_norm2", "mlp")
    if not layers or not all(hasattr(layers[0], part) for part in parts):
        raise SettingsError(
            f"expected a vision tower of CLIP's or SigLIP's kind, got {type(model).__name__}"
        )
    if "output_attentions" in signature(type(layers[0]).forward).parameters:
        raise SettingsError("token merging needs the vision towers of transformers 5 or later")
    return layers


def _restore(layer: nn.Module, forward: object) -> None:
    """Undo the replacement of a layer's forward."""
    if forward is None:
        del layer.forward
    else:
        layer.forward = forward


class Matching(NamedTuple):
    """Tokens to merge, of two alternating sets: A at even positions, B at odd ones."""

    kept: torch.Tensor
    """Shape (batch, n_a - r): places in A of the tokens that stay, ascending."""
    merged: torch.Tensor
    """Shape (batch, r): places in A of the tokens that are merged away, most similar first."""
    targets: torch.Tensor
    """Shape (batch, r): places in B of the tokens that they are merged into."""


def match(keys: torch.Tensor, n_merged: int, *, class_token: bool) -> Matching | None:
    """Return the most similar pairs of a token of A and its nearest token of B.

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
    n_merged = min(n_merged, (keys.shape[1] - class_token) // 2)
    if n_merged <= 0:
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


def merge(
    hidden: torch.Tensor, sizes: torch.Tensor, matching: Matching
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens after merging, the rest of A first, then B, and the patches of each.

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
    """Return the tokens at some places of each sequence."""
    return tokens.gather(1, places[..., None].expand(-1, -1, tokens.shape[-1]))
