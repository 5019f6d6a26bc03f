"""Says what a run would use: software, judge, data."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.http.client import ChatClient
from lmms_eval_captions.judges.endpoint.http.model_list import listed_models
from lmms_eval_captions.judges.endpoint.lexical_client import is_offline
from lmms_eval_captions.judges.endpoint.model_names import check_name, is_same_model
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.endpoint.urls import is_loopback, redact_url
from lmms_eval_captions.judges.errors import (
    CaptionsError,
    JudgeUnavailableError,
    SettingsError,
)
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

_PACKAGES = (
    "lmms-eval",
    "lmms-eval-captions",
    "torch",
    "transformers",
    "datasets",
    "aiohttp",
    "av",
)
_TIMEOUT_S: Final = 30.0
_TOKENS: Final = 32
"""Of the answer to the question that the judge is asked."""
_NAMES: Final = 20
"""Models of an endpoint that are shown."""
_NAME: Final = 200
"""Characters of a model's name that are shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    ok: bool
    text: str


def examine(settings: Settings) -> list[Finding]:
    """Look at everything a run depends on; asks the judge one question where there is one."""
    return [
        *_software(),
        *_cache(settings),
        *asyncio.run(_judge(settings)),
        *_prompts(settings),
        *_data(settings),
    ]


def _software() -> list[Finding]:
    findings = []
    for name in _PACKAGES:
        try:
            text = f"{name} {importlib.metadata.version(name)}"
            findings.append(Finding("software", ok=True, text=text))
        except importlib.metadata.PackageNotFoundError:
            findings.append(Finding("software", ok=False, text=f"{name} is not installed"))
    decord = importlib.util.find_spec("decord") is not None
    text = "decord is installed" if decord else "decord is not installed, PyAV reads the clips"
    java = shutil.which("java")
    return [
        *findings,
        Finding("software", ok=True, text=text),
        Finding(
            "software",
            ok=True,
            text=f"java: {java or 'not found'} (for CIDEr, BLEU, METEOR and ROUGE-L)",
        ),
    ]


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


async def _judge(settings: Settings) -> list[Finding]:
    if is_offline(settings.judge):
        return [
            Finding("judge", ok=True, text="lexical: an offline stand-in, a smoke test, no score")
        ]
    judges = {settings.judge: settings.judge} if settings.judge else _own_judges()
    urls = settings.endpoint.urls
    key = f"key {'set' if settings.endpoint.api_key else 'not set'}"
    names = [*judges, *([settings.alias] if settings.alias else [])]
    models: list[Finding] = []
    try:
        settings.require_judge_access()
        models = [await _models(url, settings, names) for url in urls]
        settings.require_named_judge(next(iter(judges)))
    except CaptionsError as error:
        # It names the judge or the URL that it is about.
        return [Finding("judge", ok=False, text=str(error)), *models]
    answers = [
        await _answer(settings, url, model, f"{name} at {redact_url(url)}, {key}")
        for url in urls
        for model, name in judges.items()
    ]
    return [*answers, *models]


def _own_judges() -> Mapping[str, str]:
    """The benchmarks' own judges: each model to how it is shown."""
    benchmarks_of: dict[str, dict[str, None]] = {}
    for benchmark in _benchmarks():
        model = str(benchmark.judge_defaults["model"])
        benchmarks_of.setdefault(model, {})[benchmark.name] = None
    return {
        model: f"{model} ({' and '.join(names)}'s own)" for model, names in benchmarks_of.items()
    }


async def _answer(settings: Settings, url: str, model: str, shown: str) -> Finding:
    """Whether a judge answers at one of the replicas."""
    try:
        words = await _say_hello(settings, url, model)
    except CaptionsError as error:
        return Finding("judge", ok=False, text=f"{shown}: {error}{_help(error)}")
    return Finding("judge", ok=True, text=f"{shown}, answers{words}")


def _help(error: CaptionsError) -> str:
    """What helps against an error that does not say so itself."""
    if isinstance(error, JudgeUnavailableError):
        return "; start that server, or correct LMMS_CAPTIONS_JUDGE_URL"
    return ""


async def _say_hello(settings: Settings, url: str, model: str) -> str:
    """What the judge says at a URL, and under which name where it is not the one asked for.

    Raises:
        JudgeError: If it does not answer, or as another model.
    """
    client = ChatClient((url,), settings.endpoint.api_key, api=settings.api)
    # No max_tokens: some models refuse it, and reasoning counts towards it. A server of one's own
    # takes it, and a small model may write on until its context is full.
    is_here = is_loopback(url)
    request = Request(
        protocol="doctor:1",
        model=model,
        messages=[{"role": "user", "content": "Reply with the word ready."}],
        params={"max_tokens": _TOKENS} if is_here else {},
        seed=0,
        timeout_s=_TIMEOUT_S,
        stand_in=lambda: "",
    ).sent_otherwise(left_out=("seed",))
    try:
        reply = await client.complete(request, 0, timeout_s=_TIMEOUT_S)
    finally:
        await client.close()
    reply = check_name(reply, model, alias=settings.alias, urls=(url,))
    return f"{f' as {reply.model}' if reply.model else ''}: {reply.text[:40]!r}"


async def _models(url: str, settings: Settings, judges: Sequence[str]) -> Finding:
    """What an endpoint says that it serves, and whether the judge is among it."""
    where = redact_url(url)
    try:
        names = await listed_models(url, settings.endpoint.api_key, api=settings.api)
    except CaptionsError as error:
        return Finding("models", ok=True, text=f"{where} does not list its models: {error}")
    shown = ", ".join(repr(name[:_NAME]) for name in names[:_NAMES]) or "no model"
    text = f"{where} lists {shown}{f' and {len(names) - _NAMES} more' * (len(names) > _NAMES)}"
    if settings.judge is None and is_loopback(url):
        return Finding("models", ok=True, text=text)
    served = [judge for judge in judges if any(is_same_model(name, judge) for name in names)]
    if served:
        are = "is" if len(served) == 1 else "are"
        return Finding("models", ok=True, text=f"{text}; {' and '.join(served)} {are} among them")
    text = f"{text}; {' or '.join(judges)} is not among them"
    # A provider may take names that it does not list; some servers of one's own take any name.
    if not names or not is_loopback(url):
        return Finding("models", ok=True, text=text)
    advice = (
        "set LMMS_CAPTIONS_JUDGE to the one that judges, or LMMS_CAPTIONS_JUDGE_ALIAS where it is "
        "the same model under another name"
    )
    return Finding("models", ok=False, text=f"{text}: {advice}")


def _prompts(settings: Settings) -> list[Finding]:
    prompts = Prompts(settings.prompts, order=settings.prompt_order)
    try:
        prompts.check()
    except SettingsError as error:
        return [Finding("prompts", ok=False, text=str(error))]
    texts = []
    if settings.prompts is not None:
        texts.append(f"{settings.prompts} replaces {', '.join(prompts.replaced)}")
    if settings.prompt_order != "paper":
        names = ", ".join(prompts.reordered) or "none, as all that could be are replaced"
        texts.append(f"with everything constant first, not as printed: {names}")
    return [Finding("prompts", ok=True, text=text) for text in texts]


def _data(settings: Settings) -> list[Finding]:
    if settings.data is None:
        text = (
            "LMMS_CAPTIONS_DATA is not set: benchmark files are downloaded from the hub when needed"
        )
        return [Finding("data", ok=True, text=text)]
    findings = [_benchmark(settings, benchmark) for benchmark in _benchmarks()]
    # Nobody needs all of them; not one of them is a problem.
    is_any_there = any(finding.ok for finding in findings)
    return [replace(finding, ok=finding.ok or is_any_there) for finding in findings]


def _benchmark(settings: Settings, benchmark: Benchmark[Any, Any]) -> Finding:
    try:
        path = benchmark.find_data(settings)
    except CaptionsError as error:
        return Finding("data", ok=False, text=f"not found: {error}")
    return Finding("data", ok=True, text=f"{benchmark.name}: {path.parent}")


def _benchmarks() -> Collection[Benchmark[Any, Any]]:
    """The benchmarks, each of those that share their data once."""
    benchmarks = all_benchmarks().values()
    return {(each.name, each.probe_file): each for each in benchmarks}.values()
