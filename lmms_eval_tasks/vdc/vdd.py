"""VDC with VDD: a judge grades the whole caption against the whole reference caption."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, get_args

from lmms_eval_captions.judges.protocols.vdc import Comparison, judge_comparison, silent_description
from lmms_eval_captions.judges.verdict import Match, WholeJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Metric,
    asking,
    over_videos,
    silence,
)
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC, tasks_of_aspects
from lmms_eval_captions.lmms_eval_tasks.vdc.references import REFERENCES, documents
from lmms_eval_captions.metrics.vdc import vdc_acc, vdc_score

_NOTE: Final = (
    "AuroraCap prints no prompt for VDD: the one that is asked here (vdc_vdd.yaml) is ours, so "
    "that these numbers compare with each other and not with its Tables 6 and 8"
)


_VDC: Final[Any] = VDC
"""Without its types of question and judgement, which ``VDD`` replaces."""

VDD: Final[Benchmark[Comparison, WholeJudgement]] = replace(
    _VDC,
    probe_file=REFERENCES,
    tasks=tasks_of_aspects("vdc_vdd", ("vdc_vdd",), note=_NOTE, default_prompt="ours"),
    read=documents,
    questions=lambda doc: [Comparison(doc["reference"])],
    ask=asking(judge_comparison),
    silent=silence(silent_description),
    judge_check=JudgeCheck(
        tell=lambda question: question.reference,
        credit=lambda judgement: (
            None if judgement.verdict is None else float(judgement.verdict == "yes")
        ),
        said=lambda _question, judgement: judgement.verdict,
        silent=frozenset({"no"}),
    ),
    metrics={
        "vdd_acc": Metric(
            score=over_videos(vdc_acc),
            ratios=of_means(lambda verdict: float(verdict == "yes")),
            labels=get_args(Match),
        ),
        "vdd_score": Metric(
            score=over_videos(vdc_score),
            scale=1.0,
            highest=5.0,
            ratios=of_means(),
            values=lambda judgement: (judgement.score,),
            field="scores",
        ),
    },
    headline="vdd_acc",
    headline_means="% of captions that as a whole say what the reference caption says",
    verification=None,
    grading=None,
    paper_table=None,
    question_file=None,
    groups=lambda _doc, _question, _judgement: {},
    sections={},
    output_tokens={"vdc_vdd": 14},
)
"""A task for each aspect; accuracy and score as VDCscore has them, of one grade for each video."""
