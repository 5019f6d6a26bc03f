"""What VDC's judge must say of planted facts."""

from __future__ import annotations

from typing import Final

from lmms_eval_captions.judges.protocols.vdc import Question
from lmms_eval_captions.judges.verdict import MatchJudgement
from lmms_eval_captions.lmms_eval_tasks.planted_facts import Anchor, PlantedFact, Verification
from lmms_eval_captions.lmms_eval_tasks.published_judges import PublishedJudge


def _anchor(fact: PlantedFact) -> Anchor[Question]:
    verdict = "yes" if fact.relation == "states" else "no"
    return Anchor(Question(fact.question, fact.truth), fact.caption, verdict)


PUBLISHED: Final = (
    PublishedJudge(
        numbers="AuroraCap, Table 7 (VDCscore), by the paper",
        judge="gpt-4o-2024-08-06",
        source='AuroraCap, section 3.2.1: "We prompt GPT-4o to read the detailed predicted '
        'captions"; its footnote: "gpt-4o-2024-08-06"; appendices Q and R',
    ),
    PublishedJudge(
        numbers="AuroraCap, Table 7 (VDCscore), by all that is public besides",
        judge="Llama-3.1-8B-Instruct",
        source='one of the authors, https://github.com/wenhaochai/aurora/issues/11: "we did '
        "not use ChatGPT for evaluation; instead, we used LLaMA-3.1-8B as the LLM evaluation "
        'assistant"; page of lmms-eval\'s own task (lmms_eval/tasks/vdc/README.md): "We use '
        'LLama3.1-8B to evaluate the answers"',
    ),
    PublishedJudge(
        numbers="VidCapBench, Tables 3 and 7, columns of VDC",
        judge="gpt-4o-2024-08-06",
        source='VidCapBench, Table 3: "Score" is "calculated using GPT-4o based on the method '
        'in Chai et al. (2024)"; footnote 3 names GPT-4o-20240806',
    ),
)
"""Who judged the numbers that are published."""

VERIFICATION: Final[Verification[Question, MatchJudgement]] = Verification(
    anchor=_anchor, said=lambda judgement: judgement.verdict, published=PUBLISHED
)
"""An answer that is not the gold one, or none, is no match (appendix R)."""
