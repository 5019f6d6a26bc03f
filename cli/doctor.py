"""Commands ``doctor``, which checks what a run would use, and ``tasks-path``."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import re
import shutil
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from lmms_eval_captions.judges.endpoint.adapt import is_same_model, served_name
from lmms_eval_captions.judges.endpoint.client import ChatClient, listed_models
from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.endpoint.dialects import DIALECTS
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.failures import WORDS, Role
from lmms_eval_captions.judges.endpoint.request import Request, is_offline
from lmms_eval_captions.judges.endpoint.urls import is_http, is_loopback, redact_url
from lmms_eval_captions.judges.errors import (
    INSTALL_EVAL,
    CaptionsError,
    JudgeUnavailableError,
    SettingsError,
)
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import (
    KEY_VARIABLES,
    URL_VARIABLES,
    Settings,
    Variable,
    read_settings,
    unknown_settings,
    variables_of,
)
from lmms_eval_captions.lmms_eval_tasks.dependencies import DISTRIBUTION, direct_dependencies
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path as folder_of_tasks
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import split_address
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import (
    can_be_sampled,
    cheap_judge,
    sample_words,
)
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

_SHOWN: Final = (DISTRIBUTION, "lmms-eval", "torch", "transformers", "datasets", "aiohttp", "av")
"""Packages whose versions are always shown."""
_OFFLINE: Final = "lexical: an offline stand-in for smoke tests, not a score"
_UNSET: Final = {
    "JUDGE_RATE": "no limit",
    "JUDGE_API": "OpenAI's, or recognised by the address",
    "PROMPTS": "the packaged ones",
    "DATA": "the Hugging Face hub",
    "T5": "google/flan-t5-base from the hub",
    **dict.fromkeys(("JUDGE", "JUDGE_RUNS", "JUDGE_TEMPERATURE"), "the benchmark's own"),
    **dict.fromkeys(("JUDGE_TIMEOUT", "JUDGE_MAX_TOKENS"), "the benchmark's own"),
    **dict.fromkeys(("VCAPSBENCH_ASKS", "JUDGE_FRAMES"), "the benchmark's own"),
}
"""Meaning of unset variables without a default of their own, by the end of their names."""
_MOST_NAMES: Final = 20
"""Models of an endpoint that are shown."""


class Finding(NamedTuple):
    """One line of ``doctor``."""

    status: Literal["ok", "missing", "problem"]
    """``missing`` is not a problem unless a run needs it."""
    topic: str
    text: str


def tasks_path(_: Namespace) -> int:
    """Print the folder of the task definitions."""
    print(folder_of_tasks())
    return 0


def doctor(arguments: Namespace) -> int:
    """Print what a run would use, and what is wrong with it."""
    problems = []
    for finding in _findings(with_unset=arguments.all):
        print(f"{finding.status:<8} {finding.topic:<9} {finding.text}")
        if finding.status == "problem":
            problems.append(f"{finding.topic}: {finding.text}")
    others = f" ({len(problems) - 1} more above)" if len(problems) > 1 else ""
    last = f"problem{others}: {problems[0]}" if problems else "ok"
    print(sentence(f"lmms-eval-captions doctor: {last}"))
    return 1 if problems else 0


def _findings(*, with_unset: bool) -> Iterator[Finding]:
    yield from settings_in_force(os.environ, with_unset=with_unset)
    # Raises for the first setting that cannot be used, after all are printed.
    yield from examine(read_settings())


def settings_in_force(environ: Mapping[str, str], *, with_unset: bool = True) -> list[Finding]:
    """Return a finding for every variable of ours and every one that looks like it; never a key.

    Args:
        environ: Variables to read.
        with_unset: True to list the defaults of unset variables.
    """
    unknown = unknown_settings(Settings, environ)
    rows = {row.name: row for row in variables_of(Settings).values()}
    return [
        *(Finding("problem", "setting", message) for message in unknown.values()),
        *(
            _setting(row, environ)
            for name, row in rows.items()
            # A launcher sets the rank, not the user.
            if name not in ("RANK", "WORLD_SIZE") and (with_unset or environ.get(name, "").strip())
        ),
    ]


def _setting(variable: Variable, environ: Mapping[str, str]) -> Finding:
    name, text = variable.name, environ.get(variable.name, "").strip()
    if name in KEY_VARIABLES:
        return Finding("ok", "setting", f"{name} is {'set' if text else 'not set'}")
    try:
        variable.read(environ)
    except SettingsError as error:
        return Finding("problem", "setting", str(error))
    if not text:
        unset = _UNSET.get(name.removeprefix("LMMS_CAPTIONS_"), "not set")
        is_prices = name == "LMMS_CAPTIONS_PRICES"
        default = load_prices().as_of if is_prices else variable.default or unset
        return Finding("ok", "setting", f"{name} = {default} (default)")
    # A text that is not as it should be may hold a password anywhere.
    if name in ("LMMS_CAPTIONS_JUDGE_URL", *URL_VARIABLES):
        urls = [url.strip() for url in text.split(",")]
        text = ", ".join(redact_url(url) if is_http(url) else "[no URL]" for url in urls)
    elif name == "LMMS_CAPTIONS_CHEAP_JUDGE":
        model = split_address(text)[0]
        text = model if not re.search("://|#|,", model) else "[no model's name]"
    return Finding("ok", "setting", f"{name} = {text}")


def examine(settings: Settings) -> list[Finding]:
    """Check everything that a run depends on; asks each judge one question."""

    async def judges() -> list[Finding]:
        return [*await judge_findings(settings), *[f async for f in _sample_findings(settings)]]

    return [
        *_software(),
        _cache(settings),
        *asyncio.run(judges()),
        *_prompts(settings),
        *_data(settings),
    ]


def _software() -> Iterator[Finding]:
    topic, known = "software", direct_dependencies()
    has_eval = known["lmms-eval"].installed is not None
    if not has_eval:
        text = f"lmms-eval, which captioners and `run` need. Run: {INSTALL_EVAL}"
        yield Finding("missing", topic, text)
    needed = [each for each in known.values() if each.is_needed(has_eval=has_eval)]
    versions = {each.requirement.name: each.installed for each in needed}
    versions[DISTRIBUTION] = importlib.metadata.version(DISTRIBUTION)
    shown = ", ".join(f"{name} {versions[name]}" for name in _SHOWN if versions.get(name))
    yield Finding("ok", topic, shown)
    for each in needed:
        if not each.is_allowed:
            yield Finding("problem", topic, each.advice())
        elif each.tested and not each.is_as_tested:
            text = f"{each.requirement.name} {each.installed} is installed, {each.tested} is tested"
            yield Finding("ok", topic, text)
    if has_eval and importlib.util.find_spec("decord") is None:
        yield Finding("missing", topic, "decord, which only video_reader=decord needs")
    if shutil.which("java") is None:
        yield Finding(
            "missing", topic, "java, which vdc_classic and meta-eval's classic metrics need"
        )


def _cache(settings: Settings) -> Finding:
    try:
        settings.cache.mkdir(parents=True, exist_ok=True)
        free_gib = shutil.disk_usage(settings.cache).free / 2**30
    except OSError as error:
        text = (
            f"{settings.cache} cannot be used ({error.strerror}); make it writable, or set "
            "LMMS_CAPTIONS_CACHE to another folder"
        )
        return Finding("problem", "cache", text)
    text = f"{settings.cache}, {free_gib:.1f} GiB free"
    return Finding("ok" if free_gib > 0.5 else "problem", "cache", text)


def _prompts(settings: Settings) -> Iterator[Finding]:
    prompts = Prompts(settings.prompts)
    try:
        prompts.check()
    except SettingsError as error:
        yield Finding("problem", "prompts", str(error))
        return
    if settings.prompts is not None:
        text = f"{settings.prompts} replaces {', '.join(prompts.replaced)}"
        yield Finding("ok", "prompts", text)


def _data(settings: Settings) -> list[Finding]:
    if settings.data is None:
        text = "LMMS_CAPTIONS_DATA is not set: files come from the Hugging Face hub when needed"
        return [Finding("ok", "data", text)]
    found, missing = [], []
    for benchmark in _benchmarks_by_data():
        try:
            path = benchmark.find_data(settings)
        except CaptionsError as error:
            missing.append(str(error))
        else:
            found.append(f"{benchmark.name}: {path.parent}")
    kind: Literal["missing", "problem"] = "missing" if found else "problem"
    return [
        *(Finding("ok", "data", text) for text in found),
        *(Finding(kind, "data", text) for text in missing),
    ]


def _benchmarks_by_data() -> list[Benchmark[Any, Any]]:
    """Return the benchmarks, one of those that share their data."""
    benchmarks = all_benchmarks().values()
    return list({(each.name, each.probe_file): each for each in benchmarks}.values())


async def judge_findings(settings: Settings) -> list[Finding]:
    """Ask the judge, or each benchmark's own, one question, and list its endpoint's models."""
    if is_offline(settings.judge):
        return [Finding("ok", "judge", _OFFLINE)]
    judges, endpoint = _judges(settings), settings.endpoint
    models: list[Finding] = []
    try:
        settings.require_judge_access()
        models = [
            await _models(endpoint, url, [*judges, *filter(None, [settings.alias])], "judge",
                          is_named=settings.judge is not None)
            for url in endpoint.urls
        ]  # fmt: skip
        settings.require_named_judge(next(iter(judges)))
    except CaptionsError as error:
        return [Finding("problem", "judge", str(error)), *models]
    answers = [
        await _answer(endpoint, url, model, name, "judge")
        for url in endpoint.urls
        for model, name in judges.items()
    ]
    return [*answers, *models]


async def _sample_findings(settings: Settings) -> AsyncIterator[Finding]:
    """Findings about ``LMMS_CAPTIONS_PRECISION`` and the cheap judge, none if all is asked."""
    if settings.precision is None:
        return
    sampled = [name for name, each in all_benchmarks().items() if can_be_sampled(each)]
    text = f"{sample_words(settings)}, in {', '.join(sampled)}; the others are asked completely"
    yield Finding("ok", "sample", text)
    try:
        model, *_ = [cheap_judge(settings, judge) for judge in _judges(settings)]
    except CaptionsError as error:
        yield Finding("problem", "sample", str(error))
        return
    if model is None:
        return
    if is_offline(model.name):
        yield Finding("ok", "sample", f"the cheap judge {_OFFLINE}")
        return
    for url in model.endpoint.urls:
        shown = f"the cheap judge {model.name}"
        yield await _answer(model.endpoint, url, model.name, shown, "cheap_judge")
        yield await _models(model.endpoint, url, [model.name], "cheap_judge")


def _judges(settings: Settings) -> dict[str, str]:
    """Return the judges that would be asked, each with how it is shown."""
    if settings.judge and not settings.is_as_published:
        return {settings.judge: settings.judge}
    own: dict[str, dict[str, None]] = {}
    for benchmark in _benchmarks_by_data():
        own.setdefault(benchmark.judge_config(settings).model, {})[benchmark.name] = None
    return {model: f"{model} ({' and '.join(names)}'s own)" for model, names in own.items()}


async def _answer(endpoint: Endpoint, url: str, model: str, shown: str, role: Role) -> Finding:
    """Ask a model one question at one address."""
    topic = "judge" if role == "judge" else "sample"
    where = f"{shown} at {redact_url(url)}, key {'set' if endpoint.api_key else 'not set'}"
    try:
        reply = await _say_hello(endpoint, url, model, role)
    except CaptionsError as error:
        is_silent = isinstance(error, JudgeUnavailableError)
        help_ = f"; start that server, or correct {WORDS[role].url}" if is_silent else ""
        return Finding("problem", topic, f"{where}: {error}{help_}")
    return Finding("ok", topic, f"{where}, answers{reply}")


async def _say_hello(endpoint: Endpoint, url: str, model: str, role: Role) -> str:
    """Return a model's reply, and its name if it is not the one asked for.

    Raises:
        JudgeError: If it does not answer, or as another model.
    """
    client = ChatClient((url,), endpoint.api_key, role=role, api=endpoint.api)
    request = Request(
        protocol="doctor:1",
        model=model,
        messages=[{"role": "user", "content": "Reply with the word ready."}],
        # Some hosted models refuse max_tokens, and reasoning counts towards it. A small model on
        # one's own server may write until its context is full.
        params={"max_tokens": 32} if is_loopback(url) else {},
        seed=0,
        timeout_s=30.0,
        stand_in=lambda: "",
    ).sent_as(left_out=("seed",))
    try:
        reply = await client.complete(request, 0, timeout_s=request.timeout_s)
    finally:
        await client.close()
    name = reply.model
    if DIALECTS[endpoint.api].names_models:
        name = served_name(name, model, endpoint.alias, (url,), role)
    return f"{f' as {name}' if name else ''}: {reply.text[:40]!r}"


async def _models(
    endpoint: Endpoint, url: str, judges: list[str], role: Role, *, is_named: bool = True
) -> Finding:
    """List the models of an endpoint; a problem if a server here lacks the one that is asked."""
    where = redact_url(url)
    try:
        names = await listed_models(url, endpoint.api_key, api=endpoint.api)
    except CaptionsError as error:
        return Finding("ok", "models", f"{where} does not list its models: {error}")
    shown = ", ".join(repr(name[:200]) for name in names[:_MOST_NAMES]) or "no model"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    text = f"{where} lists {shown}{more}"
    if not is_named and is_loopback(url):
        return Finding("ok", "models", text)
    served = [judge for judge in judges if any(is_same_model(name, judge) for name in names)]
    if served:
        are = "is" if len(served) == 1 else "are"
        return Finding("ok", "models", f"{text}; {' and '.join(served)} {are} among them")
    text = f"{text}; {' or '.join(judges)} is not among them"
    # Providers accept names that they do not list, and some servers accept any name.
    if not names or not is_loopback(url):
        return Finding("ok", "models", text)
    words = WORDS[role]
    alias = f", or {words.alias} if it is the same model under another name"
    advice = f"set {words.model} to one of them{alias if words.alias != words.model else ''}"
    return Finding("problem", "models", f"{text}: {advice}")
