"""Inputs that were made apart, put together: text padded, patches in one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import BatchFeature


def merged(inputs: Sequence[BatchFeature], tokenizer: object) -> BatchFeature:
    """One batch of several, in their order, as a processor that lays patches in a row makes it.

    Args:
        inputs: Batches with the same entries, at least one.
        tokenizer: Says what texts are padded with.

    Raises:
        ValueError: If they differ in more than the number of tokens and patches.
    """
    from transformers import BatchFeature

    together: dict[str, Any] = {}
    longest = max(part["input_ids"].shape[1] for part in inputs)
    names = dict.fromkeys(name for part in inputs for name in part)
    for name in names:
        # What shows pictures alone has other entries than what shows clips, or nothing.
        values = [part[name] for part in inputs if name in part]
        if len(values) != len(inputs):
            raise ValueError(f"expected {name} in all parts, it is in {len(values)}")
        if any(not isinstance(value, torch.Tensor) for value in values):
            together[name] = [entry for value in values for entry in value]
            continue
        if _is_per_token(name, inputs):
            filler = getattr(tokenizer, "pad_token_id", None) if name == "input_ids" else 0
            side = getattr(tokenizer, "padding_side", "left")
            values = [_padded(value, longest, int(filler or 0), side) for value in values]
        if len({value.shape[1:] for value in values}) > 1:
            raise ValueError(f"expected equal shapes of {name}, got {[v.shape for v in values]}")
        together[name] = torch.cat(values)
    return BatchFeature(together)


def lies_in_a_row(alone: Sequence[BatchFeature], together: BatchFeature, tokenizer: object) -> bool:
    """Whether a processor's batch of clips of different lengths is no more than its parts.

    Args:
        alone: What it makes of each clip.
        together: What it makes of all of them in one call.
        tokenizer: Its own.
    """
    try:
        expected = merged(alone, tokenizer)
    except ValueError:
        return False
    return set(expected) == set(together) and all(
        _equal(expected[name], together[name]) for name in expected
    )


def _is_per_token(name: str, inputs: Sequence[BatchFeature]) -> bool:
    """Whether an entry has one number for each token of the text."""
    return all(part[name].shape == part["input_ids"].shape for part in inputs)


def _padded(rows: torch.Tensor, length: int, filler: int, side: str) -> torch.Tensor:
    missing = length - rows.shape[1]
    where = (0, missing) if side == "right" else (missing, 0)
    return torch.nn.functional.pad(rows, where, value=filler)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return bool(torch.equal(one, other))
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other)
