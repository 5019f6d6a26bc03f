"""A scorer's settings: the environment's, with what is said by keyword in their place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypedDict

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings, variables_of


class ScorerSettings(TypedDict, total=False):
    """Keywords of a scorer: each replaces the variable of the same setting; see docs/settings.md.

    ``None`` is as if the variable were not set.
    """

    judge: str | None
    judge_url: str | None
    alias: str | None
    api: Literal["openai", "azure", "anthropic"]
    openai_key: str | None
    anthropic_key: str | None
    azure_openai_key: str | None
    openai_base_url: str | None
    openai_api_url: str | None
    anthropic_base_url: str | None
    azure_openai_endpoint: str | None
    concurrency: int
    runs: int | None
    temperature: float | None
    max_tokens: int | None
    extra_body: str | None
    structured: bool
    timeout_s: float | None
    vcapsbench_asks: int | None
    frames: int | None
    store_by: Literal["model", "endpoint"]
    ask_again: bool
    max_unscored: float
    max_cost_usd: float | None
    rate: float | None
    prices: str | Path | None
    cache: str | Path
    prompts: str | Path | None


KEYS: Final = ("openai_key", "anthropic_key", "azure_openai_key")
"""Handed to no other process: it reads them from its own environment."""


def without_keys(keywords: Mapping[str, object]) -> dict[str, object]:
    """Settings that may be handed on."""
    return {name: value for name, value in keywords.items() if name not in KEYS}


def read_keywords(
    keywords: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> JudgeSettings:
    """The settings of a scorer, validated as those of a run are.

    Args:
        keywords: See :class:`ScorerSettings`.
        environ: Variables, by default the process's own.

    Raises:
        SettingsError: If a keyword is not known, a value cannot be used, or a sample is to be
            judged: a scorer asks everything.
    """
    variables = variables_of(JudgeSettings)
    unknown = sorted(set(keywords) - set(ScorerSettings.__annotations__))
    if unknown:
        known = ", ".join(ScorerSettings.__annotations__)
        raise SettingsError(f"expected settings among {known}, got {', '.join(unknown)}")
    env = dict(os.environ if environ is None else environ)
    for name, value in keywords.items():
        variable = variables[name].name
        env.pop(variable, None)
        if name == "max_cost_usd" and value is None:
            env[variable] = "none"
        elif value is not None:
            env[variable] = str(int(value)) if isinstance(value, bool) else str(value)
    settings = read_judge_settings(env)
    if settings.precision is not None:
        raise SettingsError(
            "LMMS_CAPTIONS_PRECISION: expected no sample of the questions, as each caption is to "
            f"have its score, got {settings.precision:g}; unset it"
        )
    if settings.mode == "batch":
        raise SettingsError(
            "LMMS_CAPTIONS_JUDGE_MODE: expected now, as captions are scored a few at a time, which "
            "batches of hours are not made for, got batch; unset it"
        )
    return settings
