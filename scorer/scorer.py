"""Captions scored like the tasks do: the same prompts, readers, stored replies and arithmetic."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lmms_eval_captions.judges.endpoint.cost import LIMIT_REACHED, Purse, load_prices, require_price
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.request import SHOWN, Ask, Asked, Chain, Reply, Request
from lmms_eval_captions.judges.errors import (
    INSTALL_EVAL,
    DataError,
    JudgeStoppedError,
    SettingsError,
    TooLateError,
)
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, Frames
from lmms_eval_captions.lmms_eval_tasks.judging.judged_caption import (
    Judged,
    caption_digest,
    caption_score,
    record_of,
)
from lmms_eval_captions.lmms_eval_tasks.judging.session import (
    engine_config,
    require_judge,
    settled,
    without_judge,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.scoring import signature_of, values_of
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.scorer.columns import (
    caption_of,
    clip_name,
    is_missing,
    listed,
    questions_of,
    references_of,
    video_in,
)
from lmms_eval_captions.scorer.settings import protocol_of, read_keywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lmms_eval_captions.scorer.settings import ScorerSettings

T = TypeVar("T")

NO_CAPTION_GIVEN: Final = "none was given"
OVER: Final = str(TooLateError())
"""Reason of a question whose time was over."""
_CLOSED: Final = "this scorer is closed; make another one"
_AHEAD: Final = 16
"""Questions that are submitted and not answered, as a multiple of the requests in flight."""
_LEAST_AHEAD: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionScore:
    """A caption's scores."""

    clip_id: str
    scores: Mapping[str, float]
    """Metric to the caption's own score, as in lmms-eval's samples; ``nan`` if it has none."""
    n_questions: int
    """Questions times judge runs."""
    n_unscored: int
    """Questions without a verdict."""
    reasons: Mapping[str, int]
    """Why questions are unscored, to their number."""
    judgements: Sequence[Judgement] = field(repr=False)
    """Verdict and reply of each question, judge run by judge run."""
    record: CaptionRecord = field(repr=False)
    """Record of the caption, as tasks keep it."""


class Pending:
    """A submitted caption; calling it waits for its scores."""

    def __init__(
        self, future: Future[Any] | None, until_s: float | None, score: Callable[[], CaptionScore]
    ) -> None:
        self._future = future
        self._until_s = until_s
        self._score = score

    def __call__(self) -> CaptionScore:
        """Wait for the scores."""
        return self._score()

    async def settled(self) -> None:
        """Wait until calling it returns at once; if cancelled, nothing more is asked."""
        if self._future is None:
            return
        waiter = asyncio.wrap_future(self._future)
        # An error is raised by calling this object; asyncio would log it as never retrieved.
        waiter.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait([waiter], timeout=left_s(self._until_s))
        except asyncio.CancelledError:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Ask nothing more about the caption."""
        if self._future is not None:
            self._future.cancel()


class Scorer:
    """Scores captions by one protocol. Close it, or use it as a context manager; thread-safe.

    Scorers of one process with equal settings share an engine: a request that several make is
    sent once, and concurrency, rate and cost limit are those of all of them.

    >>> with Scorer("vdc", judge="lexical") as scorer:  # doctest: +SKIP
    ...     scores = scorer.score(["A dog runs."], [[{"question": "Who runs?", "answer": "A dog"}]])
    ...     scores[0].scores["vdc_acc"]
    100.0

    Args:
        protocol: ``vdc``, ``vidcapbench``, ``vcapsbench``, ``capquiz``, ``gveval_ref_free``,
            ``gveval_ref_only``, ``gveval_combined``, ``vllm_judge``; or a task of lmms-eval, such
            as ``vdc_camera``, for captions of the benchmark's own videos.
        progress: Draw a bar of the questions.
        videos: Folder in which videos lie whose names are texts (default: the current one).
        purse: Shares the cost limit with other processes (default: not shared).
        settings: In place of the environment's.

    Raises:
        SettingsError: If a setting cannot be used, or the judge cannot be asked.
        JudgeStoppedError: If there is a cost limit and the price of the judge is not known.
    """

    def __init__(
        self,
        protocol: str,
        *,
        progress: bool = False,
        videos: str | Path | None = None,
        purse: Purse | None = None,
        **settings: Unpack[ScorerSettings],
    ) -> None:
        self.protocol = protocol_of(protocol)
        self.settings = read_keywords(settings)
        self.benchmark = self.protocol.benchmark
        self.config = self.benchmark.judge_config(self.settings)
        self.videos = Path(videos or ".").expanduser()
        require_judge(self.config, self.settings)
        if "video" in self.protocol.needs and find_spec("av") is None:
            raise SettingsError(
                f"{protocol}: reading videos needs av, which is not installed. Run: {INSTALL_EVAL}"
            )
        if self.config.asks_endpoint and self.settings.max_cost_usd is not None:
            prices = load_prices(self.settings.prices)
            require_price(self.config.model, prices, self.settings.endpoint.urls)
        self._engine_config = replace(
            engine_config(self.settings), progress=progress, purse=purse, outage_is_final=False
        )
        self._shared: _SharedEngine | None = None
        self._is_closed = False
        self._pending: weakref.WeakSet[Pending] = weakref.WeakSet()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Scorer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores of each caption."""
        return tuple(self.benchmark.metrics)

    @property
    def headline(self) -> str:
        """Name of the metric that stands for the others."""
        return self.benchmark.headline

    def score(
        self,
        captions: Sequence[str | None],
        questions: Sequence[Sequence[object]] | None = None,
        frames: Sequence[Frames | None] | None = None,
        *,
        references: Sequence[Sequence[str]] | None = None,
        clip_ids: Sequence[str] | None = None,
    ) -> list[CaptionScore]:
        """Return the scores of captions, in their order.

        Args:
            captions: Shape (n_captions,), unchanged; one without a word counts as in the tasks,
                ``None`` is a missing one and is unscored.
            questions: Those of each caption, as the benchmark's official files have them; by
                default those of the benchmark about ``clip_ids``.
            frames: File of a video of each caption, or frames in order of time. A text names a file
                in the folder ``videos``; a ``Path`` may lie anywhere.
            references: Reference captions of each caption.
            clip_ids: Names of the clips (default: their indices).

        Raises:
            ValueError: If these differ in length.
            DataError: If a clip's questions are not of the official form, or it lacks what the
                protocol needs; the text names the clip. Nothing is asked then.
        """
        return list(self.stream(self._clips(captions, questions, frames, references, clip_ids)))

    async def ascore(
        self,
        captions: Sequence[str | None],
        questions: Sequence[Sequence[object]] | None = None,
        frames: Sequence[Frames | None] | None = None,
        *,
        references: Sequence[Sequence[str]] | None = None,
        clip_ids: Sequence[str] | None = None,
    ) -> list[CaptionScore]:
        """Return what :meth:`score` does; if cancelled, nothing more is asked."""
        clips = await asyncio.to_thread(
            self._clips, captions, questions, frames, references, clip_ids
        )
        pending: list[Pending] = []
        try:
            for clip, caption in clips:
                pending.append(self.submit(self.document(clip), caption))
                await asyncio.sleep(0)
            for each in pending:
                await each.settled()
            return [each() for each in pending]
        except BaseException:
            for each in pending:
                each.cancel()
            raise

    def stream(self, clips: Iterable[tuple[Clip, str | None]]) -> Iterator[CaptionScore]:
        """Yield the scores of any number of captions, in their order, with few in memory at once.

        Clips are read as the judge gets on; :class:`DataError` comes when it is a clip's turn.
        """

        def submitted() -> Iterator[tuple[int, Pending]]:
            for clip, caption in clips:
                doc = self.document(clip)
                n_questions = max(1, len(self.benchmark.questions(doc)) * self.config.runs)
                yield n_questions, self.submit(doc, caption)

        yield from in_order(submitted(), max(_LEAST_AHEAD, _AHEAD * self.settings.concurrency))

    def document(self, clip: Clip) -> Doc:
        """Return a clip as a document of the benchmark; an error names a clip that is none."""
        is_custom = clip.questions is not None or clip.references or clip.frames is not None
        official = None if is_custom else self._official.get(clip.clip_id)
        if official is not None:
            return official
        try:
            if isinstance(clip.frames, str):
                clip = replace(clip, frames=video_in(self.videos, clip.frames))
            return self.protocol.document_of(clip)
        except DataError as error:
            raise DataError(f"clip {clip.clip_id!r}: {error}") from error

    def submit(self, doc: Doc, caption: str | None, *, until_s: float | None = None) -> Pending:
        """Submit a caption; never waits.

        Args:
            doc: The clip, see :meth:`document`.
            caption: Candidate caption, ``None`` if there is none.
            until_s: Time, by :func:`time.monotonic`, from which on what is not answered is unscored
                (default: wait for all).
        """
        text = NoCaption(NO_CAPTION_GIVEN) if caption is None else caption
        questions = self.benchmark.questions(doc)
        future, wait = self._judged(text, questions, until_s)

        def scored() -> CaptionScore:
            judged = wait()
            record = record_of(self.benchmark, self._task(doc), doc, text, questions, judged)
            return CaptionScore(
                clip_id=record.video_id,
                scores={
                    name: caption_score(metric, record, record.values[name])
                    for name, metric in self.benchmark.metrics.items()
                },
                n_questions=record.n_questions,
                n_unscored=record.n_unscored,
                reasons=record.reasons,
                judgements=judged.judgements,
                record=record,
            )

        pending = Pending(future, until_s, scored)
        self._pending.add(pending)
        return pending

    def totals(self, scores: Iterable[CaptionScore]) -> dict[str, float]:
        """Return each metric over captions, like the task: ``nan`` if too much is unscored."""
        records = [score.record for score in scores]
        return values_of(self.benchmark, records, max_unscored=self.settings.max_unscored)

    def signature(self, scores: Iterable[CaptionScore]) -> str:
        """Return what the scores were computed with, as the tasks print it."""
        return signature_of([score.record for score in scores])

    @property
    def stopped(self) -> str | None:
        """Reason why nothing more is asked of the judge, ``None`` if it is."""
        if self._is_closed:
            return _CLOSED
        shared = self._shared
        return None if shared is None else shared.stopped(self.config.model)

    def close(self) -> None:
        """Stop: nothing more is asked for this scorer, and everything answered is on disk."""
        with _LOCK:
            self._is_closed = True
            shared, self._shared = self._shared, None
        if shared is not None:
            for pending in list(self._pending):
                pending.cancel()

    def _clips(
        self,
        captions: Sequence[str | None],
        questions: Sequence[Sequence[object]] | None,
        frames: Sequence[Frames | None] | None,
        references: Sequence[Sequence[str]] | None,
        clip_ids: Sequence[str] | None,
    ) -> list[tuple[Clip, str | None]]:
        texts = listed("captions", captions)
        n = len(texts)
        columns = {
            "questions": [None] * n if questions is None else listed("questions", questions),
            "frames": [None] * n if frames is None else _seen(frames),
            "references": [None] * n if references is None else listed("references", references),
            "clip_ids": list(range(n)) if clip_ids is None else listed("clip_ids", clip_ids),
        }
        for name, column in columns.items():
            if len(column) != n:
                raise ValueError(f"{name}: expected {n}, one for each caption, got {len(column)}")
        clips = [
            Clip(
                clip_id=clip_name(clip_id),
                questions=None if questions is None else questions_of(asked),
                frames=seen,
                references=references_of(told),
                cache=self.settings.cache,
            )
            for asked, seen, told, clip_id in zip(*columns.values(), strict=True)
        ]
        for clip in clips:  # before anything is asked
            self.document(clip)
        return list(zip(clips, map(caption_of, texts), strict=True))

    def _judged(
        self, caption: str, questions: Sequence[Any], until_s: float | None
    ) -> tuple[Future[Any] | None, Callable[[], Judged[Any]]]:
        unasked = without_judge(self.benchmark, questions, caption, self.config)
        if unasked is not None:
            return None, lambda: unasked
        chains = self.benchmark.chains(questions, caption, self.config)
        in_time = _InTime(chains, until_s)
        future: Future[list[Sequence[Any]]] = self._engine().submit(
            chains if until_s is None else in_time.chains, about=caption_digest(caption)
        )

        def result() -> Judged[Any]:
            try:
                results, is_late = future.result(left_s(until_s)), in_time.is_late
            except FutureTimeoutError:
                results, is_late = list(in_time.results), True
            return Judged(results, self.config, None, late=OVER if is_late else None)

        return future, settled(
            result,
            Judged((), self.config, None),
            is_settled=future.done,
            settings=self.settings,
        )

    def _engine(self) -> Engine:
        """Return the engine, which the first caption that is asked about opens."""
        with _LOCK:
            if self._is_closed:
                raise JudgeStoppedError(_CLOSED)
            if self._shared is None or self._shared.pid != os.getpid():
                self._shared = _join(self._engine_config, self.config.model)
            return self._shared.engine

    @cached_property
    def _official(self) -> Mapping[str, Doc]:
        """Documents of the task's own videos, by each of their names."""
        benchmark, name = self.benchmark, self.protocol.name
        if name not in our_benchmarks():
            return {}
        documents = benchmark.read(data_settings(), benchmark.tasks[name])
        return {name: doc for doc in reversed(documents) for name in benchmark.video_names(doc)}

    def _task(self, doc: Doc) -> Task:
        """Return the task of a document if the protocol has a task's name, else the protocol's.

        Only a task's own captions have the task's fields in their signature, such as the prompt.
        """
        task = self.benchmark.tasks.get(self.protocol.name)
        if task is None or any(doc.get(name) != value for name, value in task.fields.items()):
            return self.protocol.task
        return task


def in_order(submitted: Iterable[tuple[int, Callable[[], T]]], most_ahead: int) -> Iterator[T]:
    """Yield what is waited for, in order; so much, by the numbers, is submitted ahead of it."""
    pending: deque[tuple[int, Callable[[], T]]] = deque()
    n_ahead = 0
    for n, wait in submitted:
        pending.append((n, wait))
        n_ahead += n
        while pending and n_ahead > most_ahead:
            n_done, first = pending.popleft()
            yield first()
            n_ahead -= n_done
    for _, wait in pending:
        yield wait()


def left_s(until_s: float | None) -> float | None:
    """Return seconds until a time of :func:`time.monotonic`, >= 0; ``None`` without an end."""
    return None if until_s is None else max(0.0, until_s - time.monotonic())


class _SharedEngine:
    """An engine that is closed when the last scorer lets go of it."""

    def __init__(self, config: EngineConfig, purse: Purse | None) -> None:
        self.config = config
        self.purse = purse or Purse()
        self.engine = Engine(replace(config, purse=self.purse))
        self.pid = os.getpid()
        """A forked child makes its own: the engine's thread stays in the parent."""
        weakref.finalize(self, self.engine.close)

    def stopped(self, model: str) -> str | None:
        """Return why nothing more is asked of a model, ``None`` if it is."""
        if self.engine.defect is not None:
            return f"judging ended after an internal error: {self.engine.defect}"
        return next(filter(None, (self.engine.stopped(model, shown) for shown in SHOWN)), None)


_LOCK: Final = threading.RLock()
_OPEN: Final[weakref.WeakSet[_SharedEngine]] = weakref.WeakSet()
"""Engines of this process, one per endpoint and settings; under the lock, like who shares one."""
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


def _join(config: EngineConfig, model: str) -> _SharedEngine:
    """Return the engine of these settings, which is opened if none is open.

    One that a wrong key has stopped, say, is not shared any more; the cost limit stays one.
    """
    purse = config.purse
    for shared in _OPEN:
        is_same = replace(shared.config, progress=config.progress) == config
        if is_same and shared.pid == os.getpid():
            stopped = shared.stopped(model)
            if stopped is None or stopped.startswith(LIMIT_REACHED):
                return shared
            purse = shared.purse
    shared = _SharedEngine(config, purse)
    _OPEN.add(shared)
    return shared


class _InTime:
    """Chains whose results so far can be had when time is over.

    What is on the wire then is answered and stored all the same. Nothing more is sent: neither what
    waits for its turn, nor a second step, nor what is to be sent again.
    """

    def __init__(self, chains: Sequence[Chain[Sequence[Any]]], until_s: float | None) -> None:
        self._until_s = until_s
        self.chains = [partial(self._run, index, chain) for index, chain in enumerate(chains)]
        self.results: list[Sequence[Any]] = [()] * len(chains)
        """Result of each chain so far, empty if there is none."""
        self.is_late = False
        """True if a chain was too late, and gave nothing."""

    async def _run(self, index: int, chain: Chain[Sequence[Any]], ask: Ask) -> Sequence[Any]:
        is_late = False

        async def ask_in_time(request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
            nonlocal is_late
            asked = await ask(replace(request, until_s=self._until_s), read)
            is_late = is_late or asked.reason == OVER
            return asked

        result = await chain(ask_in_time)
        if is_late and any(judgement.reason is not None for judgement in result):
            self.is_late = True
            return ()
        self.results[index] = result
        return result


def _seen(frames: Any) -> list[Any]:  # noqa: ANN401 - a column of pictures
    """Return what is seen of each clip; not converted, as it may be large."""
    if isinstance(frames, (str, bytes, Path)):
        raise DataError(f"frames: expected a list with one value for each caption, got {frames!r}")
    return [None if is_missing(value) else value for value in frames]
