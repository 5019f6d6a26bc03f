"""What VidCapBench's judge must say of planted facts."""

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
from lmms_eval_captions.lmms_eval_tasks.published_judges import PublishedJudge

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


PUBLISHED: Final = (
    PublishedJudge(
        numbers="VidCapBench, Table 3 and all other automatic scores but those of Table 10 "
        "(Table 6, and the human columns of Tables 4 and 11, are people's)",
        judge="gpt-4o-2024-08-06, mean of three runs with seeds 0, 1 and 2",
        source='VidCapBench, section 4.1: "averaged over three independent runs, utilizing '
        'GPT-4o with random seeds set to 0, 1, and 2"; footnote 3: "Throughout this paper, we '
        'employ GPT-4o-20240806 for GPT-4o"',
    ),
    PublishedJudge(
        numbers="VidCapBench, Table 10, rows of other evaluators",
        judge="Qwen2-72B and Llama-3.3-70B, greedy",
        source='VidCapBench, appendix D, "Influence of the judge model": "we substitute GPT-4o '
        'with Qwen2-72B and Llama-3.3-70B as the judge model"',
    ),
    PublishedJudge(
        numbers="what the released script gives",
        judge="gpt-4o, whichever snapshot that is on the day",
        source="the authors' released script, which names the judge gpt-4o",
    ),
)
"""Who judged the numbers that are published."""

VERIFICATION: Final[Verification[Question, CorrectnessJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict, published=PUBLISHED
)
"""The classes of section 3.2; ``partial`` is never right."""
