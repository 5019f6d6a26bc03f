"""What judge tokens cost: one dated file, over which a user may lay one of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import ceil, isfinite
from pathlib import Path
from typing import Final, Literal

import yaml

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files.bounded_yaml import read_yaml_file

JudgeMode = Literal["now", "batch"]
"""Whether requests are answered at once, or within a day by the provider's Batch API."""

PRICES_VARIABLE: Final = "LMMS_CAPTIONS_PRICES"
_FIELDS: Final = {"input", "cached_input", "output", "image_tokens", "image_tiles", "image_patches"}
_SHAPE: Final = (
    "expected {as_of: DATE, batch_factor: 0.5, models: {NAME: {input: US dollars for a million "
    "tokens, output: the same}}}, any of the three alone"
)


@dataclass(frozen=True, slots=True)
class Price:
    """Of one model."""

    input: float
    """US dollars for a million tokens, >= 0."""
    output: float
    image_tokens: int
    """Most input tokens that one picture counts as."""
    image_tiles: tuple[int, int] | None = None
    """Tokens of a picture by itself and of each tile of 512 x 512; ``None`` where it is counted
    otherwise."""
    image_patches: float | None = None
    """Tokens of each patch of 32 x 32; ``None`` where it is counted otherwise."""
    cached_input: float | None = None
    """Of input tokens that the provider had in its cache, in [0, ``input``]; ``None`` where they
    cost as much as others, or nothing is known."""

    def picture_tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Input tokens that a picture counts as; the most where its model's way is not known.

        Args:
            width: Of the picture, in pixels.
            height: The same.
            detail: How closely the model is to look; ``low`` is one tile's worth of overview.

        Source: OpenAI's guide to images, "Calculating costs", as known in mid-2025.

        >>> load_prices().models["gpt-4o"].picture_tokens(1024, 576)
        765
        >>> load_prices().models["gpt-4o"].picture_tokens(1024, 576, "low")
        85
        """
        if self.image_tiles is not None:
            base, tile = self.image_tiles
            if detail == "low":
                return base
            scale = min(1.0, 2048 / max(width, height))
            scale *= min(1.0, 768 / (min(width, height) * scale))
            return base + tile * ceil(width * scale / 512) * ceil(height * scale / 512)
        if self.image_patches is not None:
            n_patches = min(1536, ceil(width / 32) * ceil(height / 32))
            return ceil(n_patches * self.image_patches)
        return self.image_tokens


@dataclass(frozen=True, slots=True)
class Prices:
    """Of all models that are known."""

    as_of: str
    """Date of the packaged prices; of the user's, where their file has one, and else its name."""
    batch_factor: float
    """What the Batch API costs, as a share of the usual price."""
    models: Mapping[str, Price]

    def cost_usd(
        self,
        model: str,
        *,
        input_tokens: float,
        output_tokens: float,
        cached_tokens: float = 0.0,
        mode: JudgeMode = "now",
    ) -> float | None:
        """US dollars for the given tokens, ``None`` where the model's price is not known.

        Args:
            model: Its name.
            input_tokens: All of the prompts.
            output_tokens: Of the replies.
            cached_tokens: Of the input, what the provider had in its cache.
            mode: In batches these cost as much as others: as far as providers say, the two
                discounts are not given together.

        >>> load_prices().cost_usd("gpt-4o-2024-08-06", input_tokens=10**6, output_tokens=10**5)
        3.5
        >>> load_prices().cost_usd("gpt-4o", input_tokens=2e6, output_tokens=0, cached_tokens=1e6)
        3.75
        >>> load_prices().cost_usd("my-own-model", input_tokens=1, output_tokens=1) is None
        True
        """
        price = self.models.get(model)
        if price is None:
            return None
        full_usd = (input_tokens * price.input + output_tokens * price.output) / 1e6
        if mode == "batch":
            return self.batch_factor * full_usd
        if price.cached_input is None or not cached_tokens:
            return full_usd
        return full_usd - cached_tokens * (price.input - price.cached_input) / 1e6


def prices_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's file of prices by itself, as captioners need it.

    Args:
        environ: Variables to read, by default the process's own.
    """
    text = (os.environ if environ is None else environ).get(PRICES_VARIABLE, "").strip()
    return Path(text).expanduser() if text else None


@cache
def load_prices(override: Path | None = None) -> Prices:
    """The packaged prices, with those of a user's file laid over them; read once per process.

    Args:
        override: YAML or JSON of the packaged file's shape; its models are added, or replace ours.

    Raises:
        SettingsError: If the file cannot be read or is of another shape.

    Source: ``judges/endpoint/prices.yaml``, with its date.
    """
    path = resources.files("lmms_eval_captions.judges.endpoint").joinpath("prices.yaml")
    ours: dict[str, object] = yaml.safe_load(path.read_text("utf-8"))
    theirs = {} if override is None else _read(override)
    where = f"LMMS_CAPTIONS_PRICES: {override}"
    default_tokens = _number(ours["image_tokens"], "image_tokens")
    # A price laid over ours replaces what it names; how a model counts pictures stays.
    entries = {**_mapping(ours["models"], "models")}
    for model, entry in _mapping(theirs.get("models", {}), f"{where}: models").items():
        ours_entry = entries.get(model)
        theirs_entry = _mapping(entry, f"{where}: {model}")
        if isinstance(ours_entry, dict) and "input" in theirs_entry:
            # A discount on another price than theirs: what they do not name is not discounted.
            ours_entry = {name: v for name, v in ours_entry.items() if name != "cached_input"}
        entries[model] = (
            {**ours_entry, **theirs_entry} if isinstance(ours_entry, dict) else theirs_entry
        )
    date = ours["as_of"]
    if override is not None and "models" in theirs:
        date = f"{date} and {override.name}"  # the one does not say when the other is of
    return Prices(
        as_of=str(theirs.get("as_of", date)),
        batch_factor=_number(
            theirs.get("batch_factor", ours["batch_factor"]), f"{where}: batch_factor"
        ),
        models={
            model: _price(entry, f"{where}: {model}", default_tokens)
            for model, entry in entries.items()
        },
    )


def _read(path: Path) -> Mapping[str, object]:
    try:
        loaded = read_yaml_file(path)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"LMMS_CAPTIONS_PRICES: {path} cannot be read ({error}); give the path of a YAML or "
            "JSON file of prices"
        ) from error
    values = _mapping(loaded, f"LMMS_CAPTIONS_PRICES: {path}")
    unknown = sorted(set(values) - {"as_of", "batch_factor", "models"})
    if unknown:
        raise SettingsError(f"LMMS_CAPTIONS_PRICES: {path}: {_SHAPE}, got {unknown!r:.120}")
    return values


def _price(entry: object, where: str, image_tokens: float) -> Price:
    fields = _mapping(entry, where)
    if not {"input", "output"} <= set(fields) <= _FIELDS:
        raise SettingsError(f"{where}: {_SHAPE}, got {fields!r:.120}")
    patches = fields.get("image_patches")
    full, cached = _number(fields["input"], where), fields.get("cached_input")
    if cached is not None and _number(cached, f"{where}: cached_input") > full:
        raise SettingsError(
            f"{where}: cached_input: expected at most input, {full:g}, as it is the price of input "
            f"that the provider had in its cache, got {cached!r}"
        )
    return Price(
        input=full,
        output=_number(fields["output"], where),
        image_tokens=int(_number(fields.get("image_tokens", image_tokens), where)),
        image_tiles=_tiles(fields.get("image_tiles"), where),
        image_patches=None if patches is None else _number(patches, where),
        cached_input=None if cached is None else _number(cached, where),
    )


def _tiles(value: object, where: str) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise SettingsError(
            f"{where}: image_tiles: expected [tokens of a picture, tokens of a tile], "
            f"got {value!r:.80}"
        )
    base, tile = (int(_number(item, where)) for item in value)
    return base, tile


def _mapping(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: {_SHAPE}, got {value!r:.80}")
    return {str(key): item for key, item in value.items()}


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise SettingsError(f"{where}: expected a number of at least 0, got {value!r:.80}")
    if not isfinite(value):
        raise SettingsError(f"{where}: expected a finite number, got {value!r}")
    return float(value)
