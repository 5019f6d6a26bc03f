"""The judge in one process: settings, engine, submit a caption, wait for its record.

lmms-eval calls ``process_results`` document by document; waiting there would leave the judge idle.
So a caption is submitted, and the aggregation waits. Trouble with the judge never raises out of a
hook: lmms-eval would end the run without results.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import traceback
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import reduce
from itertools import chain, product
from operator import add
from typing import Any, Final, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.adapt import added_params
from lmms_eval_captions.judges.endpoint.batch import (
    BATCH_ATTEMPTS,
    BATCH_CONCURRENCY,
    BATCH_PATIENCE_S,
)
from lmms_eval_captions.judges.endpoint.cost import Purse, load_prices
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint, EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.failures import Role
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import NO_USAGE, About, Chain, Usage, is_offline
from lmms_eval_captions.judges.endpoint.urls import redact_url, scrub
from lmms_eval_captions.judges.errors import CaptionsError, JudgeError
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE, JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.judge_check import (
    AnchorQuestions,
    anchor_credits,
    anchors_of,
)
from lmms_eval_captions.lmms_eval_tasks.judging.judged_caption import (
    Judged,
    JudgedCaption,
    caption_digest,
    record_of,
)
from lmms_eval_captions.lmms_eval_tasks.records import NO_CAPTION, NOTHING_TO_JUDGE, Kind
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import (
    PendingCaption,
    SamplingPlans,
    can_be_sampled,
    cheap_judge,
    sample_words,
)
from lmms_eval_captions.lmms_eval_tasks.signature import CHEAP, PRECISION
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption, says_nothing

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)

ELSEWHERE: Final = (
    "the caption was handed in by the process that this one was forked from, and is judged there"
)


class Session:
    """The process's engines and settings, made at the first judge call and never earlier."""

    def __init__(self) -> None:
        self._engines: dict[Role, Engine] = {}
        self._forget()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Start afresh, as in a forked child: the parent's threads are gone."""
        self._lock = threading.Lock()
        self.process = uuid.uuid4().hex
        """Tells this process from all others, of other machines too."""
        # Of the engines that were closed.
        self._ended = Totals()
        self._settings: JudgeSettings | None = None
        # Shares the limit of cost between engines.
        self._purse = Purse()
        RUN_CAPTIONS.forget()
        self.begin()

    def begin(self) -> None:
        """Forget the plans of an earlier run in this process."""
        self.anchors = AnchorQuestions()
        self.plans = SamplingPlans()
        self.expected_cost = (0.0, 0.0)
        """Requests and US dollars of the tasks whose captions are written."""

    def settings(self) -> JudgeSettings:
        """Return the settings of this run, read once.

        Raises:
            SettingsError: If a variable cannot be used.
        """
        with self._lock:
            if self._settings is None:
                self._settings = read_judge_settings()
            return self._settings

    def engine(self, cheap: Model | None = None) -> Engine:
        """Return the engine of the judge, or of a cheap judge at another address."""
        settings = self.settings()
        is_apart = cheap is not None and cheap.endpoint != settings.endpoint
        role: Role = "cheap_judge" if is_apart else "judge"
        with self._lock:
            if role not in self._engines:
                config, shown = engine_config(settings), _words_of(settings)
                if cheap is not None and is_apart:
                    config = _cheap_config(settings, cheap.endpoint)
                    shown = f"{cheap.name} at {', '.join(map(redact_url, config.urls))}"
                if settings.cheap_judge:
                    config = replace(config, purse=self._purse)
                atexit.register(self.close)
                logger.info("{} {}", role.replace("_", " "), shown)
                self._engines[role] = Engine(config)
            return self._engines[role]

    def totals(self) -> Totals:
        """Return what this process has asked since it began, and where replies came from."""
        with self._lock:
            return self._totals_of(self._engines.values())

    def _totals_of(self, engines: Iterable[Engine]) -> Totals:
        return reduce(add, (engine.totals() for engine in engines), Totals()).after(self._ended)

    def close(self) -> None:
        """End judging and forget the settings, so that the next call starts afresh."""
        with self._lock:
            engines, self._engines = list(self._engines.values()), {}
            self._settings, self._purse = None, Purse()
            self.begin()
        RUN_CAPTIONS.forget()
        for engine in engines:
            engine.close()
        with self._lock:
            self._ended = self._totals_of(engines)


SESSION: Final = Session()


def engine_config(settings: JudgeSettings) -> EngineConfig:
    """Return the configuration of an engine that asks the judge of these settings."""
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


def _cheap_config(settings: JudgeSettings, endpoint: Endpoint) -> EngineConfig:
    # Whether another address has a Batch API is not known, and the rate is the judge's.
    return replace(
        engine_config(replace(settings, mode="now")),
        urls=endpoint.urls,
        api=endpoint.api,
        api_key=endpoint.api_key,
        alias=endpoint.alias,
        added_params=added_params(endpoint.urls, endpoint.api),
        role="cheap_judge",
        max_rate=None,
    )


def _words_of(settings: JudgeSettings) -> str:
    """Return which judge is asked, and within which limits."""
    urls = "; ".join(map(redact_url, settings.endpoint.urls))
    address = "nowhere (an offline smoke test)" if is_offline(settings.judge) else urls
    limit = "no limit of cost"
    if settings.max_cost_usd is not None:
        as_of = load_prices(settings.prices).as_of
        limit = f"at most ${settings.max_cost_usd:g} in all by prices of {as_of}"
    words = [
        f"{settings.judge or 'of each benchmark'} at {address}",
        "in batches" if settings.mode == "batch" else f"at most {settings.concurrency} in flight",
        sample_words(settings),
        limit,
        f"replies in {settings.cache / 'replies'}",
    ]
    return ", ".join(filter(None, words))


def submit(
    benchmark: Benchmark[Q, J],
    doc: Doc,
    caption: str,
    *,
    task: Task | None = None,
    why_not: tuple[str, Kind] | None = None,
) -> Callable[[], JudgedCaption]:
    """Save a caption, submit its questions for every judge run, and return what waits for them.

    Never waits, never raises. A caption without a word is not sent: what it counts as is known. One
    that is not there (:class:`NoCaption`) is unscored, or left out (:class:`DroppedCaption`).
    ``why_not`` is a reason not to ask the judge, and its kind.
    """
    task = task or benchmark.task_of(doc)
    wait, check = _submitted(benchmark, task, doc, caption, why_not), benchmark.judge_check
    due = [] if says_nothing(caption) or why_not else SESSION.anchors.due(task.name)
    anchors = _ask_anchors(benchmark, due)

    @functools.cache
    def judged_caption() -> JudgedCaption:
        judged, credited = wait(), anchors()
        report_usage(task.name, judged, credited)
        pairs = {} if check is None else anchor_credits(check, due, credited)
        questions = benchmark.questions(doc)
        record = record_of(benchmark, task, doc, caption, questions, judged, pairs=pairs)
        return JudgedCaption(record, judged.judgements)

    return judged_caption


def _submitted(
    benchmark: Benchmark[Q, J],
    task: Task,
    doc: Doc,
    caption: str,
    why_not: tuple[str, Kind] | None,
) -> Callable[[], Judged[J]]:
    questions, video_id = benchmark.questions(doc), benchmark.video_id(doc)
    measure = benchmark.measure
    unjudged: Judged[J] = Judged((), NO_JUDGE if measure else None, None)
    if measure and says_nothing(caption):
        unjudged = replace(unjudged, caption="empty")
    try:
        log = RUN_CAPTIONS.log()
        log.save(task=task.name, video_id=video_id, caption=caption, aspect=task.aspect)
        config = benchmark.judge_config(SESSION.settings()) if measure is None else NO_JUDGE
        unjudged = replace(unjudged, config=config)
        unasked = without_judge(benchmark, questions, caption, config)
        if unasked is not None:
            return lambda: unasked
        if why_not is not None:
            return lambda: replace(unjudged, reason=why_not[0], kind=why_not[1])
        if measure is not None:
            waits = [measure(question, caption) for question in questions]
            return settled(
                lambda: replace(unjudged, chains=[(wait(),) for wait in waits]), unjudged
            )
        chains = benchmark.chains(questions, caption, config)
        about, settings = caption_digest(caption), SESSION.settings()
        if settings.precision is not None and questions and can_be_sampled(benchmark):
            return _submit_in_part(benchmark, task, doc, caption, chains, config)
        return _submit(chains, config, settings, about=about)
    except CaptionsError as error:
        failed = unjudged_because(unjudged, error)
        return lambda: failed


def without_judge(
    benchmark: Benchmark[Q, J], questions: Sequence[Q], caption: str, config: JudgeConfig
) -> Judged[J] | None:
    """Return the judgements of a caption that is not sent, ``None`` for one that is."""
    if isinstance(caption, NoCaption):
        is_dropped = isinstance(caption, DroppedCaption)
        why = f"{NO_CAPTION}{caption.reason}"
        return Judged((), config, why, "missing", "dropped" if is_dropped else "missing")
    if benchmark.measure is not None or not says_nothing(caption):
        return None
    silent = benchmark.silent
    if silent is None:
        return Judged((), config, NOTHING_TO_JUDGE, "empty", "empty")
    chains = [silent(question, run) for run, question in product(range(config.runs), questions)]
    return Judged(chains, config, None, caption="empty")


def _submit(
    chains: Sequence[Chain[Sequence[J]]],
    config: JudgeConfig,
    settings: JudgeSettings,
    *,
    about: About = None,
) -> Callable[[], Judged[J]]:
    require_judge(config, settings)
    future = SESSION.engine().submit(chains, about=about)
    return settled(
        lambda: Judged(future.result(), config, None),
        Judged((), config, None),
        is_settled=future.done,
        settings=settings,
    )


def _submit_in_part(
    benchmark: Benchmark[Q, J],
    task: Task,
    doc: Doc,
    caption: str,
    chains: Sequence[Chain[Sequence[J]]],
    config: JudgeConfig,
) -> Callable[[], Judged[J]]:
    """Have a caption wait until it is chosen which of its questions are asked."""
    settings, questions = SESSION.settings(), benchmark.questions(doc)
    about = caption_digest(caption)
    require_judge(config, settings)
    SESSION.engine()
    cheap = cheap_judge(settings, config.model)
    cheap_future = None
    if cheap is not None:
        # The benchmark's judge with another model, asked once.
        other = benchmark.judge_config(replace(settings, judge=cheap.name, alias=None))
        asked = benchmark.chains(questions, caption, replace(other, runs=1))
        cheap_future = SESSION.engine(cheap).submit(asked, about=about)
    held: PendingCaption[J] = PendingCaption(
        task=task.name,
        video_id=benchmark.video_id(doc),
        names=[benchmark.question_text(question) for question in questions],
        n_runs=config.runs,
        chains=chains,
        submit=lambda some: SESSION.engine().submit(some, about=about),
        cheap=cheap_future,
    )
    wait = SESSION.plans.hold(benchmark, held, settings)

    def judged() -> Judged[J]:
        wait()
        answered = [held.answered.get(place, ()) for place in range(len(chains))]
        said = () if cheap_future is None else chain.from_iterable(cheap_future.result())
        usage = reduce(add, (judgement.usage for judgement in said), NO_USAGE)
        extras = {PRECISION: f"{settings.precision:g}"}
        if cheap is not None:
            extras[CHEAP] = cheap.name
        return Judged(answered, config, None, sample=held.sample, extras=extras, cheap_usage=usage)

    return settled(
        judged,
        Judged((), config, None),
        is_settled=lambda: held.sample is not None,
        settings=settings,
    )


def _ask_anchors(
    benchmark: Benchmark[Q, J], due: Sequence[Q]
) -> Callable[[], Sequence[Sequence[J]]]:
    """Submit questions with both anchors each; mostly none."""
    check = benchmark.judge_check
    if check is None or not due:
        return tuple
    anchors = anchors_of(check, due)
    try:
        settings = SESSION.settings()
        config = benchmark.judge_config(settings)
        if not config.asks_endpoint:
            return tuple
        chains = [benchmark.ask(question, text, config=config, run=0) for question, text in anchors]
        about = [caption_digest(text) for _, text in anchors]
        wait = _submit(chains, config, settings, about=about)
    except CaptionsError:
        return tuple
    return lambda: wait().chains


def unjudged_because(unjudged: Judged[J], error: CaptionsError | CancelledError) -> Judged[J]:
    """Return the judgements of a caption that an error left without any."""
    if isinstance(error, CancelledError):
        reason = str(error) or "judging was cancelled"
        return replace(unjudged, reason=reason, kind="unavailable")
    kind = error.failure if isinstance(error, JudgeError) else "stopped"
    return replace(unjudged, reason=str(error), kind=kind)


def settled(
    result: Callable[[], Judged[J]],
    unjudged: Judged[J],
    *,
    is_settled: Callable[[], bool] = lambda: True,
    settings: JudgeSettings | None = None,
) -> Callable[[], Judged[J]]:
    """Return a function that waits for a result; ``unjudged`` with the reason if it raises.

    The key and the addresses in ``settings`` are in no message.
    """
    pid = os.getpid()

    @functools.cache
    def wait() -> Judged[J]:
        if os.getpid() != pid and not is_settled():
            # No thread of this process will ever settle it.
            return replace(unjudged, reason=ELSEWHERE)
        try:
            return result()
        except (CaptionsError, CancelledError) as error:
            return unjudged_because(unjudged, error)
        except Exception as error:  # noqa: BLE001 - an error of ours must not cost the run its results
            # Not as loguru shows an exception: it prints the variables' values, the key's too.
            words = "".join(traceback.format_exception(error))
            logger.error("judging a caption failed: {}", _scrubbed(words, settings))
            reason = _scrubbed(f"internal error: {error!r}", settings)
            return replace(unjudged, reason=reason, kind="unavailable")

    return wait


def require_judge(config: JudgeConfig, settings: JudgeSettings) -> None:
    """Raise SettingsError if a judge is not named, or there is no key for it."""
    if config.asks_endpoint:
        settings.require_named_judge(config.model)
        settings.require_judge_access()


def report_usage(task: str, judged: Judged[Any], anchors: Sequence[Sequence[Judgement]]) -> None:
    """Report what one caption's judging cost to lmms-eval's usage table and ``--max_tokens``."""
    config = judged.config
    if config is None or not config.asks_endpoint:
        return
    spent = chain(judged.judgements, chain.from_iterable(anchors))
    log_usage(task, config.model, reduce(add, (each.usage for each in spent), NO_USAGE))
    if judged.cheap_usage.n_calls:
        log_usage(task, SESSION.settings().cheap_judge or "", judged.cheap_usage)


def log_usage(task: str, model: str, usage: Usage) -> None:
    """Count calls and tokens in lmms-eval's usage table, which has a line for each call.

    It adds all of them up for each new line with ``--max_tokens``, so a caption's tokens are one
    line, and its other calls are lines without tokens next to it.
    """
    if not usage.n_calls:
        return
    try:
        from lmms_eval.models.model_utils import usage_metrics
    except ModuleNotFoundError:  # no run of lmms-eval, which has a table of usage
        return
    call = {"model_name": model, "task_name": task, "source": "judge"}
    n_in, n_out = usage.input_tokens, usage.output_tokens
    usage_metrics.log_usage(model, task, n_in, n_out, source="judge")
    no_tokens = dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens"), 0)
    try:
        with usage_metrics._USAGE_LOCK:
            usage_metrics._USAGE_HISTORY.extend([{**call, **no_tokens}] * (usage.n_calls - 1))
    except AttributeError as error:
        logger.debug("this version of lmms-eval counts a call per caption: {!r}", error)


def _scrubbed(text: str, settings: JudgeSettings | None) -> str:
    if settings is None:
        return text
    return scrub(text, settings.endpoint.api_key, *settings.endpoint.urls)
