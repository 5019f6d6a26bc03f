"""Records of a caption judged by G-VEval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from lmms_eval_captions.judges.protocols.gveval_reading import ACCR
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecords
from lmms_eval_captions.metrics.gveval_expectation import gveval_expectation
from lmms_eval_captions.metrics.gveval_score import gveval_score


@dataclass(frozen=True, slots=True)
class GVevalRecords(CaptionRecords[ScoresJudgement]):
    """One judged caption of MSVD-Eval."""

    def unscored(self) -> Record:
        """As for every benchmark; the signature says what the scores were read from."""
        head = CaptionRecords.unscored(self)
        scorings = sorted({j.scoring for j in self.judged.judgements if j.scoring is not None})
        if scorings:
            head["extras"] = {**self.extras, "scoring": "+".join(scorings)}
        return head

    def dimension(self, name: str) -> Record:
        """Item of one dimension: ``score`` in [0, 100]."""
        return self._item(name, (name,))

    def avg(self) -> Record:
        """Item of ``avg``: ``score`` in [0, 100], and every judgement."""
        return {**self._item("avg", ACCR), "judgements": self.judgements()}

    def _item(self, metric: str, dimensions: Sequence[str]) -> Record:
        scores = [
            [value for judgement in run for value in expected(judgement, dimensions)]
            for run in self.by_run()
        ]
        score = gveval_score(scores)
        scored = {} if isnan(score) else {"score": score}
        return {**scored, "metric": metric, **self.unscored(), "scores": scores}


def expected(judgement: ScoresJudgement, dimensions: Sequence[str]) -> list[float | None]:
    """Expected score along each dimension, in [0, 100]; ``None`` is unscored."""
    found = [judgement.distributions.get(name) for name in dimensions]
    return [None if one is None else gveval_expectation(one) for one in found]
