"""VDC with VDD: a judge grades the whole caption against the whole reference caption."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.judges.protocols.vdc import Comparison, judge_comparison, silent_description
from lmms_eval_captions.judges.verdict import WholeJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import (
    WithReferences,
    accuracy_and_score,
    tasks_of_aspects,
)

_NOTE: Final = (
    "AuroraCap prints no prompt for VDD: the one that is asked here (vdc_vdd.yaml) is ours, so "
    "that these numbers compare with each other and not with its Tables 6 and 8"
)


class Vdd(WithReferences[Comparison, WholeJudgement]):
    """Accuracy and score as VDCscore has them, of one grade for each video."""

    tasks = tasks_of_aspects("vdc_vdd", ("vdc_vdd",), note=_NOTE, default_prompt="ours")
    metrics = accuracy_and_score("vdd")
    headline = "vdd_acc"
    headline_means = "% of captions that as a whole say what the reference caption says"
    right, missed = frozenset({"yes"}), frozenset({"no"})
    judge = staticmethod(judge_comparison)
    silent = staticmethod(lambda question, run: [silent_description(question, run)])
    judge_check = JudgeCheck(
        tell=lambda question: question.reference,
        credit=lambda judgement: (
            None if judgement.verdict is None else float(judgement.verdict == "yes")
        ),
        said=lambda _question, judgement: judgement.verdict,
        silent=frozenset({"no"}),
    )
    output_tokens = {"vdc_vdd": 14}

    def questions(self, doc: Doc) -> list[Comparison]:
        """Return the one comparison."""
        return [Comparison(doc["reference"])]


VDD: Final = Vdd()
