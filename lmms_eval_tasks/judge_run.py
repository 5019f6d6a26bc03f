"""The judge in one process: submit a caption, wait for its judgements at aggregation.

lmms-eval calls ``process_results`` document by document; waiting for the judge there would leave it
idle. So a hook submits, returns records that are filled in place, and the aggregation waits. Judge
trouble never raises out of a hook: lmms-eval would end the run without results.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Final, Literal, TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.adapt import added_params
from lmms_eval_captions.judges.endpoint.cost import Purse
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import NO_USAGE, About, Chain, is_offline
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE, JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings, read_judge_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.anchors import AnchorQuestions
from lmms_eval_captions.lmms_eval_tasks.cost_check import ExpectedCost
from lmms_eval_captions.lmms_eval_tasks.judge_engine import engine_config, limit_words, rate_words
from lmms_eval_captions.lmms_eval_tasks.judged import (
    Judged,
    caption_digest,
    not_there,
    require_judge,
    waiting,
    without_judge,
)
from lmms_eval_captions.lmms_eval_tasks.named_models import Model
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import (
    InPart,
    SamplingPlans,
    cheap_judge,
    sample_words,
)
from lmms_eval_captions.model_wrappers.caption_log import RUN_CAPTIONS, CaptionLog
from lmms_eval_captions.model_wrappers.no_caption import says_nothing

J = TypeVar("J", bound=Judgement)

MOST_ENGINES: Final = 3
"""Engines of one run: one that an error of ours ended is followed by another, within reason."""


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
        self.begin()
        self._purse = Purse()
        """What the limit of cost is shared through."""

    def begin(self) -> None:
        """Forget the plans of an earlier run in this process."""
        self.anchors = AnchorQuestions()
        """Questions that tell whether the judge judges."""
        self.plans = SamplingPlans()
        """Captions of whose questions a sample is judged."""
        self.expected_cost = ExpectedCost()
        """Cost of the tasks whose captions are written."""

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
                    "judge {}{} at {}, {}{}, at most {:.2%} unscored{}{}, {}, replies in {}",
                    settings.judge or "of each benchmark",
                    f", which answers as {settings.alias}," if settings.alias else "",
                    ", ".join(map(redact_url, settings.endpoint.urls))
                    if not is_offline(settings.judge)
                    else "nowhere (an offline smoke test)",
                    "in batches"
                    if settings.mode == "batch"
                    else f"at most {settings.concurrency} in flight{rate_words(settings)}",
                    f", {sample_words(settings)}" if settings.precision is not None else "",
                    settings.max_unscored,
                    ", unreadable replies asked anew" if settings.ask_again else "",
                    ", stored replies of this endpoint alone"
                    if settings.store_by == "endpoint"
                    else "",
                    limit_words(settings),
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
                        added_params=added_params(endpoint.urls, endpoint.api),
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
        config = engine_config(settings)
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
        with self._lock:
            engine, self._engine = self._engine, None
            cheap, self._cheap_engine = self._cheap_engine, None
            self._settings = None
            self.begin()
            self._purse = Purse()
        RUN_CAPTIONS.forget()
        for closed in (engine, cheap):
            if closed is not None:
                closed.close()
                with self._lock:
                    self._ended = closed.totals().after(self._ended)


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
        unasked: Judged[J] | None = without_judge(caption, config, silent)
        if unasked is not None:
            return lambda: unasked
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
    missing: Judged[J] | None = not_there(caption, NO_JUDGE)
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
    require_judge(config, settings)
    future = JUDGE_RUN.engine().submit(chains, about=about)
    settled = list[Future[list[Sequence[J]]]]()
    future.add_done_callback(settled.append)
    return waiting(
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
    require_judge(config, settings)
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

    return waiting(judged, config, settings, is_settled=lambda: held.sample is not None)
