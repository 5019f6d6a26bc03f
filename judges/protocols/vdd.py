"""VDD: one judge compares a whole caption with the whole reference caption.

Source: AuroraCap (arXiv 2410.03051), Tables 6 and 8, which take it from others and print no prompt:
the prompt, ``vdc_vdd.yaml``, is ours. Its reply is that of VDC's second step, and is read as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.judge_request import request_of
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.verdict import WholeJudgement

if TYPE_CHECKING:
    from lmms_eval_captions.judges.endpoint.outcome import Ask
    from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig


@dataclass(frozen=True, slots=True)
class Comparison:
    """The one question about a caption: whether it says what the reference says."""

    reference: str


async def judge_comparison(
    ask: Ask, question: Comparison, caption: str, *, config: JudgeConfig, run: int
) -> WholeJudgement:
    """Grade one caption.

    Args:
        ask: How to reach the judge.
        question: The reference caption.
        caption: Candidate caption, sent unchanged.
        config: The benchmark's judge.
        run: Judge run, sent as the seed, >= 0.
    """
    messages = config.prompts.load("vdc_vdd").render(reference=question.reference, caption=caption)
    request = request_of(
        "vdc_vdd",
        messages,
        config=config,
        seed=run,
        stand_in=partial(_lexical_grade, question.reference, caption),
    )
    asked = await ask(request, read_match)
    verdict, score = asked.value or (None, None)
    return WholeJudgement(
        reference=question.reference, run=run, verdict=verdict, score=score, **asked.outcome()
    )


def silent_judgement(question: Comparison, run: int) -> WholeJudgement:
    """The judgement of a caption that says nothing: "no" and 0.

    >>> silent_judgement(Comparison("A red ball rolls."), 0).verdict
    'no'
    """
    return WholeJudgement(reference=question.reference, run=run, verdict="no", score=0.0)


def _lexical_grade(reference: str, caption: str) -> str:
    share = lexical.recall(reference, caption)
    return str({"pred": "yes" if share >= 0.5 else "no", "score": round(5 * share)})
