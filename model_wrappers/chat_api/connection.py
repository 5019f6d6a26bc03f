"""How ``caption_openai`` reaches its endpoint, and what it may cost."""

from __future__ import annotations

import os
from math import inf

from lmms_eval_captions.judges.endpoint.cost import load_prices, price_of, prices_file
from lmms_eval_captions.judges.endpoint.dialects import OPENAI, api_of
from lmms_eval_captions.judges.endpoint.endpoint import (
    Endpoint,
    EngineConfig,
    StoreBy,
    cache_folder,
    parse_key,
)
from lmms_eval_captions.judges.endpoint.progress import Totals, cost_words
from lmms_eval_captions.judges.endpoint.urls import parse_urls
from lmms_eval_captions.judges.errors import JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.files import whole


def endpoint_of(base_url: str | None, api_key_env: str, alias: str | None) -> Endpoint:
    """The captioner's endpoint; settings of the judge are those of another one.

    Raises:
        SettingsError: If it cannot be used, or needs a key and has none.
    """
    given = [base_url, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_URL")]
    texts = (str(value).strip() for value in given if value)
    url = next(filter(None, texts), OPENAI.default_url)
    setting = "caption_openai: base_url" if base_url else "OPENAI_BASE_URL or OPENAI_API_URL"
    key = os.environ.get(api_key_env, "").strip()
    urls = parse_urls(setting, url, separators=",;")
    endpoint = Endpoint(
        urls=urls,
        api=api_of(urls),
        api_key=parse_key(api_key_env, key) if key else None,
        key_name=api_key_env,
        alias=whole(str(alias)) if alias else None,
    )
    endpoint.require_access(
        "caption_openai:", "set it, or name an endpoint on this machine with base_url="
    )
    return endpoint


def engine_config(
    endpoint: Endpoint, *, concurrency: int, max_cost_usd: float | None, store_by: StoreBy = "model"
) -> EngineConfig:
    """How the engine talks to it, in this process.

    Args:
        endpoint: Where to.
        concurrency: Most requests in flight.
        max_cost_usd: Most that this process may be billed, or ``None``.
        store_by: Whose replies of earlier runs serve.
    """
    return EngineConfig(
        urls=endpoint.urls,
        store=cache_folder() / "caption_replies",
        api=endpoint.api,
        api_key=endpoint.api_key,
        concurrency=concurrency,
        role="captioner",
        store_by=store_by,
        alias=endpoint.alias,
        max_cost_usd=max_cost_usd,
        prices=prices_file(),
    )


def billed(totals: Totals) -> str:
    """What this process asked for, and what that costs by the prices that are known.

    >>> billed(Totals(calls=3, from_store={"http://a/v1": 2}, tokens={"m": (3000, 60)},
    ...     usd_by_model={"m": 0.00825}, prices_date="2025-06-30"))
    '3 calls, 2 replies from the store; 3,000 tokens in, 60 out; $0.01 by the prices of 2025-06-30'
    """
    n_in, n_out = map(sum, zip((0, 0), *totals.tokens.values(), strict=True))
    asked = f"{totals.calls:,} calls, {totals.n_from_store:,} replies from the store"
    price = cost_words(totals.usd_by_model, totals.prices_date)
    return f"{asked}; {n_in:,} tokens in, {n_out:,} out; {price}" if totals.calls else asked


def cost_limit(value: object, model: str) -> float | None:
    """The argument ``max_cost``: US dollars, all processes together.

    Args:
        value: As it was given.
        model: Whose price must be known.

    Raises:
        SettingsError: If it is no amount, or the model has no price.
    """
    if value is None:
        return None
    try:
        limit_usd = float(str(value).removeprefix("$"))
    except ValueError:
        limit_usd = 0.0
    if isinstance(value, bool) or not 0 < limit_usd < inf:
        raise SettingsError(
            f"caption_openai: max_cost: expected US dollars above 0, such as 20, got {value!r}"
        )
    try:
        price_of(model, load_prices(prices_file()), "captioner")
    except JudgeStoppedError as error:
        raise SettingsError(str(error)) from error
    return limit_usd
