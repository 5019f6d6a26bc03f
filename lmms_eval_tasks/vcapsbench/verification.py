"""What VCapsBench's judge must say of planted facts."""

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
from lmms_eval_captions.lmms_eval_tasks.published_judges import PublishedJudge

_VERDICTS: Final[Mapping[Relation, Agreement]] = {
    "states": "positive",
    "contradicts": "negative",
    "silent": "unanswerable",
}


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    question = Question("entity", fact.claim, "yes" if fact.claim_is_true else "no")
    return Anchor(question, fact.caption, _VERDICTS[fact.relation])


PUBLISHED: Final = (
    PublishedJudge(
        numbers="VCapsBench, Table 1 and section 4.1",
        judge="Gemini-2.5-Pro-Preview, consensus of three",
        source='VCapsBench, Table 1: "Gemini-2.5-Pro-Preview as a TextQA expert"; section 4: '
        '"each caption was queried three times, and a consensus response was obtained"',
    ),
    PublishedJudge(
        numbers="VCapsBench, Table 3 (appendix A.1)",
        judge="GPT-4.1, no snapshot named",
        source='VCapsBench, Table 3: "GPT-4.1 as a TextQA expert"; Table 4 of the same paper '
        "and the released code call the judge of these numbers GPT-4o (gpt4o)",
    ),
    PublishedJudge(
        numbers="VCapsBench, Table 4, rows Manual",
        judge="people",
        source="VCapsBench, appendix, Table 4; no row holds together, see the benchmark's page",
    ),
)
"""Who judged the numbers that are published."""

VERIFICATION: Final[Verification[Question, AgreementJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict, published=PUBLISHED
)
"""The labels of section 3.4."""
