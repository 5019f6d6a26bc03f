"""Rewards of captioners in reinforcement learning: a caption's own score by a benchmark."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isnan
from os import PathLike, fspath
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from loguru import logger

from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip
from lmms_eval_captions.scorer.columns import (
    clip_name,
    from_json,
    plain,
    questions_of,
    references_of,
)
from lmms_eval_captions.scorer.evaluation_clips import OFFICIAL, Evaluation, EvaluationClips
from lmms_eval_captions.scorer.scorer import CaptionScore, Pending, Scorer, left_s
from lmms_eval_captions.scorer.settings import KEYS

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from lmms_eval_captions.scorer.settings import ScorerSettings

Column = Literal["clip_id", "questions", "references", "reference", "video"]
"""Columns of a data set that rewards read."""
Missing = Literal["mean"] | None
"""Reward of a completion without a verdict: the mean of others, or nothing."""
Row = dict[str, Any]
_COLUMNS: Final[tuple[Column, ...]] = get_args(Column)
_MOST_BUDGET_S: Final = 86_400
_MOST_BATCHES: Final = 3
_MOST_COMPLETIONS: Final = 16
"""Batches in a row without a single verdict, and completions in them, that end training."""
_MOST_ALONE: Final = 256
"""The same for completions that come one by one: of a hundred that are under way at once, those
without a verdict may all be the first to end."""
_N_LATEST: Final = 1024
_LOOK_S: Final = 0.05


class CaptionReward:
    """A reward function for TRL, by calling it, and for verl, by :meth:`acompute_score`.

    Thread-safe; works in forked processes. Rewards with equal settings share a judge engine. Keys
    that are given as keywords are not pickled.

    >>> with CaptionReward("vdc", judge="lexical", evaluation=None) as reward:  # doctest: +SKIP
    ...     questions = [{"question": "Who runs?", "answer": "A dog"}]
    ...     reward(["Describe."], ["A dog runs."], clip_id=["a"], questions=[questions])
    [1.0]

    Args:
        protocol: As for :class:`.Scorer`.
        metric: One of the protocol's metrics (default: its headline).
        normalise: Map the metric's lowest value to 0 and its highest to 1, the other way round if
            less is better; otherwise the reward is the metric's own value.
        time_budget_s: Seconds for a whole batch, > 0: what is answered by then counts, what is on
            its way is stored, nothing more is sent (default: wait for all).
        missing: Reward of a completion without a verdict: the mean of the batch's other completions
            of its clip, else of the batch; or ``None``, which TRL leaves out.
        evaluation: Clips that are refused: tasks and groups, or files of clip ids (``.txt``,
            ``.jsonl``, ``.parquet``). By default those of the protocol's own benchmark; ``None``
            for none.
        columns: Names of the data set's columns that differ from ``clip_id``, ``questions``,
            ``references``, ``reference``, ``video``.
        videos: Folder in which the videos lie that the data name (default: the current one).
        settings: As for :class:`.Scorer`.

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
        videos: str | Path | None = None,
        **settings: Unpack[ScorerSettings],
    ) -> None:
        arguments: Row = {
            "metric": metric,
            "normalise": normalise,
            "time_budget_s": time_budget_s,
            "missing": missing,
            "evaluation": evaluation,
            "columns": columns,
            "videos": videos,
            **{name: value for name, value in settings.items() if name not in KEYS},
        }
        self._made_by = cast("Callable[[], Self]", partial(type(self), protocol, **arguments))
        self.scorer = Scorer(protocol, videos=videos, **settings)
        """Scores the captions."""
        self.metric = self.scorer.headline if metric is None else metric
        self.normalise = normalise
        self.time_budget_s = time_budget_s
        self.missing = missing
        self._columns = dict(columns or {})
        self._check()
        self.evaluation = EvaluationClips(evaluation, self.scorer.benchmark)
        """The clips that are refused."""
        self.__name__ = self.metric
        """Name under which trainers log it."""
        self._latest: deque[tuple[str, float]] = deque(maxlen=_N_LATEST)
        """Clip and reward of the latest completions that have a reward."""
        self._n_alone = 0
        """Rollouts that come one by one and are not answered yet."""
        self._n_empty_batches = self._n_empty = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()]]:
        return self._made_by, ()

    def __call__(
        self, prompts: Sequence[object], completions: Sequence[object], **columns: object
    ) -> list[float | None]:
        """Return the rewards of completions, in their order, as TRL asks for them.

        Args:
            prompts: Not read.
            completions: Captions, or conversations whose last message of the assistant is one.
            columns: Columns of the data set, shape (n_completions,), and what else TRL hands over.
                Its ``log_metric`` gets the share of completions without a verdict.

        Returns:
            In [0, 1] unless ``normalise=False``, higher is better; ``None`` without a verdict if
            ``missing`` is ``None``, or if the whole batch has none.

        Raises:
            DataError: If a clip is of the evaluation set, its questions are not of the official
                form, or its video lies elsewhere; nothing is asked then.
            JudgeStoppedError: If nothing can be scored, since the judge cannot be asked.
        """
        del prompts
        until_s, stopped = self._until_s(), self.scorer.stopped
        rows = _rows(columns, self._columns, len(completions))
        clip_ids, pending = self._submit(rows, completions, until_s)
        scores = [wait() for wait in pending]
        rewards = self._rewards(scores)
        unscored = self._report(scores, rewards, stopped)
        log_metric = columns.get("log_metric")
        if callable(log_metric) and rewards:
            log_metric(f"{self.__name__}/missing", rewards.count(None) / len(rewards))
            log_metric(f"{self.__name__}/unscored", unscored)
        scored = self._remember(clip_ids, rewards)
        if self.missing is None:
            return rewards
        return [
            _mean_of_others(clip_id, scored) if reward is None else reward
            for clip_id, reward in zip(clip_ids, rewards, strict=True)
        ]

    async def acompute_score(
        self,
        data_source: object,
        solution_str: str,
        ground_truth: object,
        extra_info: object = None,
        **_: object,
    ) -> float:
        """Return the reward of one rollout, as verl asks for it; await any number at once.

        One without a verdict has the mean of the clip's latest rewards, else of all latest ones; if
        there are none yet, it waits for rollouts that are under way. Raises as calling it, and if
        ``missing`` is ``None``: verl takes only numbers.

        Args:
            data_source: Not read.
            solution_str: Caption.
            ground_truth: Questions or references of the clip, as a list or JSON; or a mapping with
                what ``extra_info`` may have.
            extra_info: Mapping with ``clip_id``, and ``questions``, ``references`` or ``video`` if
                these are not the ground truth.
        """
        del data_source
        if self.missing is None:
            raise SettingsError("missing: verl takes only numbers, expected 'mean', got None")
        until_s, stopped = self._until_s(), self.scorer.stopped
        row = self._row_of_verl(ground_truth, extra_info)
        self._n_alone += 1
        try:
            clip_ids, [pending] = self._submit([row], [solution_str], until_s)
            await pending.settled()
        finally:
            self._n_alone -= 1
        scores = [pending()]
        [reward] = rewards = self._rewards(scores)
        self._report(scores, rewards, stopped, is_alone=True)
        self._remember(clip_ids, rewards)
        while reward is None and not self._latest and self._n_alone and left_s(until_s) != 0.0:
            await asyncio.sleep(_LOOK_S)
        reward = _mean_of_others(clip_ids[0], list(self._latest)) if reward is None else reward
        if reward is None:
            raise JudgeStoppedError(
                "expected a verdict on at least one completion, to have the others' mean of, got "
                "none; see the warning before this for why"
            )
        return reward

    def close(self) -> None:
        """Stop: nothing more is sent, and everything answered is on disk."""
        self.scorer.close()

    def _check(self) -> None:
        if self.metric not in self.scorer.metrics:
            raise SettingsError(
                f"metric: expected one of {', '.join(self.scorer.metrics)}, got {self.metric!r}"
            )
        if not self.normalise and not self.scorer.benchmark.metrics[self.metric].higher_is_better:
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
        unknown = sorted(set(self._columns) - set(_COLUMNS))
        if unknown:
            raise SettingsError(f"columns: expected names of {', '.join(_COLUMNS)}, got {unknown}")

    def _until_s(self) -> float | None:
        return None if self.time_budget_s is None else time.monotonic() + self.time_budget_s

    def _submit(
        self, rows: Sequence[Row], completions: Sequence[object], until_s: float | None
    ) -> tuple[list[str], list[Pending]]:
        """Submit completions, once all their clips are checked; return the clips' names too."""
        captions = list(map(_text, completions))
        clips = [self._clip(row) for row in rows]
        documents = [self._document(clip, row) for clip, row in zip(clips, rows, strict=True)]
        pending = [
            self.scorer.submit(document, caption, until_s=until_s)
            for document, caption in zip(documents, captions, strict=True)
        ]
        return [clip.clip_id for clip in clips], pending

    def _clip(self, row: Row) -> Clip:
        video = row.get("video")
        name = _file_of(video)
        given = plain(row.get("clip_id"))
        clip_id = name if given is None or given == "" else clip_name(given)
        if clip_id is None:
            raise DataError(
                "expected a column clip_id, or video with the name of a file: rewards of one clip "
                "are compared with one another, and no clip may be of the evaluation set"
            )
        references = [from_json(plain(row.get(column))) for column in ("references", "reference")]
        is_seen = "video" in self.scorer.protocol.needs
        try:
            return Clip(
                clip_id=clip_id,
                questions=questions_of(row["questions"]) if "questions" in row else None,
                references=[text for value in references for text in references_of(value)],
                frames=(video if name is None else name) if is_seen else None,
                cache=self.scorer.settings.cache,
            )
        except DataError as error:
            raise DataError(f"clip {clip_id!r}: {error}") from error

    def _document(self, clip: Clip, row: Row) -> Mapping[str, Any]:
        """Return a clip as a document; the evaluation set's are refused."""
        try:
            document = self.scorer.document(clip)
        except DataError as error:
            if clip.questions is None and "questions" in self.scorer.protocol.needs:
                raise DataError(
                    "expected a column of questions, called as columns= says, or clips of the "
                    f"benchmark's own ({error})"
                ) from error
            raise
        names = [clip.clip_id, *filter(None, [_file_of(row.get("video"))])]
        self.evaluation.require_other(names, self.scorer.benchmark.questions(document))
        return document

    def _rewards(self, scores: Sequence[CaptionScore]) -> list[float | None]:
        metric = self.scorer.benchmark.metrics[self.metric]
        reason = metric.unavailable([score.record for score in scores])
        if reason is not None:
            raise SettingsError(f"metric: {self.metric} cannot be computed here: {reason}")
        rewards: list[float | None] = []
        for value in (score.scores[self.metric] for score in scores):
            share = (value - metric.lowest) / metric.span
            share = share if metric.higher_is_better else 1.0 - share
            rewards.append(None if isnan(value) else share if self.normalise else value)
        return rewards

    def _remember(
        self, clip_ids: Sequence[str], rewards: Sequence[float | None]
    ) -> list[tuple[str, float]]:
        """Return clip and reward of each completion that has a reward, and remember the latest."""
        pairs = zip(clip_ids, rewards, strict=True)
        scored = [(clip_id, reward) for clip_id, reward in pairs if reward is not None]
        self._latest.extend(scored)
        return scored

    def _report(
        self,
        scores: Sequence[CaptionScore],
        rewards: Sequence[float | None],
        stopped: str | None,
        *,
        is_alone: bool = False,
    ) -> float:
        """Log what is missing, once per batch, and return the share of unscored questions.

        Training ends if the judge had ``stopped`` before the batch and a verdict is missing, or has
        by now and all rewards are; or if all were missing several batches in a row.
        """
        n, n_missing = len(rewards), rewards.count(None)
        is_empty = n_missing == n > 0
        self._n_empty_batches = self._n_empty_batches + 1 if is_empty else 0
        self._n_empty = self._n_empty + n if is_empty else 0
        kept = [score for score, reward in zip(scores, rewards, strict=True) if reward is not None]
        n_questions = sum(score.n_questions for score in kept)
        n_unscored = sum(score.n_unscored for score in kept)
        unscored = n_unscored / max(1, n_questions)
        if not n_missing and not n_unscored:
            return unscored
        stopped = stopped or (self.scorer.stopped if is_empty else None)
        if stopped is not None:
            raise JudgeStoppedError(
                f"{n_missing} of {n} completions have no reward, and {n_unscored} of {n_questions} "
                f"questions about the others no verdict; none would have one from now on: {stopped}"
            )
        reasons = Counter[str]()
        for score, reward in zip(scores, rewards, strict=True):
            no_value = {} if reward is not None else {"the metric has no value of its verdicts": 1}
            reasons.update(score.reasons or no_value)
        why = ", ".join(f"{reason} ({number})" for reason, number in reasons.most_common(3))
        most, at_least = (_MOST_ALONE, 1) if is_alone else (_MOST_BATCHES, _MOST_COMPLETIONS)
        if self._n_empty_batches >= most and self._n_empty >= at_least:
            raise JudgeStoppedError(
                f"expected rewards, got none in {self._n_empty_batches} batches in a row: {why}; "
                "see that the judge answers, and that time_budget_s is enough"
            )
        text = f"{n_missing} of {n} completions have no verdict, they "
        if not n_missing:
            text = f"{n_unscored} of {n_questions} questions are unscored, rewards are those of "
            text += "the others"
        elif self.missing and (is_alone or not is_empty):
            text += "count as the mean of others"
        else:
            text += "are left out"
        logger.warning("{}: {}: {}", self.__name__, text, why)
        return unscored

    def _row_of_verl(self, ground_truth: object, extra_info: object) -> Row:
        """Return the row of what verl hands over with one rollout."""
        truth, info = (
            from_json(plain(ground_truth)),
            from_json(plain(extra_info)),
        )
        row = dict(info) if isinstance(info, Mapping) else {}
        if isinstance(truth, Mapping) and not {"question", "answer"} <= set(truth):
            row |= {name: value for name, value in truth.items() if value is not None}
        elif truth is not None and truth != "":
            asks = "questions" in self.scorer.protocol.needs
            row["questions" if asks else "references"] = truth
        return row | {name: row[own] for name, own in self._columns.items() if own in row}


def _mean_of_others(clip_id: str, scored: Sequence[tuple[str, float]]) -> float | None:
    """Return the mean of a clip's rewards, else of all, if there are any.

    >>> _mean_of_others("a", [("a", 1.0), ("b", 0.0)]), _mean_of_others("c", [("a", 1), ("b", 0)])
    (1.0, 0.5)
    """
    rewards = [reward for other, reward in scored if other == clip_id]
    rewards = rewards or [reward for _, reward in scored]
    return fmean(rewards) if rewards else None


def _rows(columns: Mapping[str, object], names: Mapping[Column, str], n_rows: int) -> list[Row]:
    """Return the rows of columns, with our names."""
    rows: list[Row] = [{} for _ in range(n_rows)]
    for column in _COLUMNS:
        name = names.get(column, column)
        if name not in columns:
            if column in names:
                raise ValueError(f"expected a column {name!r} of {column}, got {sorted(columns)}")
            continue
        values = columns[name]
        if not isinstance(values, Iterable) or isinstance(values, str):
            raise ValueError(  # noqa: TRY004 - it is of the wrong shape
                f"{column}: expected a list with one value for each completion, got {values!r:.80}"
            )
        values = list(values)
        if len(values) != n_rows:
            raise ValueError(
                f"{column}: expected {n_rows}, one for each completion, got {len(values)}"
            )
        for row, value in zip(rows, values, strict=True):
            row[column] = value
    return rows


def _text(completion: object) -> str | None:
    """Return the text of a completion, ``None`` if it has none.

    >>> _text([{"role": "assistant", "content": [{"type": "text", "text": "A dog."}]}])
    'A dog.'
    """
    if completion is None or isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping):
        # A message without content: the captioner has spoken, and said nothing.
        return _text(completion.get("content", completion.get("text"))) or ""
    if not isinstance(completion, Sequence):
        raise DataError(
            f"expected a completion as text, or as messages, got {type(completion).__name__}"
        )
    messages = [message for message in completion if isinstance(message, Mapping)]
    if any("role" in message for message in messages):
        said = [message for message in messages if message.get("role") == "assistant"]
        return _text(said[-1]) if said else None
    parts = [text for part in completion if (text := _text(part)) is not None]
    return "".join(parts) if parts else None


def _file_of(video: object) -> str | None:
    """Return the name of a video's file, however a table holds it; ``None`` for frames."""
    if isinstance(video, str | PathLike):
        return fspath(video)
    if isinstance(video, Mapping):  # a file that a table has not read
        return next((_file_of(video[key]) for key in ("path", "video") if video.get(key)), None)
    if isinstance(video, Sequence) and len(video) == 1:
        return _file_of(video[0])
    return None
