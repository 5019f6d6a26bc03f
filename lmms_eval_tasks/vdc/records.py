"""Per-caption records of VDC: what lmms-eval aggregates and writes into its samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import isnan
from operator import add
from typing import Any

from lmms_eval_captions.judges.verdict import MatchJudgement, Usage
from lmms_eval_captions.lmms_eval_tasks.judging import (
    Judged,
    Record,
    head_of,
    report_usage,
    signature_of,
)
from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos


@dataclass(frozen=True, slots=True)
class CaptionRecords:
    """One judged caption."""

    task: str
    video_id: str
    n_pairs: int
    """Questions of the video."""
    judged: Judged[MatchJudgement]
    extras: Mapping[str, str]
    """Further fields of the signature."""

    def acc(self) -> Record:
        """Item of ``vdc_acc``: ``score`` in [0, 1], and every judgement."""
        verdicts = [[j.verdict for j in run] for run in self._runs()]
        shares = [_shares(run) for run in verdicts]
        judgements = [self._judgement(j) for j in self.judged.judgements]
        return {**self._scored(shares), "verdicts": verdicts, "judgements": judgements}

    def score(self) -> Record:
        """Item of ``vdc_score``: ``score`` in [0, 5]."""
        scores = [[j.score for j in run] for run in self._runs()]
        return {**self._scored(scores), "scores": scores}

    def rouge(self) -> Record:
        """Item of ``vdc_rouge``: ``score`` in [0, 1], and every predicted answer."""
        judgements = [self._judgement(j) for j in self.judged.judgements]
        return {**self.score(), "judgements": judgements}

    def unscored(self) -> Record:
        """Item of ``unscored``, and the head of every other item."""
        judgements = self.judged.judgements
        head = head_of(
            self.judged,
            task=self.task,
            video_id=self.video_id,
            n_questions=self.n_pairs * len(self._runs()),
            n_scored=sum(judgement.reason is None for judgement in judgements),
            **self.extras,
        )
        if judgements:
            head["reasons"] = dict(Counter(j.reason for j in judgements if j.reason is not None))
        return head

    def signature(self) -> Record:
        """Item of ``signature``."""
        head = self.unscored()
        return {"signature": signature_of([head]), **head}

    def report_usage(self) -> None:
        """Report the tokens that judging this caption took to lmms-eval."""
        if self.judged.config is not None:
            usage = reduce(add, (j.usage for j in self.judged.judgements), Usage())
            report_usage(self.task, self.judged.config.model, usage)

    def _runs(self) -> list[list[MatchJudgement]]:
        n_runs = self.judged.config.runs if self.judged.config else 1
        runs: list[list[MatchJudgement]] = [[] for _ in range(n_runs)]
        for judgement in self.judged.judgements:
            runs[judgement.run].append(judgement)
        return runs

    def _scored(self, runs: Iterable[Sequence[float | None]]) -> Record:
        """The head and, where anything was scored, the caption's ``score``."""
        score = mean_over_videos(runs)
        head = self.unscored()
        return head if isnan(score) else {"score": score, **head}

    def _judgement(self, judgement: MatchJudgement) -> Record:
        return {
            "question": judgement.question,
            "answer": judgement.answer,
            "run": judgement.run,
            "predicted_answer": judgement.predicted_answer,
            "verdict": judgement.verdict,
            "score": judgement.score,
            "reply": judgement.reply,
            "reason": judgement.reason,
            "cached": judgement.cached,
        }


def by_run(items: Sequence[Record], field: str) -> list[list[list[Any]]]:
    """Values of a field, shape (n_runs, n_videos, n_questions), in the order of the records."""
    videos: list[list[list[Any]]] = [item[field] for item in items]  # type: ignore[misc]
    n_runs = max(map(len, videos), default=0)
    return [[video[run] for video in videos if run < len(video)] for run in range(n_runs)]


def _shares(verdicts: Sequence[str | None]) -> list[float | None]:
    return [None if verdict is None else float(verdict == "yes") for verdict in verdicts]
