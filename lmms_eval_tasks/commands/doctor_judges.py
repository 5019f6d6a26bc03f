"""What ``doctor`` finds out about the judges that a run would ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.adapt import is_same_model, served_name
from lmms_eval_captions.judges.endpoint.client import ChatClient, listed_models
from lmms_eval_captions.judges.endpoint.dialects import DIALECTS
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.failures import WORDS, Role
from lmms_eval_captions.judges.endpoint.request import Request, is_offline
from lmms_eval_captions.judges.endpoint.urls import is_loopback, redact_url
from lmms_eval_captions.judges.errors import CaptionsError, JudgeUnavailableError
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import (
    can_be_sampled,
    cheap_judge,
    sample_words,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

_TIMEOUT_S: Final = 30.0
_TOKENS: Final = 32
"""Of the answer to the question that a model is asked."""
_NAMES: Final = 20
"""Models of an endpoint that are shown."""
_NAME: Final = 200
"""Characters of a model's name that are shown."""
_OFFLINE: Final = "lexical: an offline stand-in, a smoke test, no score"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    ok: bool
    text: str


async def judge_findings(settings: Settings) -> list[Finding]:
    """Whether the judge answers, and as which model.

    Without a judge in the settings, the benchmarks' own are looked at.
    """
    if is_offline(settings.judge):
        return [Finding("judge", ok=True, text=_OFFLINE)]
    judges = _judges(settings)
    endpoint = settings.endpoint
    names = [*judges, *([settings.alias] if settings.alias else [])]
    is_named = settings.judge is not None
    models: list[Finding] = []
    try:
        settings.require_judge_access()
        models = [await _models(endpoint, url, names, is_named=is_named) for url in endpoint.urls]
        settings.require_named_judge(next(iter(judges)))
    except CaptionsError as error:
        # It names the judge or the URL that it is about.
        return [Finding("judge", ok=False, text=str(error)), *models]
    answers = [
        await _answer(endpoint, url, model, name)
        for url in endpoint.urls
        for model, name in judges.items()
    ]
    return [*answers, *models]


async def sample_findings(settings: Settings) -> list[Finding]:
    """Whether a sample of the questions is judged, and whether the cheap judge answers.

    Nothing is said where every question is asked.
    """
    if settings.precision is None:
        return []
    sampled = [name for name, each in all_benchmarks().items() if can_be_sampled(each)]
    text = f"{sample_words(settings)}, in {', '.join(sampled)}; the others are asked whole"
    sample = Finding("sample", ok=True, text=text)
    judges = list(_judges(settings))
    try:
        model, *_ = {judge: cheap_judge(settings, judge) for judge in judges}.values()
    except CaptionsError as error:
        return [sample, Finding("sample", ok=False, text=str(error))]
    if model is None:
        return [sample]
    if is_offline(model.name):
        return [sample, Finding("sample", ok=True, text=f"the cheap judge {_OFFLINE}")]
    name, endpoint = model.name, model.endpoint
    answers = [
        await _answer(endpoint, url, name, f"the cheap judge {name}", role="cheap_judge")
        for url in endpoint.urls
    ]
    models = [
        await _models(endpoint, url, [name], is_named=True, role="cheap_judge")
        for url in endpoint.urls
    ]
    return [sample, *answers, *models]


def _judges(settings: Settings) -> dict[str, str]:
    """Return the judges that would be asked, each with how it is shown."""
    if settings.judge and not settings.is_as_published:
        return {settings.judge: settings.judge}
    own: dict[str, dict[str, None]] = {}
    for benchmark in benchmarks_by_data():
        own.setdefault(benchmark.judge_config(settings).model, {})[benchmark.name] = None
    return {model: f"{model} ({' and '.join(names)}'s own)" for model, names in own.items()}


async def _answer(
    endpoint: Endpoint, url: str, model: str, name: str, *, role: Role = "judge"
) -> Finding:
    """Whether a model answers at one of the replicas."""
    topic = "judge" if role == "judge" else "sample"
    key = f"key {'set' if endpoint.api_key else 'not set'}"
    shown = f"{name} at {redact_url(url)}, {key}"
    try:
        words = await _say_hello(endpoint, url, model, role)
    except CaptionsError as error:
        return Finding(topic, ok=False, text=f"{shown}: {error}{_help(error, role)}")
    return Finding(topic, ok=True, text=f"{shown}, answers{words}")


def _help(error: CaptionsError, role: Role) -> str:
    """What helps against an error that does not say so itself."""
    if isinstance(error, JudgeUnavailableError):
        return f"; start that server, or correct {WORDS[role].url}"
    return ""


async def _say_hello(endpoint: Endpoint, url: str, model: str, role: Role) -> str:
    """What a model says at a URL, and under which name where it is not the one asked for.

    Raises:
        JudgeError: If it does not answer, or as another model.
    """
    client = ChatClient((url,), endpoint.api_key, role=role, api=endpoint.api)
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
    ).sent_as(left_out=("seed",))
    try:
        reply = await client.complete(request, 0, timeout_s=_TIMEOUT_S)
    finally:
        await client.close()
    name = reply.model
    if DIALECTS[endpoint.api].names_models:
        name = served_name(name, model, endpoint.alias, (url,), role)
    return f"{f' as {name}' if name else ''}: {reply.text[:40]!r}"


async def _models(
    endpoint: Endpoint, url: str, judges: Sequence[str], *, is_named: bool, role: Role = "judge"
) -> Finding:
    """What an endpoint says that it serves, and whether the model that is asked is among it."""
    where = redact_url(url)
    try:
        names = await listed_models(url, endpoint.api_key, api=endpoint.api)
    except CaptionsError as error:
        return Finding("models", ok=True, text=f"{where} does not list its models: {error}")
    shown = ", ".join(repr(name[:_NAME]) for name in names[:_NAMES]) or "no model"
    text = f"{where} lists {shown}{f' and {len(names) - _NAMES} more' * (len(names) > _NAMES)}"
    if not is_named and is_loopback(url):
        return Finding("models", ok=True, text=text)
    served = [judge for judge in judges if any(is_same_model(name, judge) for name in names)]
    if served:
        are = "is" if len(served) == 1 else "are"
        return Finding("models", ok=True, text=f"{text}; {' and '.join(served)} {are} among them")
    text = f"{text}; {' or '.join(judges)} is not among them"
    # A provider may take names that it does not list; some servers of one's own take any name.
    if not names or not is_loopback(url):
        return Finding("models", ok=True, text=text)
    words = WORDS[role]
    advice = f"set {words.model} to the one that judges" + (
        f", or {words.alias} where it is the same model under another name"
        if words.alias != words.model
        else ""
    )
    return Finding("models", ok=False, text=f"{text}: {advice}")


def benchmarks_by_data() -> Collection[Benchmark[Any, Any]]:
    """The benchmarks, each of those that share their data once."""
    benchmarks = all_benchmarks().values()
    return {(each.name, each.probe_file): each for each in benchmarks}.values()
