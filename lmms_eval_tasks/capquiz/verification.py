"""Right verdicts of CapQuiz's judge on planted facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.protocols.capquiz import Question
from lmms_eval_captions.judges.verdict import QuizJudgement, QuizOutcome
from lmms_eval_captions.lmms_eval_tasks.planted_facts import (
    Anchor,
    PlantedFact,
    Relation,
    Verification,
)

_VERDICTS: Final[Mapping[Relation, QuizOutcome]] = {
    "states": "true_positive",
    "contradicts": "false_positive",
    "silent": "false_negative",
}


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    question = Question("Entity", fact.question, fact.options, fact.truth)
    return Anchor(question, fact.caption, _VERDICTS[fact.relation])


VERIFICATION: Final[Verification[Question, QuizJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict
)
"""The outcomes of section 3.4; "Cannot be determined" where the caption does not say."""
