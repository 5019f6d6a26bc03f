"""Records of a caption judged by VCapsBench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_captions.judges.verdict import AgreementJudgement
from lmms_eval_captions.lmms_eval_tasks.breakdown import scored_item
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecords
from lmms_eval_captions.metrics.vcapsbench_ar import vcapsbench_ar
from lmms_eval_captions.metrics.vcapsbench_cr import vcapsbench_cr
from lmms_eval_captions.metrics.vcapsbench_ir import vcapsbench_ir


@dataclass(frozen=True, slots=True)
class VCapsBenchRecords(CaptionRecords[AgreementJudgement]):
    """One judged caption of VCapsBench."""

    categories: Sequence[str]
    """Category of each question."""
    n_malformed: int
    """Strings of this video that are no question."""
    n_malformed_in_file: int
    """Those of all videos, as the log says."""

    def ar(self) -> Record:
        """Item of ``ar``: ``score`` in [0, 1], all that the breakdown needs, every judgement."""
        return {
            **scored_item(self, vcapsbench_ar),
            "categories": list(self.categories),
            "n_malformed": self.n_malformed,
            "n_malformed_in_file": self.n_malformed_in_file,
            "judgements": self.judgements(),
        }

    def ir(self) -> Record:
        """Item of ``ir``: ``score`` in [0, 1], left out where the caption speaks of nothing."""
        return scored_item(self, vcapsbench_ir)

    def cr(self) -> Record:
        """Item of ``cr``: ``score`` in [0, 1]."""
        return scored_item(self, vcapsbench_cr)
