"""Report on everything that a run would use: software, judge, data."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lmms_eval_captions.judges.errors import INSTALL_EVAL, CaptionsError, SettingsError
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.commands.doctor_judges import (
    Finding,
    benchmarks_by_data,
    judge_findings,
    sample_findings,
)
from lmms_eval_captions.lmms_eval_tasks.dependencies import DISTRIBUTION, direct_dependencies

_SHOWN = (DISTRIBUTION, "lmms-eval", "torch", "transformers", "datasets", "aiohttp", "av")
"""Packages whose versions are always shown."""


def examine(settings: Settings) -> list[Finding]:
    """Look at everything a run depends on; asks each judge one question where there is one."""
    return [
        *_software(),
        *_cache(settings),
        *asyncio.run(judge_findings(settings)),
        *asyncio.run(sample_findings(settings)),
        *_prompts(settings),
        *_data(settings),
    ]


def _software() -> Iterator[Finding]:
    has_eval = direct_dependencies()["lmms-eval"].installed is not None
    if not has_eval:
        text = f"lmms-eval is not installed; captioning and `run` need it. Run: {INSTALL_EVAL}"
        yield Finding("software", ok=True, text=text)
    needed = [each for each in direct_dependencies().values() if each.is_needed(has_eval=has_eval)]
    versions = {each.requirement.name: each.installed for each in needed}
    versions[DISTRIBUTION] = importlib.metadata.version(DISTRIBUTION)
    shown = ", ".join(f"{name} {versions[name]}" for name in _SHOWN if versions.get(name))
    yield Finding("software", ok=True, text=shown)
    for each in needed:
        if not each.is_allowed:
            yield Finding("software", ok=False, text=each.advice())
        elif each.tested and not each.is_as_tested:
            text = f"{each.requirement.name} {each.installed} is installed, {each.tested} is tested"
            yield Finding("software", ok=True, text=text)
    if has_eval:
        decord = importlib.util.find_spec("decord") is not None
        text = "decord is installed" if decord else "decord is not installed, PyAV reads the clips"
        yield Finding("software", ok=True, text=text)
    java = shutil.which("java") or "not found"
    text = f"java: {java} (for CIDEr, BLEU, METEOR and ROUGE-L)"
    yield Finding("software", ok=True, text=text)


def _cache(settings: Settings) -> list[Finding]:
    try:
        settings.cache.mkdir(parents=True, exist_ok=True)
        free_gib = shutil.disk_usage(settings.cache).free / 2**30
    except OSError as error:
        text = (
            f"{settings.cache} cannot be used ({error.strerror}); make it writable, or set "
            "LMMS_CAPTIONS_CACHE to a folder that is"
        )
        return [Finding("cache", ok=False, text=text)]
    text = f"{settings.cache}, {free_gib:.1f} GiB free"
    return [Finding("cache", ok=free_gib > 0.5, text=text)]


def _prompts(settings: Settings) -> list[Finding]:
    prompts = Prompts(settings.prompts)
    try:
        prompts.check()
    except SettingsError as error:
        return [Finding("prompts", ok=False, text=str(error))]
    if settings.prompts is None:
        return []
    text = f"{settings.prompts} replaces {', '.join(prompts.replaced)}"
    return [Finding("prompts", ok=True, text=text)]


def _data(settings: Settings) -> list[Finding]:
    if settings.data is None:
        text = (
            "LMMS_CAPTIONS_DATA is not set: benchmark files are downloaded from the hub when needed"
        )
        return [Finding("data", ok=True, text=text)]
    findings = [_benchmark(settings, benchmark) for benchmark in benchmarks_by_data()]
    # Nobody needs all of them; not one of them is a problem.
    is_any_there = any(finding.ok for finding in findings)
    return [replace(finding, ok=finding.ok or is_any_there) for finding in findings]


def _benchmark(settings: Settings, benchmark: Benchmark[Any, Any]) -> Finding:
    try:
        path = benchmark.find_data(settings)
    except CaptionsError as error:
        return Finding("data", ok=False, text=f"not found: {error}")
    return Finding("data", ok=True, text=f"{benchmark.name}: {path.parent}")
