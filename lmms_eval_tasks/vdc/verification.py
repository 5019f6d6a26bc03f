"""Right verdicts of VDC's judge on planted facts."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.judges.protocols.vdc import Question
from lmms_eval_captions.judges.verdict import MatchJudgement
from lmms_eval_captions.lmms_eval_tasks.planted_facts import Anchor, PlantedFact, Verification


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    verdict = "yes" if fact.relation == "states" else "no"
    return Anchor(Question(fact.question, fact.truth), fact.caption, verdict)


VERIFICATION: Final[Verification[Question, MatchJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict
)
"""An answer that is not the gold one, or none, is no match (appendix R)."""
