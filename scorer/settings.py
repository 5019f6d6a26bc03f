"""Settings and protocol of a scorer: keywords in place of the environment, names of protocols."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypedDict

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.settings import (
    JudgeSettings,
    read_judge_settings,
    variables_of,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.registry import modules
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks


class ScorerSettings(TypedDict, total=False):
    """Keywords of a scorer; each replaces a variable of docs/settings.md, ``None`` unsets it."""

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
"""Settings that no other process is handed: it reads them from its own environment."""


def read_keywords(keywords: Mapping[str, object]) -> JudgeSettings:
    """Return the settings of a scorer, see :class:`ScorerSettings`; validated like a run's."""
    variables = variables_of(JudgeSettings)
    unknown = sorted(set(keywords) - set(ScorerSettings.__annotations__))
    if unknown:
        known = ", ".join(ScorerSettings.__annotations__)
        raise SettingsError(f"expected settings among {known}, got {', '.join(unknown)}")
    env = dict(os.environ)
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


@cache
def clip_protocols() -> Mapping[str, ClipProtocol]:
    """Return the protocols for custom clips, by name."""
    return {
        protocol.name: protocol
        for module in modules("benchmark")
        for protocol in getattr(module, "PROTOCOLS", ())
    }


def protocol_of(name: str) -> ClipProtocol:
    """Return a protocol, or that of a task, whose clips are the benchmark's own."""
    if name in clip_protocols():
        return clip_protocols()[name]
    benchmark = our_benchmarks().get(name)
    if benchmark is None:
        close = get_close_matches(name, [*clip_protocols(), *our_benchmarks()], n=1)
        meant = f"; was {close[0]} meant?" if close else ""
        raise SettingsError(
            f"expected a protocol ({', '.join(clip_protocols())}) or one of our tasks, got "
            f"{name!r}{meant}"
        )
    if benchmark.measure is not None:
        raise SettingsError(f"{name}: expected a task that asks a judge, this one asks none")

    def not_known(clip: Clip) -> Doc:
        raise DataError(
            f"{name}: expected a video of the benchmark, got {clip.clip_id!r}; questions of "
            f"your own are asked with one of {', '.join(clip_protocols())}"
        )

    task = benchmark.tasks[name]
    return ClipProtocol(benchmark=benchmark, task=task, needs=frozenset(), document=not_known)
