"""What judge tokens cost, from one dated file."""

from __future__ import annotations

from functools import cache
from importlib import resources

import yaml


def cost_usd(model: str, *, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars for the given tokens, ``None`` where the model's price is not known.

    Source: ``judges/prices.yaml``, with its date.

    >>> cost_usd("gpt-4o-2024-08-06", input_tokens=1_000_000, output_tokens=100_000)
    3.5
    >>> cost_usd("my-own-model", input_tokens=1, output_tokens=1) is None
    True
    """
    price = _prices().get(model)
    if price is None:
        return None
    return (input_tokens * price["input"] + output_tokens * price["output"]) / 1e6


@cache
def _prices() -> dict[str, dict[str, float]]:
    text = resources.files("lmms_eval_captions.judges").joinpath("prices.yaml").read_text("utf-8")
    prices: dict[str, dict[str, float]] = yaml.safe_load(text)["models"]
    return prices
