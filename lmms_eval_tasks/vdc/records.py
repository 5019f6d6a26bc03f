"""Records of a caption judged by VDC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from lmms_eval_captions.judges.verdict import MatchJudgement
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecords
from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos


@dataclass(frozen=True, slots=True)
class VdcRecords(CaptionRecords[MatchJudgement]):
    """One judged caption of VDC."""

    def acc(self) -> Record:
        """Item of ``vdc_acc``: ``score`` in [0, 1], and every judgement."""
        verdicts = [[j.verdict for j in run] for run in self.by_run()]
        score = self._scored([_shares(run) for run in verdicts])
        return {**score, "verdicts": verdicts, "judgements": self.judgements()}

    def score(self) -> Record:
        """Item of ``vdc_score``: ``score`` in [0, 5]."""
        scores = [[j.score for j in run] for run in self.by_run()]
        return {**self._scored(scores), "scores": scores}

    def rouge(self) -> Record:
        """Item of ``vdc_rouge``: ``score`` in [0, 1], and every predicted answer."""
        return {**self.score(), "judgements": self.judgements()}

    def _scored(self, runs: Iterable[Sequence[float | None]]) -> Record:
        """The head and, where anything was scored, the caption's ``score``."""
        score = mean_over_videos(runs)
        head = self.unscored()
        return head if isnan(score) else {"score": score, **head}


def by_run(items: Sequence[Record], field: str) -> list[list[list[Any]]]:
    """Values of a field, shape (n_runs, n_videos, n_questions), in the order of the records."""
    videos: list[list[list[Any]]] = [item[field] for item in items]  # type: ignore[misc]
    n_runs = max(map(len, videos), default=0)
    return [[video[run] for video in videos if run < len(video)] for run in range(n_runs)]


def _shares(verdicts: Sequence[str | None]) -> list[float | None]:
    return [None if verdict is None else float(verdict == "yes") for verdict in verdicts]
