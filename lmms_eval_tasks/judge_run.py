"""The judge in one process: submit a caption, wait for its judgements at aggregation.

lmms-eval calls ``process_results`` document by document; waiting for the judge there would leave it
idle. So a hook submits, returns records that are filled in place, and the aggregation waits. Judge
trouble never raises out of a hook: lmms-eval would end the run without results.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import threading
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Final, Generic, Literal, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.batch.client import (
    BATCH_ATTEMPTS,
    BATCH_CONCURRENCY,
    BATCH_PATIENCE_S,
)
from lmms_eval_captions.judges.endpoint.budget import Purse
from lmms_eval_captions.judges.endpoint.chain import About, Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.explicit_sampling import explicit_sampling
from lmms_eval_captions.judges.endpoint.lexical_client import is_offline
from lmms_eval_captions.judges.endpoint.models import Model
from lmms_eval_captions.judges.endpoint.outcome import NO_USAGE, Usage
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.endpoint.progress.totals import Totals
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.protocols.judge_config import NO_JUDGE, JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings, data_settings, read_judge_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.anchors import AnchorQuestions
from lmms_eval_captions.lmms_eval_tasks.sampling.in_part import InPart, cheap_judge, sample_words
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import SamplingPlans
from lmms_eval_captions.lmms_eval_tasks.sampling.sample_of_caption import Sample
from lmms_eval_captions.lmms_eval_tasks.verified_judges import VerifiedJudges
from lmms_eval_captions.model_wrappers.caption_log import RUN_CAPTIONS, CaptionLog
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption, says_nothing

J = TypeVar("J", bound=Judgement)

NOTHING_TO_JUDGE = "the caption is empty"
NO_CAPTION = "no caption: "
"""How the reason starts where a caption is not there."""
MOST_ENGINES: Final = 3
"""Engines of one run: one that an error of ours ended is followed by another, within reason."""
_ELSEWHERE: Final = (
    "the caption was handed in by the process that this one was forked from, and is judged there"
)


@dataclass(frozen=True, slots=True)
class Judged(Generic[J]):
    """The judgements of one caption, or why there are none."""

    chains: Sequence[Sequence[J]]
    """Those of each chain, in the order of the chains; none where nothing was judged."""
    config: JudgeConfig | None
    """``None`` where the settings could not be used."""
    reason: str | None
    """Why nothing was judged, else ``None``."""
    caption: Literal["there", "empty", "missing", "dropped"] = "there"
    """An empty one has no word: its judgements are those of a caption that says nothing. A missing
    one has no judgements, and the reason is the captioner's; a dropped one is left out, too."""
    sample: Sample | None = None
    """Which questions were asked, ``None`` for all; the chains of others are empty."""
    cheap_usage: Usage = NO_USAGE
    """What the cheap judge's answers to all questions took."""

    @property
    def judgements(self) -> list[J]:
        """Those of all chains."""
        return list(chain.from_iterable(self.chains))


class JudgeRun:
    """The process's engine and settings, made at the first judge call and never earlier."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Start afresh, as in a forked child: the parent's threads, who may hold a lock, are gone.

        The engine is kept, which says so where it is asked.
        """
        self._lock = threading.Lock()
        self._engine: Engine | None = getattr(self, "_engine", None)
        self._cheap_engine: Engine | None = getattr(self, "_cheap_engine", None)
        self._n_engines = 0
        self.process = uuid.uuid4().hex
        """Tells this process from all others, of other machines too."""
        self._ended = Totals()
        """Those of the engines that were closed."""
        self._settings: JudgeSettings | None = None
        RUN_CAPTIONS.forget()
        self.anchors = AnchorQuestions()
        """What the judge is also asked, to see whether it judges."""
        self.plans = SamplingPlans()
        """Captions of whose questions a sample is judged."""
        self._purse = Purse()
        """What the limit of cost is shared through."""
        self.verified = VerifiedJudges()
        """What ``judge verify`` has found out about judges."""

    def settings(self) -> JudgeSettings:
        """The settings of this run, read once.

        Raises:
            SettingsError: If a variable cannot be used.
        """
        with self._lock:
            if self._settings is None:
                self._settings = read_judge_settings()
            return self._settings

    def captions(self) -> CaptionLog:
        """Where this process saves its captions, whatever the settings of the judge."""
        return RUN_CAPTIONS.log()

    def engine(self) -> Engine:
        """The engine; the first call says which judge is asked and how."""
        settings = self.settings()
        with self._lock:
            if self._engine is not None and self._engine.defect and self._n_engines < MOST_ENGINES:
                self._engine.close()
                self._ended = self._engine.totals().after(self._ended)
                spent_usd = self._engine.spent_usd
                logger.warning("judging goes on with another engine after {}", self._engine.defect)
                config = replace(self._config(settings), spent_usd=spent_usd)
                self._engine = Engine(config)
                self._n_engines += 1
            if self._engine is None:
                self._engine = Engine(self._config(settings))
                self._n_engines = 1
                atexit.register(self.close)
                logger.info(
                    "judge {}{} at {}, {}{}, at most {:.2%} unscored{}{}{}, {}, replies in {}",
                    settings.judge or "of each benchmark",
                    f", which answers as {settings.alias}," if settings.alias else "",
                    ", ".join(map(redact_url, settings.endpoint.urls))
                    if not is_offline(settings.judge)
                    else "nowhere (an offline smoke test)",
                    "in batches"
                    if settings.mode == "batch"
                    else f"at most {settings.concurrency} in flight{_rate_words(settings)}",
                    f", {sample_words(settings)}" if settings.precision is not None else "",
                    settings.max_unscored,
                    ", unreadable replies asked anew" if settings.ask_again else "",
                    ", stored replies of this endpoint alone"
                    if settings.store_by == "endpoint"
                    else "",
                    ", prompts with everything constant first"
                    if settings.prompt_order == "constant-first"
                    else "",
                    _limit_words(settings),
                    settings.cache / "replies",
                )
            return self._engine

    def cheap_engine(self, model: Model) -> Engine:
        """The engine that the cheap judge is asked through: the judge's, where it is there, too."""
        settings = self.settings()
        if model.endpoint == settings.endpoint:
            return self.engine()
        with self._lock:
            if self._cheap_engine is None:
                endpoint = model.endpoint
                # Where there is a Batch API is not known of another address.
                now = replace(settings, mode="now")
                self._cheap_engine = Engine(
                    replace(
                        self._config(now),
                        urls=endpoint.urls,
                        api=endpoint.api,
                        api_key=endpoint.api_key,
                        alias=endpoint.alias,
                        sampling=explicit_sampling(endpoint.urls, endpoint.api),
                        role="cheap_judge",
                        # The limit is the judge's; what another endpoint takes, it says itself.
                        max_rate=None,
                    )
                )
                atexit.register(self.close)
                logger.info(
                    "cheap judge {} at {}", model.name, ", ".join(map(redact_url, endpoint.urls))
                )
            return self._cheap_engine

    def _config(self, settings: JudgeSettings) -> EngineConfig:
        """How an engine is made; engines of two judges stay within one limit of cost."""
        config = _engine_config(settings)
        return replace(config, purse=self._purse) if settings.cheap_judge else config

    def totals(self) -> Totals:
        """What this process has asked since it began, and where replies came from."""
        with self._lock:
            totals = self._ended
            if self._engine is not None:
                totals = self._engine.totals().after(self._ended)
            return totals if self._cheap_engine is None else totals + self._cheap_engine.totals()

    def close(self) -> None:
        """End judging and forget the settings, so that the next call starts afresh."""
        data_settings.cache_clear()
        with self._lock:
            engine, self._engine = self._engine, None
            cheap, self._cheap_engine = self._cheap_engine, None
            self._settings = None
            self.anchors = AnchorQuestions()
            self.plans = SamplingPlans()
            self._purse = Purse()
            self.verified = VerifiedJudges()
        RUN_CAPTIONS.forget()
        for closed in (engine, cheap):
            if closed is not None:
                closed.close()
                with self._lock:
                    self._ended = closed.totals().after(self._ended)


def _rate_words(settings: JudgeSettings) -> str:
    """How fast requests may go out, where the user has said so."""
    if settings.rate is None:
        return ""
    return f", at most {settings.rate:g} request{'s' if settings.rate != 1 else ''} a second"


def _limit_words(settings: JudgeSettings) -> str:
    """What judging may cost, by prices of which day."""
    if settings.max_cost_usd is None:
        return "no limit of cost"
    as_of = load_prices(settings.prices).as_of
    return f"at most ${settings.max_cost_usd:g} in all by prices of {as_of}"


def _engine_config(settings: JudgeSettings) -> EngineConfig:
    limit_usd, rate = settings.max_cost_usd, settings.rate
    config = EngineConfig(
        urls=settings.endpoint.urls,
        store=settings.cache / "replies",
        api=settings.api,
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
        return replace(config, sampling=explicit_sampling(settings.endpoint.urls, settings.api))
    return replace(
        config,
        concurrency=BATCH_CONCURRENCY,
        n_attempts=BATCH_ATTEMPTS,
        patience_s=BATCH_PATIENCE_S,
    )


JUDGE_RUN = JudgeRun()


def judge_caption(  # noqa: PLR0913 - all that a caption is judged by
    caption: str,
    *,
    task: str,
    video_id: str,
    aspect: str | None,
    defaults: Mapping[str, object],
    chains: Callable[[JudgeConfig], Sequence[Chain[Sequence[J]]]],
    silent: Callable[[JudgeConfig], Sequence[Sequence[J]] | None],
    why_not: str | None = None,
    in_part: InPart[J] | None = None,
) -> Callable[[], Judged[J]]:
    """Save a caption and submit its questions; never waits, never raises.

    A caption without a word is not sent: what it counts as is known. One that is not there
    (:class:`NoCaption`) is unscored, or left out (:class:`DroppedCaption`).

    Args:
        caption: Candidate caption, unchanged.
        task: Name of the lmms-eval task.
        video_id: The video.
        aspect: Aspect of the caption where a benchmark has several, else ``None``.
        defaults: The benchmark's ``metadata.judge``.
        chains: Makes one chain for each question and run.
        silent: Makes the judgements of each chain for a caption that says nothing, by the paper's
            definition; ``None`` where the benchmark has no such verdict.
        why_not: Why the judge is not to be asked, else ``None``.
        in_part: What has the caption judged where a sample of the questions is to be asked,
            ``None`` where all are.

    Returns:
        A function that waits for the judgements; thread-safe, and the same result at every call.
    """
    config: JudgeConfig | None = None
    try:
        JUDGE_RUN.captions().save(task=task, video_id=video_id, caption=caption, aspect=aspect)
        settings = JUDGE_RUN.settings()
        config = JudgeConfig.build(defaults, settings)
        missing: Judged[J] | None = _not_there(caption, config)
        if missing is not None:
            return lambda: missing
        if says_nothing(caption):
            silences = silent(config)
            reason = NOTHING_TO_JUDGE if silences is None else None
            return lambda: Judged(silences or (), config, reason, "empty")
        if why_not is not None:
            return lambda: Judged((), config, why_not)
        about = caption_digest(caption)
        if in_part is not None and settings.precision is not None:
            return _submit_in_part(chains(config), config, settings, in_part, about)
        return _submit(chains(config), config, settings, about=about)
    except CaptionsError as error:
        message = str(error)
        return lambda: Judged((), config, message)


def measure_caption(
    caption: str,
    *,
    task: str,
    video_id: str,
    aspect: str | None,
    measure: Callable[[], Callable[[], Sequence[Sequence[J]]]],
    why_not: str | None = None,
) -> Callable[[], Judged[J]]:
    """Save a caption and hand it in to be measured, without a judge; never waits, never raises.

    Args:
        caption: Candidate caption, unchanged; one without a word is measured, too.
        task: As :func:`judge_caption`, and so are the next two.
        video_id: The video.
        aspect: Aspect of the caption, or ``None``.
        measure: Hands the caption in, and gives what waits for the measurements of its questions.
        why_not: Why it is not to be measured, else ``None``.

    Returns:
        A function that waits for the measurements; the same result at every call.
    """
    missing: Judged[J] | None = _not_there(caption, NO_JUDGE)
    kind: Literal["there", "empty"] = "empty" if says_nothing(caption) else "there"

    @functools.cache
    def measured() -> Judged[J]:
        try:
            return Judged(wait(), NO_JUDGE, None, kind)
        except CaptionsError as error:
            return Judged((), NO_JUDGE, str(error), kind)
        except Exception as error:  # noqa: BLE001 - an error of ours must not cost the run its results
            words = "".join(traceback.format_exception(error))
            logger.error("measuring a caption failed: {}", words)
            return Judged((), NO_JUDGE, f"internal error: {error!r}", kind)

    try:
        JUDGE_RUN.captions().save(task=task, video_id=video_id, caption=caption, aspect=aspect)
        if missing is not None:
            return lambda: missing
        if why_not is not None:
            return lambda: Judged((), NO_JUDGE, why_not, kind)
        wait = measure()
    except CaptionsError as error:
        message = str(error)
        return lambda: Judged((), NO_JUDGE, message, kind)
    return measured


def _not_there(caption: str, config: JudgeConfig) -> Judged[J] | None:
    """What a caption that is not there has in the place of judgements, ``None`` for all others."""
    if not isinstance(caption, NoCaption):
        return None
    kind: Literal["dropped", "missing"] = (
        "dropped" if isinstance(caption, DroppedCaption) else "missing"
    )
    return Judged((), config, f"{NO_CAPTION}{caption.reason}", kind)


def judge_anchors(
    defaults: Mapping[str, object],
    chains: Callable[[JudgeConfig], Sequence[Chain[Sequence[J]]]],
    *,
    about: Sequence[bytes] | None = None,
) -> Callable[[], Judged[J]]:
    """Submit questions about captions of our own, as :func:`judge_caption` does with one's.

    Nothing is asked where no endpoint is; the reason says so.

    Args:
        defaults: The benchmark's ``metadata.judge``.
        chains: Makes the chains.
        about: Digest of the caption of each chain, ``None`` where they are about no captions.
    """
    config: JudgeConfig | None = None
    try:
        settings = JUDGE_RUN.settings()
        config = JudgeConfig.build(defaults, settings)
        if not config.asks_endpoint:
            return lambda: Judged((), config, "no endpoint is asked")
        return _submit(chains(config), config, settings, about=about)
    except CaptionsError as error:
        message = str(error)
        return lambda: Judged((), config, message)


def _submit(
    chains: Sequence[Chain[Sequence[J]]],
    config: JudgeConfig,
    settings: JudgeSettings,
    *,
    about: About = None,
) -> Callable[[], Judged[J]]:
    """Submit chains, if their judge may be asked; a function that waits for their judgements.

    Raises:
        CaptionsError: If it may not, or judging cannot begin.
    """
    _require_judge(config, settings)
    future = JUDGE_RUN.engine().submit(chains, about=about)
    settled = list[Future[list[Sequence[J]]]]()
    future.add_done_callback(settled.append)
    return _waiting(
        lambda: Judged(future.result(), config, None),
        config,
        settings,
        is_settled=lambda: bool(settled),
    )


def _submit_in_part(
    chains: Sequence[Chain[Sequence[J]]],
    config: JudgeConfig,
    settings: JudgeSettings,
    in_part: InPart[J],
    about: bytes,
) -> Callable[[], Judged[J]]:
    """Have a caption wait until it is chosen what of it is asked; as :func:`_submit`.

    Raises:
        CaptionsError: If its judge, or the cheap one, may not be asked, or judging cannot begin.
    """
    _require_judge(config, settings)
    JUDGE_RUN.engine()
    cheap = cheap_judge(settings, config.model)
    cheap_future = None
    if cheap is not None:
        chains_of_cheap = in_part.cheap_chains(cheap.name)
        cheap_future = JUDGE_RUN.cheap_engine(cheap).submit(chains_of_cheap, about=about)
    held = in_part.held(
        chains,
        n_runs=config.runs,
        submit=lambda some: JUDGE_RUN.engine().submit(some, about=about),
        cheap=None if cheap_future is None else cheap_future.result,
    )
    wait = JUDGE_RUN.plans.hold(in_part.benchmark, held, settings)

    def judged() -> Judged[J]:
        wait()
        answered = [held.answered.get(place, ()) for place in range(len(chains))]
        said = () if cheap_future is None else chain.from_iterable(cheap_future.result())
        usage = reduce(add, (judgement.usage for judgement in said), NO_USAGE)
        return Judged(answered, config, None, sample=held.sample, cheap_usage=usage)

    return _waiting(judged, config, settings, is_settled=lambda: held.sample is not None)


def _require_judge(config: JudgeConfig, settings: JudgeSettings) -> None:
    if config.asks_endpoint:
        settings.require_named_judge(config.model)
        settings.require_judge_access()


def _waiting(
    result: Callable[[], Judged[J]],
    config: JudgeConfig,
    settings: JudgeSettings,
    *,
    is_settled: Callable[[], bool],
) -> Callable[[], Judged[J]]:
    """What waits for a result, and gives why there is none in the place of raising it.

    Args:
        result: Waits, and may raise.
        config: The benchmark's judge.
        settings: Those of the run.
        is_settled: Whether the result is there.
    """
    pid = os.getpid()

    @functools.cache
    def wait() -> Judged[J]:
        if os.getpid() != pid and not is_settled():
            # No thread of this process will ever settle it.
            return Judged((), config, _ELSEWHERE)
        try:
            return result()
        except (CaptionsError, CancelledError) as error:
            return Judged((), config, str(error) or "judging was cancelled")
        except Exception as error:  # noqa: BLE001 - an error of ours must not cost the run its results
            # Not as loguru shows an exception: it prints the variables' values, the key's too.
            words = "".join(traceback.format_exception(error))
            logger.error("judging a caption failed: {}", _scrubbed(words, settings))
            return Judged((), config, _scrubbed(f"internal error: {error!r}", settings))

    return wait


def caption_digest(caption: str) -> bytes:
    """What tells a caption from others, in every process; 8 bytes."""
    return hashlib.blake2b(caption.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _scrubbed(text: str, settings: JudgeSettings) -> str:
    return scrub(text, settings.endpoint.api_key, *settings.endpoint.urls)
