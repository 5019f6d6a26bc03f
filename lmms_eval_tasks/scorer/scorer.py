"""Scores captions as the tasks do: the same prompts, readers, stored replies and arithmetic."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from lmms_eval_captions.judges.endpoint.cost import load_prices, require_price
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import SHOWN
from lmms_eval_captions.judges.errors import (
    INSTALL_EVAL,
    DataError,
    JudgeStoppedError,
    SettingsError,
)
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, Frames, shown
from lmms_eval_captions.lmms_eval_tasks.judged_caption import (
    Judged,
    caption_digest,
    caption_score,
    record_of,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scorer.answers_in_time import OVER, AnswersInTime
from lmms_eval_captions.lmms_eval_tasks.scorer.columns import (
    caption_of,
    is_missing,
    listed,
    name_of_clip,
    references_of,
    without_nulls,
)
from lmms_eval_captions.lmms_eval_tasks.scorer.keywords import read_keywords
from lmms_eval_captions.lmms_eval_tasks.scorer.protocols import documents_of, protocol_of
from lmms_eval_captions.lmms_eval_tasks.scoring import signature_of, values_of
from lmms_eval_captions.lmms_eval_tasks.session import (
    engine_config,
    require_judge,
    settled,
    without_judge,
)
from lmms_eval_captions.model_wrappers.no_caption import NoCaption

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lmms_eval_captions.lmms_eval_tasks.scorer.keywords import ScorerSettings

P = ParamSpec("P")
T = TypeVar("T")

_CLOSED: Final = "this scorer is closed; make another one"
_AHEAD: Final = 16
"""Questions that are handed in and not answered, as a multiple of the requests in flight."""
_LEAST_AHEAD: Final = 512
NO_CAPTION_GIVEN: Final = "none was given"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionScore:
    """One caption with its scores."""

    clip_id: str
    scores: Mapping[str, float]
    """Metric to the caption's own score in the metric's unit, as in lmms-eval's samples; ``nan``
    where it has none."""
    n_questions: int
    """Questions times judge runs."""
    n_unscored: int
    """Those without a verdict."""
    reasons: Mapping[str, int]
    """Why questions are unscored, to the number of them."""
    judgements: Sequence[Judgement]
    """Each question's in each judge run, run by run, with verdict and reply."""
    record: CaptionRecord
    """What the tasks keep of a caption."""


class Scorer:
    """Scores captions by one protocol. Close it, or use it as a context manager; any thread.

    >>> with Scorer("vdc", judge="lexical") as scorer:  # doctest: +SKIP
    ...     scores = scorer.score(["A dog runs."], [[{"question": "Who runs?", "answer": "A dog"}]])
    ...     scores[0].scores["vdc_acc"]
    100.0

    Args:
        protocol: ``vdc``, ``vidcapbench``, ``vcapsbench``, ``capquiz``, ``gveval_ref_free``,
            ``gveval_ref_only``, ``gveval_combined``, ``vllm_judge``; or a task of lmms-eval's,
            such as ``vdc_camera``, for captions of the benchmark's own videos.
        progress: Whether to draw a bar of the questions.
        spent_usd: US dollars of ``max_cost_usd`` that are spent already.
        settings: In the place of the environment's.

    Raises:
        SettingsError: If a setting cannot be used, or the judge not be asked.
        JudgeStoppedError: If there is a limit of cost, and the judge's price is not known.
    """

    def __init__(
        self,
        protocol: str,
        *,
        progress: bool = False,
        spent_usd: float = 0.0,
        **settings: Unpack[ScorerSettings],
    ) -> None:
        self.protocol = protocol_of(protocol)
        self.settings = read_keywords(settings)
        self.benchmark = self.protocol.benchmark
        self.config = self.benchmark.judge_config(self.settings)
        require_judge(self.config, self.settings)
        if "video" in self.protocol.needs and find_spec("av") is None:
            raise SettingsError(
                f"{protocol}: reading videos needs av, which is not installed. Run: {INSTALL_EVAL}"
            )
        if self.config.asks_endpoint and self.settings.max_cost_usd is not None:
            prices = load_prices(self.settings.prices)
            require_price(self.config.model, prices, self.settings.endpoint.urls)
        self._progress = progress
        self._spent_usd = spent_usd
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._is_closed = False
        self._usage = Totals()

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
        """The metric that stands for the others."""
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
        """The scores of captions, in their order.

        Args:
            captions: Shape (n_captions,), unchanged; one without a word counts as in the tasks,
                ``None`` is one that is not there: it is unscored.
            questions: Of each caption, as the benchmark's official files have them; without, those
                of the benchmark about ``clip_ids``.
            frames: Of each caption: the file of a video, or frames in order of time.
            references: Reference captions of each.
            clip_ids: Names of the clips, by default their positions.

        Raises:
            ValueError: If these are not of one length.
            DataError: If a clip's questions are not of the official form, or what the protocol
                needs is not there; the text names the clip. Nothing is asked then.
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
        """As :meth:`score`, for event loops, which it leaves free; cancelled, it asks no more."""
        return await in_thread(
            self.score,
            captions,
            questions,
            frames,
            references=references,
            clip_ids=clip_ids,
        )

    def stream(self, clips: Iterable[tuple[Clip, str | None]]) -> Iterator[CaptionScore]:
        """Scores of any number of captions, in their order, few of which are in memory at once.

        Args:
            clips: Each clip with its caption; asked for as the judge gets on.

        Raises:
            DataError: As :meth:`score`, when the clip's turn comes.
        """
        pending: deque[tuple[int, Callable[[], CaptionScore]]] = deque()
        n_ahead, most = 0, max(_LEAST_AHEAD, _AHEAD * self.settings.concurrency)
        call = _CALL.get()
        for clip, caption in clips:
            if call is not None and call.is_cancelled:
                return
            doc = self.document(clip)
            n_questions = max(1, len(self.benchmark.questions(doc)) * self.config.runs)
            pending.append((n_questions, self.submit(doc, caption)))
            n_ahead += n_questions
            while n_ahead > most:
                n_done, wait = pending.popleft()
                yield wait()
                n_ahead -= n_done
        for _, wait in pending:
            yield wait()

    def document(self, clip: Clip) -> Doc:
        """A clip as a document of the benchmark.

        Raises:
            DataError: If it cannot be one; the text names the clip.
        """
        is_own = clip.questions is not None or clip.references or clip.frames is not None
        official = None if is_own else self._official.get(clip.clip_id)
        if official is not None:
            return official
        try:
            return self.protocol.document_of(clip)
        except DataError as error:
            raise DataError(f"clip {clip.clip_id!r}: {error}") from error

    def submit(
        self,
        doc: Doc,
        caption: str | None,
        *,
        until_s: float | None = None,
        on_settled: Callable[[], None] = lambda: None,
    ) -> Callable[[], CaptionScore]:
        """Hand a caption in; never waits.

        Args:
            doc: The clip, see :meth:`document`.
            caption: Candidate caption, ``None`` where there is none.
            until_s: When, by :func:`time.monotonic`, what is answered counts and the rest is
                unscored; by default all is waited for.
            on_settled: Called once all is there, from any thread: no wait is needed then.

        Returns:
            A function that waits for the scores.
        """
        text = NoCaption(NO_CAPTION_GIVEN) if caption is None else caption
        questions = self.benchmark.questions(doc)
        wait = self._judged(text, questions, until_s, on_settled)

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

        return scored

    def totals(self, scores: Iterable[CaptionScore]) -> dict[str, float]:
        """Each metric over captions, as the task's: ``nan`` where too much is unscored."""
        records = [score.record for score in scores]
        return values_of(self.benchmark, records, max_unscored=self.settings.max_unscored)

    def signature(self, scores: Iterable[CaptionScore]) -> str:
        """What the scores were computed with, as the tasks print it."""
        return signature_of([score.record for score in scores])

    @property
    def usage(self) -> Totals:
        """What was asked of the judge so far, and where replies came from."""
        with self._lock:
            return self._usage if self._engine is None else self._engine.totals()

    @property
    def spent_usd(self) -> float:
        """US dollars of the limit of cost that are billed or may be, with those of before."""
        with self._lock:
            return self._spent_usd if self._engine is None else self._engine.spent_usd

    @property
    def stopped(self) -> str | None:
        """Why nothing more is asked of the judge, ``None`` where it is."""
        with self._lock:
            engine, is_closed = self._engine, self._is_closed
        if is_closed:
            return _CLOSED
        if engine is None:
            return None
        if engine.defect is not None:
            return f"judging ended after an internal error: {engine.defect}"
        reasons = (engine.stopped(self.config.model, shown) for shown in SHOWN)
        return next(filter(None, reasons), None)

    def close(self) -> None:
        """Stop: nothing more is sent, and everything answered is on disk."""
        with self._lock:
            engine, self._is_closed = self._engine, True
        if engine is not None:
            engine.close()
            with self._lock:
                self._usage, self._spent_usd = engine.totals(), engine.spent_usd
                self._engine = None

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
                clip_id=name_of_clip(clip_id),
                questions=None if questions is None else _asked(asked),
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
        self,
        caption: str,
        questions: Sequence[Any],
        until_s: float | None,
        on_settled: Callable[[], None],
    ) -> Callable[[], Judged[Any]]:
        unasked: Judged[Any] | None = without_judge(
            caption, self.config, lambda config: self.benchmark.silences(questions, config)
        )
        if unasked is not None:
            on_settled()
            return lambda: unasked
        chains = self.benchmark.chains(questions, caption, self.config)
        answers = None if until_s is None else AnswersInTime(chains, until_s)
        future: Future[list[Sequence[Any]]] = self._open().submit(
            chains if answers is None else answers.chains, about=caption_digest(caption)
        )
        future.add_done_callback(lambda _: on_settled())
        if (call := _CALL.get()) is not None:
            call.add(future)

        def result() -> Judged[Any]:
            left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            try:
                judged, is_late = future.result(left_s), answers is not None and answers.is_late
            except FutureTimeoutError:
                judged, is_late = [] if answers is None else answers.so_far(), True
            return Judged(judged, self.config, None, late=OVER if is_late else None)

        return settled(
            result,
            replace_reason=lambda reason: Judged((), self.config, reason),
            is_settled=future.done,
            settings=self.settings,
        )

    def _open(self) -> Engine:
        """The engine, made at the first caption that is asked about."""
        with self._lock:
            if self._is_closed:
                raise JudgeStoppedError(_CLOSED)
            if self._engine is None:
                config = engine_config(self.settings)
                self._engine = Engine(
                    replace(
                        config,
                        progress=self._progress,
                        spent_usd=self._spent_usd,
                        outage_is_final=False,
                    )
                )
                # A scorer that is dropped ends its engine's threads and connections, too.
                weakref.finalize(self, self._engine.close)
            return self._engine

    @cached_property
    def _official(self) -> Mapping[str, Doc]:
        """Documents of the task's own videos."""
        return documents_of(self.protocol, data_settings())

    def _task(self, doc: Doc) -> Task:
        """The task whose document it is, where a protocol has a task's name, else the protocol's.

        What only a task's own captions have in their signature, such as their prompt, is not said
        of others.
        """
        task = self.benchmark.tasks.get(self.protocol.name)
        if task is None or any(doc.get(name) != value for name, value in task.fields.items()):
            return self.protocol.task
        return task


class _Call:
    """What one call of :func:`in_thread` waits for."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._futures: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def add(self, future: Future[Any]) -> None:
        """Cancel a future with the call."""
        with self._lock:
            if self.is_cancelled:
                future.cancel()
            else:
                self._futures.add(future)
        future.add_done_callback(self._futures.discard)

    def cancel(self) -> None:
        """Cancel all futures, and those that are still added."""
        with self._lock:
            self.is_cancelled = True
            futures = list(self._futures)
        for future in futures:
            future.cancel()


_CALL: Final[ContextVar[_Call | None]] = ContextVar("_CALL", default=None)
"""The call that this context works for."""


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that scores captions in a thread; if cancelled, nothing more is asked."""
    call = _Call()
    _CALL.set(call)  # the thread gets a copy of this context
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except asyncio.CancelledError:
        call.cancel()
        raise
    finally:
        _CALL.set(None)


def _seen(frames: Any) -> list[Any]:  # noqa: ANN401 - a column of pictures
    """What is seen of each clip; not converted, as it may be large."""
    if isinstance(frames, (str, bytes, Path)):
        raise DataError(f"frames: expected a list with one value for each caption, got {frames!r}")
    return [None if is_missing(value) else value for value in frames]


def _asked(value: object) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DataError(
            f"questions: expected a list of questions for each caption, got {shown(value)}"
        )
    return [without_nulls(question) for question in value]
