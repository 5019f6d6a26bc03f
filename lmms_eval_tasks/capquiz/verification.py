"""What CapQuiz's judge must say of planted facts."""

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
from lmms_eval_captions.lmms_eval_tasks.published_judges import PublishedJudge

_VERDICTS: Final[Mapping[Relation, QuizOutcome]] = {
    "states": "true_positive",
    "contradicts": "false_positive",
    "silent": "false_negative",
}


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    question = Question("Entity", fact.question, fact.options, fact.truth)
    return Anchor(question, fact.caption, _VERDICTS[fact.relation])


PUBLISHED: Final = (
    PublishedJudge(
        numbers="CapQuiz, Tables 3 and 4",
        judge="GPT-4.1 (its tables name gpt-4.1-2025-04-14 as a captioner)",
        source='CapQuiz, section 3.4: "we employ GPT-4.1 as the judge in our experiments"; '
        'Limitations: "we utilize GPT-4.1 as the judge"',
    ),
    PublishedJudge(
        numbers="CapQuiz, Table 2, VLLM-as-a-Judge",
        judge="Gemini-2.5-pro, which sees the video",
        source='CapQuiz, section 4.1: "we prompted Gemini-2.5-pro to judge based on the video '
        'content"; appendix B',
    ),
)
"""Who judged the numbers that are published."""

VERIFICATION: Final[Verification[Question, QuizJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict, published=PUBLISHED
)
"""The outcomes of section 3.4; "Cannot be determined" where the caption does not say."""
