"""Records of a caption judged by CapQuiz."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_captions.judges.verdict import QuizJudgement
from lmms_eval_captions.lmms_eval_tasks.breakdown import scored_item
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecords
from lmms_eval_captions.metrics.capf1 import capf1
from lmms_eval_captions.metrics.capp import capp
from lmms_eval_captions.metrics.capr import capr


@dataclass(frozen=True, slots=True)
class CapQuizRecords(CaptionRecords[QuizJudgement]):
    """One judged caption of CapQuiz."""

    categories: Sequence[str]
    """Type of each question."""
    domain: str
    """Domain of the video."""

    def capf1(self) -> Record:
        """Item of ``capf1``: ``score`` in [0, 1], all that the breakdown needs, every judgement."""
        return {
            **scored_item(self, capf1),
            "categories": list(self.categories),
            "domain": self.domain,
            "judgements": self.judgements(),
        }

    def capp(self) -> Record:
        """Item of ``capp``: ``score`` in [0, 1], left out where no answer was determinate."""
        return scored_item(self, capp)

    def capr(self) -> Record:
        """Item of ``capr``: ``score`` in [0, 1]."""
        return scored_item(self, capr)
