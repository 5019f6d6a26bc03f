"""Right verdicts of VidCapBench's judge on planted facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.protocols.vidcapbench import Question
from lmms_eval_captions.judges.verdict import Correctness, CorrectnessJudgement
from lmms_eval_captions.lmms_eval_tasks.planted_facts import (
    Anchor,
    PlantedFact,
    Relation,
    Verification,
)

_VERDICTS: Final[Mapping[Relation, Correctness]] = {
    "states": "correct",
    "contradicts": "wrong",
    "silent": "neutral",
}


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    question = Question(
        fact.question, fact.truth, dimension="video content", sub_category="subjects"
    )
    return Anchor(question, fact.caption, _VERDICTS[fact.relation])


VERIFICATION: Final[Verification[Question, CorrectnessJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict
)
"""The classes of section 3.2; ``partial`` is never right."""
