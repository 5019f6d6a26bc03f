"""Token merging once more, one frame at a time and in loops; it shares no code with ours."""

from __future__ import annotations

import math

import torch


def plain_states(tower: torch.nn.Module, pixels: torch.Tensor, ratio: float) -> list[torch.Tensor]:
    """Hidden states of a CLIP tower, embeddings first, of one frame of shape (3, height, width).

    Log s stands along the axis of the queries, which is what the released code's
    ``scores + sizes.log()`` does with sizes of shape (batch, tokens, 1).
    """
    with torch.no_grad():
        tokens = tower.pre_layrnorm(tower.embeddings(pixels[None]))[0]
        layers = tower.encoder.layers
        sizes = torch.ones(len(tokens))
        n_merged = int((len(tokens) - 1) * (1 - ratio) / len(layers))
        states = [tokens]
        for layer in layers:
            query, key, value = _heads(layer.self_attn, layer.layer_norm1(tokens))
            scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
            scores = scores + sizes.log()[:, None]
            seen = (scores.softmax(dim=-1) @ value).transpose(0, 1).flatten(1)
            tokens = tokens + layer.self_attn.out_proj(seen)
            tokens, sizes = _merged(tokens, sizes, key.mean(dim=0), n_merged)
            tokens = tokens + layer.mlp(layer.layer_norm2(tokens))
            states.append(tokens)
    return states


def _heads(attention: torch.nn.Module, tokens: torch.Tensor) -> list[torch.Tensor]:
    """Queries, keys and values, each (n_heads, n_tokens, width of a head)."""
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    return [
        part(tokens).view(len(tokens), attention.num_heads, -1).transpose(0, 1) for part in parts
    ]


def _merged(
    tokens: torch.Tensor, sizes: torch.Tensor, keys: torch.Tensor, n_merged: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and sizes after the tokens at even places nearest to one at an odd place join it."""
    keys = keys / keys.norm(dim=-1, keepdim=True)
    even, odd = range(0, len(keys), 2), range(1, len(keys), 2)
    best = {a: max(odd, key=lambda b: float(keys[a] @ keys[b])) for a in even if a != 0}
    closest = sorted(best, key=lambda a: float(keys[a] @ keys[best[a]]), reverse=True)
    leaving = closest[:n_merged]
    groups = [[a] for a in even if a not in leaving]
    groups += [[b, *(a for a in leaving if best[a] == b)] for b in odd]
    left = torch.stack([sizes[group].sum() for group in groups])
    summed = torch.stack([(tokens[group] * sizes[group, None]).sum(dim=0) for group in groups])
    return summed / left[:, None], left


def plain_counts(n_patches: int, ratio: float, n_layers: int) -> list[int]:
    """Tokens of a frame after none of the layers, the first, ..., all; the class token left out.

    Equation 2, rounded down as in the released code; no layer merges more than half of its tokens.
    """
    n_merged = int(n_patches * (1 - ratio) / n_layers)
    counts = [n_patches]
    for _ in range(n_layers):
        counts.append(counts[-1] - min(n_merged, counts[-1] // 2))
    return counts
