"""Prices of tokens, and a limit of cost that is never passed.

Before a request is sent its worst case is set aside; when the reply is there, its cost takes that
place. Prices are those of the package ``genai-prices``, under the user's own file.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache, lru_cache
from importlib.metadata import version
from math import ceil, inf
from pathlib import Path
from typing import Any, Final, Literal

from lmms_eval_captions.judges.endpoint.failures import WORDS, Role
from lmms_eval_captions.judges.endpoint.replies import PICTURE_TOKENS, count_of, pictures_in
from lmms_eval_captions.judges.endpoint.request import Client, Reply, Request
from lmms_eval_captions.judges.endpoint.urls import is_self_hosted
from lmms_eval_captions.judges.errors import (
    CostLimitError,
    JudgeError,
    JudgeStoppedError,
    SettingsError,
)
from lmms_eval_captions.judges.files import read_yaml_file

JudgeMode = Literal["now", "batch"]
"""Requests are answered at once, or within a day by the provider's Batch API."""
PRICES_VARIABLE: Final = "LMMS_CAPTIONS_PRICES"
LIMIT_REACHED: Final = f"{WORDS['judge'].limit}: $"
"""Start of the reason of a judge's request that was not sent because of the limit."""
SAFE_CHARS_PER_TOKEN: Final = 2.0
"""Characters of a body that count as a token in a worst case. English text has more than 4."""
_BATCH_FACTOR: Final = 0.5
_FIELDS: Final = {"input", "cached_input", "output", "image_tokens", "image_tiles", "image_patches"}
_SHAPE: Final = (
    "expected {as_of: DATE, batch_factor: 0.5, models: {NAME: {input: US dollars for a million "
    "tokens, output: the same}}}, any of the three alone"
)
_TOKENS_AROUND: Final = 50
"""Tokens that a provider may count in addition to those of the texts."""
_DEFAULT_MAX_TOKENS: Final = 16_384
"""Longest reply of a request that does not say, and of a server that may ignore what it says."""


@dataclass(frozen=True, slots=True)
class Price:
    """Price of one model in US dollars for a million tokens."""

    input: float
    output: float
    image_tokens: int = PICTURE_TOKENS
    """Most input tokens that a picture counts as."""
    image_tiles: tuple[int, int] | None = None
    """Tokens of a picture and of each tile of 512 x 512, of models that count so."""
    image_patches: float | None = None
    """Tokens of each patch of 32 x 32, of models that count so."""
    cached_input: float | None = None
    """Price of input that the provider had in its cache; ``None`` if it has no discount."""

    def picture_tokens(self, width: int, height: int, detail: str | None = None) -> int:
        """Return the input tokens of a picture; the most if the model's way is not known.

        Source: OpenAI's guide to images, "Calculating costs", as known in mid-2025.

        >>> load_prices().price("gpt-4o").picture_tokens(1024, 576)
        765
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


_PICTURES: Final[Mapping[str, Mapping[str, Any]]] = {
    "gpt-4o-mini": {"image_tokens": 48_200, "image_tiles": (2833, 5667)},
    "gpt-4o": {"image_tiles": (85, 170)},
    "gpt-4.1-mini": {"image_tokens": 2500, "image_patches": 1.62},
    "gpt-4.1-nano": {"image_tokens": 3800, "image_patches": 2.46},
    "gpt-4.1": {"image_tiles": (85, 170)},
}
"""Pictures in tokens, by the start of a model's name. Source: as :meth:`Price.picture_tokens`."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of all known models."""

    as_of: str
    """Version of the table, or date of the user's file."""
    batch_factor: float = _BATCH_FACTOR
    own: Mapping[str, Price] | None = None

    def price(self, model: str) -> Price | None:
        """Return a model's price; ``None`` if it is not known."""
        own = (self.own or {}).get(model)
        return _table_price(model) if own is None else own

    def cost_usd(
        self,
        model: str,
        input_tokens: float,
        output_tokens: float,
        cached_tokens: float = 0.0,
        mode: JudgeMode = "now",
    ) -> float | None:
        """Return US dollars, ``None`` if the model's price is not known."""
        price = self.price(model)
        if price is None:
            return None
        full_usd = (input_tokens * price.input + output_tokens * price.output) / 1e6
        if mode == "batch":
            return self.batch_factor * full_usd
        if price.cached_input is None or not cached_tokens:
            return full_usd
        return full_usd - cached_tokens * (price.input - price.cached_input) / 1e6


@lru_cache(maxsize=1024)
def _table_price(model: str) -> Price | None:
    """Return the price of ``genai-prices``, which takes half a second to import."""
    from genai_prices.data_snapshot import get_snapshot

    table = get_snapshot()
    provider, _, name = model.rpartition("/")
    for asked, provider_id in ((model, None), (name, provider or None)):
        try:
            _, info = table.find_provider_model(asked, None, provider_id, None)
        except LookupError:
            continue
        found = info.get_prices(datetime.now(timezone.utc))
        # A number, or tiers by the length of a prompt.
        prices: list[Any] = [found.input_mtok, found.output_mtok, found.cache_read_mtok]
        usd = [None if price is None else float(getattr(price, "base", price)) for price in prices]
        if usd[0] is None or usd[1] is None:
            return None
        starts = (start for start in _PICTURES if name.startswith(start))
        pictures = _PICTURES.get(next(starts, ""), {})
        return Price(input=usd[0], output=usd[1], cached_input=usd[2], **pictures)
    return None


@cache
def load_prices(override: Path | None = None) -> Prices:
    """Return the prices, with those of a user's file on top; read once per process."""
    as_of = f"genai-prices {version('genai-prices')}"
    if override is None:
        return Prices(as_of)
    where = f"{PRICES_VARIABLE}: {override}"
    try:
        values = _mapping(read_yaml_file(override), where)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{where} cannot be read ({error}); give the path of a YAML or JSON file of prices"
        ) from error
    if unknown := sorted(set(values) - {"as_of", "batch_factor", "models"}):
        raise SettingsError(f"{where}: {_SHAPE}, got {unknown!r:.120}")
    if "models" in values:
        as_of = f"{as_of} and {override.name}"
    models = _mapping(values.get("models", {}), f"{where}: models")
    own = {model: _own_price(model, entry, f"{where}: {model}") for model, entry in models.items()}
    factor = _number(values.get("batch_factor", _BATCH_FACTOR), f"{where}: batch_factor")
    return Prices(str(values.get("as_of", as_of)), factor, own)


def prices_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the path of the user's price file."""
    text = (os.environ if environ is None else environ).get(PRICES_VARIABLE, "").strip()
    return Path(text).expanduser() if text else None


def _own_price(model: str, entry: object, where: str) -> Price:
    fields = _mapping(entry, where)
    table = _table_price(model)
    if not set(fields) <= _FIELDS or not (table or {"input", "output"} <= set(fields)):
        raise SettingsError(f"{where}: {_SHAPE}, got {fields!r:.120}")
    tiles = fields.pop("image_tiles", None)
    changes: dict[str, Any] = {n: _number(v, f"{where}: {n}") for n, v in fields.items()}
    if "input" in changes:
        # The table's discount is on another price.
        changes.setdefault("cached_input", changes["input"])
    if "image_tokens" in changes:
        changes["image_tokens"] = int(changes["image_tokens"])
    if tiles is not None:
        if not isinstance(tiles, list) or len(tiles) != 2:
            raise SettingsError(
                f"{where}: image_tiles: expected [tokens of a picture, tokens of a tile], "
                f"got {tiles!r:.80}"
            )
        changes["image_tiles"] = tuple(int(_number(item, where)) for item in tiles)
    price = replace(table or Price(0.0, 0.0), **changes)
    if price.cached_input is not None and price.cached_input > price.input:
        raise SettingsError(
            f"{where}: cached_input: expected at most input, {price.input:g}, got "
            f"{price.cached_input:g}"
        )
    return price


def _mapping(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: {_SHAPE}, got {value!r:.80}")
    return {str(key): item for key, item in value.items()}


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise SettingsError(f"{where}: expected a number of at least 0, got {value!r:.80}")
    return float(value)


class Purse:
    """Spending of several budgets of one process, each with an event loop of its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.budgets: list[Budget] = []

    @property
    def spent_usd(self) -> float:
        """US dollars that are billed."""
        return sum(budget.spent_usd for budget in self.budgets)

    @property
    def taken_usd(self) -> float:
        """US dollars that are billed or set aside."""
        return self.spent_usd + sum(budget.reserved_usd for budget in self.budgets)

    @property
    def is_busy(self) -> bool:
        """True if a request is in flight, which may cost less than is set aside for it."""
        return any(budget.n_in_flight for budget in self.budgets)

    def allows(self, taken_usd: float, limit_usd: float) -> bool:
        """Return whether so much may be taken in all."""
        return taken_usd <= limit_usd


class Budget:
    """US dollars that may still be spent; belongs to one event loop."""

    def __init__(
        self,
        limit_usd: float,
        prices: Prices,
        *,
        mode: JudgeMode = "now",
        spent_usd: float = 0.0,
        role: Role = "judge",
        purse: Purse | None = None,
        is_own_server: bool = False,
    ) -> None:
        self._role: Role = role
        self._limit_usd, self._prices = limit_usd, prices
        self._mode: JudgeMode = mode
        self._is_own_server = is_own_server
        self.n_in_flight = 0
        self._turn, self._settled = asyncio.Lock(), asyncio.Event()
        self._excess = 1.0
        """Cost of a reply as a multiple of its worst case, at most: how a model counts pictures may
        not be known."""
        self._honours_length: set[str] = set()
        """Models that were seen to end within ``max_tokens``."""
        self.spent_usd = spent_usd
        """Billed, or assumed to be if a reply was lost."""
        self.reserved_usd = 0.0
        self._purse = Purse() if purse is None else purse
        with self._purse.lock:
            self._purse.budgets.append(self)

    def worst_case_usd(self, request: Request, attempt: int, *, longest: int = 0) -> float:
        """Return the most that a request can cost."""
        model = request.model
        if self._is_own_server and self._prices.price(model) is None:
            return 0.0
        price = price_of(model, self._prices, self._role)
        params = request.params
        asked = map(params.get, ("max_completion_tokens", "max_tokens"))
        most = max(count_of(value) or 0 for value in asked)
        n_pictures, n_letters = pictures_in(request.messages)
        n_in = (len(request.body(attempt)) - n_letters) / SAFE_CHARS_PER_TOKEN + _TOKENS_AROUND
        n_in += n_pictures * price.image_tokens
        n_out = max(longest, most or _DEFAULT_MAX_TOKENS) * (count_of(params.get("n")) or 1)
        return self._prices.cost_usd(model, n_in, n_out, mode=self._mode) or 0.0

    async def reserve(self, request: Request, attempt: int) -> float:
        """Set a request's worst case aside and return it; wait while others may yet cost less."""
        async with self._turn:
            while True:
                plain = cost = self.worst_case_usd(request, attempt) * self._excess
                if request.model not in self._honours_length:
                    cost = self.worst_case_usd(request, attempt, longest=_DEFAULT_MAX_TOKENS)
                if (set_aside := self._set_aside(max(plain, cost), plain)) is not None:
                    return set_aside
                self._settled.clear()
                # Budgets of the same purse belong to other event loops.
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._settled.wait(), 1.0)

    def _set_aside(self, cost_usd: float, least_usd: float) -> float | None:
        """Set a cost aside if it is within the limit, or the least if nothing else is in flight."""
        with self._purse.lock:
            taken_usd = self._purse.taken_usd
            for usd in (cost_usd, least_usd):
                if self._purse.allows(taken_usd + usd, self._limit_usd):
                    self.n_in_flight += 1
                    self.reserved_usd += usd
                    return usd
                if self._purse.is_busy:
                    return None
            words = WORDS[self._role]
            raise CostLimitError(
                f"{words.limit}: ${taken_usd:.4f} of this process's ${self._limit_usd:.4f} are "
                f"spent and the next request may cost ${least_usd:.4f}: {words.work} stopped. "
                "Everything answered is kept. Run the same command again with a higher limit: "
                "only what is missing is asked"
            )

    def settle(self, reserved_usd: float, billed_usd: float) -> None:
        """Put the cost of a request in place of its worst case."""
        with self._purse.lock:
            self.n_in_flight -= 1
            self.reserved_usd = self.reserved_usd - reserved_usd if self.n_in_flight else 0.0
            self.spent_usd += billed_usd
        self._settled.set()

    def billed_usd(
        self, request: Request, attempt: int, reply: Reply, reserved_usd: float
    ) -> float:
        """Return a reply's cost; what was reserved at least if the endpoint does not say."""
        model, n_in, n_out = request.model, reply.input_tokens, reply.output_tokens
        cost = self._prices.cost_usd(model, n_in, n_out, reply.cached_tokens, self._mode)
        if cost is None or not n_in:
            return reserved_usd
        if reply.is_estimated:
            return max(cost, reserved_usd)
        self._honours_length.add(model)
        if worst_usd := self.worst_case_usd(request, attempt):
            # The next reply may cost as much, without the help of a cache.
            full = self._prices.cost_usd(model, n_in, n_out, mode=self._mode) or 0.0
            self._excess = max(self._excess, min(100.0, full / worst_usd))
        return cost


class CappedClient:
    """A client that sends nothing that could pass a budget."""

    def __init__(self, client: Client, budget: Budget) -> None:
        self._client, self._budget = client, budget

    async def complete(self, request: Request, attempt: int, *, timeout_s: float) -> Reply:
        """See :class:`.request.Client`; stops if the budget is used up or a price is not known."""
        reserved_usd = await self._budget.reserve(request, attempt)
        # What is cancelled or fails out of sight may have been billed.
        billed_usd = reserved_usd
        try:
            reply = await self._client.complete(request, attempt, timeout_s=timeout_s)
            billed_usd = self._budget.billed_usd(request, attempt, reply, reserved_usd)
        except JudgeError as error:
            billed_usd = reserved_usd if error.may_be_billed else 0.0
            raise
        finally:
            self._budget.settle(reserved_usd, billed_usd)
        return reply

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def price_of(model: str, prices: Prices, role: Role = "judge") -> Price:
    """Return a model's price."""
    price = prices.price(model)
    if price is None:
        limit = WORDS[role].limit
        raise JudgeStoppedError(
            f"{limit} is set and the price of {model!r} is not known: nothing was sent. Set "
            f"{PRICES_VARIABLE} to a file with `models: {{{model}: {{input: X, output: Y}}}}` "
            "(US dollars for a million tokens, by the provider's price list), or lift the limit: "
            f"{limit}=none"
        )
    return price


def require_price(model: str, prices: Prices, urls: Iterable[str], role: Role = "judge") -> None:
    """Raise if a model's price is not known, except on the user's own servers."""
    if not all(map(is_self_hosted, urls)):
        price_of(model, prices, role)
