"""Right verdicts of MSVD-Eval's judge on planted facts."""

from __future__ import annotations

from statistics import fmean
from typing import Final

from lmms_eval_captions.judges.protocols.gveval import GVeval
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.gveval_tasks import Comparison
from lmms_eval_captions.lmms_eval_tasks.planted_facts import Anchor, PlantedFact, Verification
from lmms_eval_captions.metrics.gveval import gveval_expectation

_TELLING: Final = ("accuracy", "completeness", "relevance")
"""Dimensions along which a caption of another video is bad; it may well be concise."""
_MIDDLE: Final = 50.0
"""Of the scale. Captions that say what the references say are rated far above it, those of another
video far below."""


def _anchor(fact: PlantedFact) -> Anchor[Comparison]:
    # Without frames: a judge that sees nothing can be verified as well.
    question = Comparison(GVeval("ref_only"), fact.references, None)
    verdict = "high" if fact.relation == "states" else "low"
    return Anchor(question, fact.short_caption, verdict)


def _rating(judgement: ScoresJudgement) -> float | None:
    """Mean expected score along the telling dimensions, in [0, 100]."""
    if not judgement.distributions:
        return None
    return fmean(gveval_expectation(judgement.distributions[name]) for name in _TELLING)


def _said(judgement: ScoresJudgement) -> str | None:
    rating = _rating(judgement)
    if rating is None:
        return None
    return "high" if rating >= _MIDDLE else "low"


VERIFICATION: Final[Verification[Comparison, ScoresJudgement]] = Verification(
    anchor=_anchor, said=_said
)
"""References and a caption of the same video, or of another one."""
