"""Rewards of captioners in reinforcement learning: a caption's own score by a benchmark."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric
from lmms_eval_captions.lmms_eval_tasks.scorer.batch_rewards import (
    BatchRewards,
    LatestRewards,
    MissingRewards,
)
from lmms_eval_captions.lmms_eval_tasks.scorer.evaluation_clips import (
    OFFICIAL,
    Evaluation,
    evaluation_clips,
    facts_of,
)
from lmms_eval_captions.lmms_eval_tasks.scorer.keywords import without_keys
from lmms_eval_captions.lmms_eval_tasks.scorer.rollouts import (
    COLUMNS,
    Column,
    Rollout,
    rollout_of,
    row_of_verl,
    rows_of,
)
from lmms_eval_captions.lmms_eval_tasks.scorer.scorer import CaptionScore, Scorer, in_thread

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from lmms_eval_captions.lmms_eval_tasks.scorer.keywords import ScorerSettings

Missing = Literal["mean"] | None
"""What a completion has that has no verdict: the mean of others, or nothing."""
_NO_QUESTIONS: Final = (
    "expected a column of questions, called as columns= says, or clips of the benchmark's own"
)
_NO_VALUE: Final = "by its verdicts the metric has no value"
_MOST_BUDGET_S: Final = 86_400
_LOOK_S: Final = 0.05
"""How often it is looked whether other rollouts have rewards."""


@dataclass(frozen=True, slots=True)
class _HandedIn:
    """Completions that the judge is asked about."""

    clip_ids: Sequence[str]
    waits: Sequence[Callable[[], CaptionScore]]
    stopped: str | None
    """Why the judge could not be asked when they were handed in, ``None`` if it could."""


class CaptionReward:
    """A reward function for trainers: TRL's signature by calling it, verl's by three methods.

    >>> with CaptionReward("vdc", judge="lexical", evaluation=None) as reward:  # doctest: +SKIP
    ...     questions = [{"question": "Who runs?", "answer": "A dog"}]
    ...     reward(["Describe."], ["A dog runs."], clip_id=["a"], questions=[questions])
    [1.0]

    Any thread; each process has a judge engine of its own, also where it is forked or unpickled. A
    copy in the same process is the object itself. Keys that are given as keywords are not pickled:
    another process has them in its environment.

    Args:
        protocol: As a :class:`.Scorer`'s.
        metric: One of the protocol's, by default its headline. Each fact earns its own part.
        normalise: Whether the metric's lowest value is mapped to 0 and its highest to 1, a metric
            of which less is better the other way round; else the value is the metric's own.
        time_budget_s: Seconds for a whole batch, > 0: what is answered by then counts, what is
            under way is answered and stored, nothing more is sent. By default all is waited for.
        missing: Reward of a completion without a verdict: the mean of the batch's other completions
            of its clip, else of the batch; or ``None``, which TRL leaves out.
        evaluation: Clips that are refused: tasks and groups of lmms-eval's, or files of clip ids
            (``.txt``, ``.jsonl``, ``.parquet``). By default those of the protocol's own benchmark,
            ``None`` for none.
        columns: What the data set's columns are called that are called otherwise: ``clip_id``,
            ``questions``, ``references``, ``reference``, ``video``.
        settings: As a :class:`.Scorer`'s.

    Raises:
        SettingsError: If a setting cannot be used.
        DataError: If the evaluation set cannot be read.
    """

    def __init__(
        self,
        protocol: str,
        *,
        metric: str | None = None,
        normalise: bool = True,
        time_budget_s: float | None = None,
        missing: Missing = "mean",
        evaluation: Evaluation = OFFICIAL,
        columns: Mapping[Column, str] | None = None,
        **settings: Unpack[ScorerSettings],
    ) -> None:
        self._made_by = partial(
            CaptionReward,
            protocol,
            metric=metric,
            normalise=normalise,
            time_budget_s=time_budget_s,
            missing=missing,
            evaluation=evaluation,
            columns=columns,
            **cast("ScorerSettings", without_keys(settings)),
        )
        # Not a partial, whose text would show a key.
        self._open: Callable[[], Scorer] = lambda: Scorer(protocol, **settings)
        self._lock = threading.Lock()
        self._pid, self._scorer = os.getpid(), self._open()
        self.metric = self._scorer.headline if metric is None else metric
        self.normalise = normalise
        self.time_budget_s = time_budget_s
        self.missing = missing
        self._columns = dict(columns or {})
        self._check()
        self.evaluation = evaluation_clips(evaluation, self._scorer.protocol, data_settings())
        """The clips that are refused."""
        self.__name__ = self.metric
        """What trainers log it as."""
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[], CaptionReward], tuple[()]]:
        return self._made_by, ()

    def __deepcopy__(self, _memo: object) -> CaptionReward:
        return self

    def __copy__(self) -> CaptionReward:
        return self

    def __call__(
        self, prompts: Sequence[object], completions: Sequence[object], **columns: object
    ) -> list[float | None]:
        """The rewards of completions, in their order, as TRL asks for them.

        Args:
            prompts: Not looked at.
            completions: Captions, or conversations whose last message of the assistant's is one.
            columns: Columns of the data set, shape (n_completions,); what else TRL hands over. Its
                ``log_metric`` is told the share of completions without a verdict.

        Returns:
            In [0, 1] unless ``normalise=False``, higher is better; ``None`` where there is no
            verdict and ``missing`` is ``None``, or none in the whole batch.

        Raises:
            DataError: If a clip is of the evaluation set, or what is to be asked about it is not
                of the official form; nothing is asked then.
            JudgeStoppedError: If nothing can be scored, since the judge cannot be asked.
        """
        del prompts
        until_s = self._until_s()
        rows = rows_of(columns, self._columns, len(completions))
        batch = self._scored(rows, completions, until_s)
        log_metric = columns.get("log_metric")
        if callable(log_metric) and batch.rewards:
            log_metric(f"{self.__name__}/missing", batch.n_missing / len(batch.rewards))
            log_metric(f"{self.__name__}/unscored", batch.n_unscored / max(1, batch.n_questions))
        return batch.filled() if self.missing == "mean" else list(batch.rewards)

    @property
    def asynchronous(self) -> Callable[..., Awaitable[list[float | None]]]:
        """The same as a coroutine function, which TRL runs beside others of its kind."""

        async def reward(
            prompts: Sequence[object], completions: Sequence[object], **columns: object
        ) -> list[float | None]:
            return await in_thread(self, prompts, completions, **columns)

        reward.__name__ = self.__name__
        return reward

    def compute_scores(
        self,
        data_sources: Sequence[object],
        solution_strs: Sequence[str],
        ground_truths: Sequence[object],
        extra_infos: Sequence[object] | None = None,
        **_: object,
    ) -> list[float]:
        """The rewards of a batch, as the batch reward manager of verl up to 0.8 asks for them.

        Args:
            data_sources: Not looked at.
            solution_strs: Captions, shape (n,).
            ground_truths: Questions, or references, of each clip, as lists or JSON; or mappings
                with what ``extra_infos`` may have.
            extra_infos: Mappings with ``clip_id``, and ``questions``, ``references`` or ``video``
                where these are not the ground truth.

        Raises:
            SettingsError: If ``missing`` is ``None``: verl takes numbers alone.
            DataError: As calling it.
            JudgeStoppedError: If there is not a single verdict.
        """
        del data_sources
        until_s = self._until_s()
        infos = [None] * len(solution_strs) if extra_infos is None else extra_infos
        rows = [
            self._renamed(row_of_verl(truth, info, asks=self._asks))
            for truth, info in zip(ground_truths, infos, strict=True)
        ]
        self._require_mean()
        return list(map(self._number, self._scored(rows, solution_strs, until_s).filled()))

    def compute_score(
        self,
        data_source: object,
        solution_str: str,
        ground_truth: object,
        extra_info: object = None,
        **_: object,
    ) -> float:
        """The reward of one rollout, as verl's other reward managers ask for it.

        There is no batch: one without a verdict has the mean of the clip's latest rewards, else of
        all latest ones; where there are none yet, those are waited for that are under way.
        Arguments and errors are those of :meth:`compute_scores`.
        """
        del data_source
        until_s, latest = self._until_s(), self._rollouts()
        number = latest.begin()
        try:
            clip_id, reward = self._of_one(
                self._hand_in_one(solution_str, ground_truth, extra_info, until_s)
            )
            others = latest.end(number)
            while reward is None and latest.is_worth_waiting(others) and _left_s(until_s) != 0.0:
                time.sleep(_LOOK_S)
        finally:
            latest.end(number)
        return self._number(latest.mean_of(clip_id) if reward is None else reward)

    async def acompute_score(
        self,
        data_source: object,
        solution_str: str,
        ground_truth: object,
        extra_info: object = None,
        **_: object,
    ) -> float:
        """As :meth:`compute_score`, for reward managers that await it, as verl's from 0.7 can.

        Any number may be awaited at once. The time budget is each rollout's own.
        """
        del data_source
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[None] = loop.create_future()

        def on_settled() -> None:
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(_settle, settled)

        until_s, latest = self._until_s(), self._rollouts()
        number = latest.begin()
        try:
            handed_in = await asyncio.to_thread(
                self._hand_in_one, solution_str, ground_truth, extra_info, until_s, on_settled
            )
            await asyncio.wait([settled], timeout=_left_s(until_s))
            clip_id, reward = self._of_one(handed_in)
            others = latest.end(number)
            while reward is None and latest.is_worth_waiting(others) and _left_s(until_s) != 0.0:
                await asyncio.sleep(_LOOK_S)
        finally:
            latest.end(number)
        return self._number(latest.mean_of(clip_id) if reward is None else reward)

    @property
    def scorer(self) -> Scorer:
        """What scores the captions of this process."""
        self._of_this_process()
        return self._scorer

    def close(self) -> None:
        """Stop: nothing more is sent, and everything answered is on disk."""
        if self._pid == os.getpid():
            self._scorer.close()

    def _of_this_process(self) -> None:
        """Begin anew in a forked child: the engine's thread, and those that wait, stayed behind."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._scorer = os.getpid(), self._open()
                self._begin()

    def _rollouts(self) -> LatestRewards:
        """What is known of the rollouts of this process."""
        self._of_this_process()
        return self._latest

    def _begin(self) -> None:
        """Nothing is known of other rollouts yet."""
        words = "which count as the mean of others" if self.missing else "which are left out"
        self._missing = MissingRewards(self.__name__, words)
        self._missing_alone = MissingRewards(
            self.__name__, "it has the mean of the latest", alone=True
        )
        self._latest = LatestRewards()

    @property
    def _metric(self) -> Metric:
        return self._scorer.benchmark.metrics[self.metric]

    @property
    def _asks(self) -> bool:
        return "questions" in self._scorer.protocol.needs

    def _check(self) -> None:
        if self.metric not in self._scorer.metrics:
            raise SettingsError(
                f"metric: expected one of {', '.join(self._scorer.metrics)}, got {self.metric!r}"
            )
        if not self.normalise and not self._metric.higher_is_better:
            raise SettingsError(
                f"metric: less of {self.metric} is better, and a reward is maximised: leave "
                "normalise=True, which turns it round"
            )
        if self.missing not in ("mean", None):
            raise SettingsError(f"missing: expected 'mean' or None, got {self.missing!r}")
        budget_s = self.time_budget_s
        is_number = isinstance(budget_s, int | float) and not isinstance(budget_s, bool)
        if budget_s is not None and not (is_number and 0 < budget_s <= _MOST_BUDGET_S):
            raise SettingsError(
                f"time_budget_s: expected seconds above 0, at most {_MOST_BUDGET_S:,}, got "
                f"{budget_s!r}"
            )
        unknown = sorted(set(self._columns) - set(COLUMNS))
        if unknown:
            raise SettingsError(f"columns: expected names of {', '.join(COLUMNS)}, got {unknown}")

    def _require_mean(self) -> None:
        if self.missing is None:
            raise SettingsError("missing: verl takes numbers alone, expected 'mean', got None")

    def _renamed(self, row: dict[str, object]) -> dict[str, object]:
        return {**row, **{name: row[own] for name, own in self._columns.items() if own in row}}

    def _until_s(self) -> float | None:
        """When the time is over of what is asked for now."""
        return None if self.time_budget_s is None else time.monotonic() + self.time_budget_s

    def _hand_in_one(
        self,
        caption: str,
        ground_truth: object,
        extra_info: object,
        until_s: float | None,
        on_settled: Callable[[], None] = lambda: None,
    ) -> _HandedIn:
        """Hand in a rollout that comes alone."""
        self._require_mean()
        row = self._renamed(row_of_verl(ground_truth, extra_info, asks=self._asks))
        return self._hand_in([row], [caption], until_s, on_settled)

    def _of_one(self, handed_in: _HandedIn) -> tuple[str, float | None]:
        """Clip and reward of a rollout that came alone."""
        batch = self._batch(handed_in)
        self._missing_alone.see(batch, before=handed_in.stopped, now=self._scorer.stopped)
        return batch.clip_ids[0], batch.rewards[0]

    def _scored(
        self,
        rows: Sequence[dict[str, object]],
        completions: Sequence[object],
        until_s: float | None,
    ) -> BatchRewards:
        """The rewards of completions; raises where training would go on with nothing."""
        handed_in = self._hand_in(rows, completions, until_s)
        batch = self._batch(handed_in)
        self._missing.see(batch, before=handed_in.stopped, now=self._scorer.stopped)
        return batch

    def _hand_in(
        self,
        rows: Sequence[dict[str, object]],
        completions: Sequence[object],
        until_s: float | None,
        on_settled: Callable[[], None] = lambda: None,
    ) -> _HandedIn:
        """Have the judge asked; never waits for it."""
        scorer = self.scorer
        stopped = scorer.stopped
        cache = scorer.settings.cache
        rollouts = [
            rollout_of(row, completion, scorer.protocol, cache)
            for row, completion in zip(rows, completions, strict=True)
        ]
        documents = [self._document(scorer, rollout) for rollout in rollouts]
        waits = [
            scorer.submit(document, rollout.caption, until_s=until_s, on_settled=on_settled)
            for document, rollout in zip(documents, rollouts, strict=True)
        ]
        return _HandedIn([rollout.clip.clip_id for rollout in rollouts], waits, stopped)

    def _batch(self, handed_in: _HandedIn) -> BatchRewards:
        """The rewards of what was handed in, waited for."""
        scores = [wait() for wait in handed_in.waits]
        self._require_available(scores)
        rewards = list(map(self._reward, scores))
        reasons = Counter[str]()
        for score, reward in zip(scores, rewards, strict=True):
            reasons.update(score.reasons or ({_NO_VALUE: 1} if reward is None else {}))
        kept = [score for score, reward in zip(scores, rewards, strict=True) if reward is not None]
        batch = BatchRewards(
            handed_in.clip_ids,
            rewards,
            reasons,
            n_questions=sum(score.n_questions for score in kept),
            n_unscored=sum(score.n_unscored for score in kept),
        )
        self._latest.extend(batch.scored)
        return batch

    def _document(self, scorer: Scorer, rollout: Rollout) -> Mapping[str, Any]:
        """A rollout's clip as a document, which is none of the evaluation set's."""
        try:
            document = scorer.document(rollout.clip)
        except DataError as error:
            if rollout.clip.questions is None and self._asks:
                raise DataError(f"{_NO_QUESTIONS} ({error})") from error
            raise
        if len(self.evaluation):
            names = [rollout.clip.clip_id, *([rollout.video] if rollout.video else [])]
            self.evaluation.require_other(names, facts_of(scorer.benchmark.questions(document)))
        return document

    def _require_available(self, scores: Sequence[CaptionScore]) -> None:
        reason = self._metric.unavailable([score.record for score in scores])
        if reason is not None:
            raise SettingsError(f"metric: {self.metric} cannot be computed here: {reason}")

    def _reward(self, score: CaptionScore) -> float | None:
        value, metric = score.scores[self.metric], self._metric
        if isnan(value):
            return None
        if not self.normalise:
            return value
        share = (value - metric.lowest) / metric.span
        return share if metric.higher_is_better else 1.0 - share

    def _number(self, reward: float | None) -> float:
        if reward is None:
            raise JudgeStoppedError(
                "expected a verdict on at least one completion, to have the others' mean of, got "
                "none; see the warning before this for why"
            )
        return reward


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _left_s(until_s: float | None) -> float | None:
    """Seconds until then, >= 0; ``None`` where there is no end."""
    return None if until_s is None else max(0.0, until_s - time.monotonic())
