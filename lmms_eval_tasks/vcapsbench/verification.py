"""Right verdicts of VCapsBench's judge on planted facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.protocols.vcapsbench import Question
from lmms_eval_captions.judges.verdict import Agreement, AgreementJudgement
from lmms_eval_captions.lmms_eval_tasks.planted_facts import (
    Anchor,
    PlantedFact,
    Relation,
    Verification,
)

_VERDICTS: Final[Mapping[Relation, Agreement]] = {
    "states": "positive",
    "contradicts": "negative",
    "silent": "unanswerable",
}


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    question = Question("entity", fact.claim, "yes" if fact.claim_is_true else "no")
    return Anchor(question, fact.caption, _VERDICTS[fact.relation])


VERIFICATION: Final[Verification[Question, AgreementJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict
)
"""The labels of section 3.4."""
