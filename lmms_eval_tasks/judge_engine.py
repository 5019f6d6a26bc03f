"""How the judge's engine is made of the settings."""

from __future__ import annotations

from dataclasses import replace

from lmms_eval_captions.judges.endpoint.adapt import added_params
from lmms_eval_captions.judges.endpoint.batch import (
    BATCH_ATTEMPTS,
    BATCH_CONCURRENCY,
    BATCH_PATIENCE_S,
)
from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.settings import JudgeSettings


def rate_words(settings: JudgeSettings) -> str:
    """How fast requests may go out, where the user has said so."""
    if settings.rate is None:
        return ""
    return f", at most {settings.rate:g} request{'s' if settings.rate != 1 else ''} a second"


def limit_words(settings: JudgeSettings) -> str:
    """What judging may cost, by prices of which day."""
    if settings.max_cost_usd is None:
        return "no limit of cost"
    as_of = load_prices(settings.prices).as_of
    return f"at most ${settings.max_cost_usd:g} in all by prices of {as_of}"


def engine_config(settings: JudgeSettings) -> EngineConfig:
    """How an engine is made that asks the judge of these settings."""
    limit_usd, rate = settings.max_cost_usd, settings.rate
    config = EngineConfig(
        urls=settings.endpoint.urls,
        store=settings.cache / "replies",
        api=settings.endpoint.api,
        api_key=settings.endpoint.api_key,
        concurrency=settings.concurrency,
        # Processes do not see what the others send, nor spend.
        max_rate=None if rate is None else rate / settings.world_size,
        store_by=settings.store_by,
        ask_again=settings.ask_again,
        progress=settings.rank == 0,
        mode=settings.mode,
        max_cost_usd=None if limit_usd is None else limit_usd / settings.world_size,
        prices=settings.prices,
        alias=settings.alias,
    )
    if settings.mode == "now":
        return replace(config, added_params=added_params(config.urls, config.api))
    return replace(
        config,
        concurrency=BATCH_CONCURRENCY,
        n_attempts=BATCH_ATTEMPTS,
        patience_s=BATCH_PATIENCE_S,
    )
