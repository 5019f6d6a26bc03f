"""VDC as two values: its aspects judged as in the paper, and with ROUGE-L in the second step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.protocols.vdc import Question, judge_question, silent_judgement
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import Match, MatchJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Metric,
    Task,
    asking,
    over_videos,
    silence,
)
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading, Label, Logged, Rating
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, tell_answer
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.lmms_eval_tasks.vdc.data import (
    QUESTION_FILE,
    SOURCE,
    questions_file,
    read_questions,
)
from lmms_eval_captions.lmms_eval_tasks.vdc.paper import PAPER_TABLE
from lmms_eval_captions.lmms_eval_tasks.vdc.verification import VERIFICATION
from lmms_eval_captions.metrics.captioning import rouge_l
from lmms_eval_captions.metrics.vdc import mean_over_videos, vdc_acc, vdc_score
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

_CAPTION_CHARS: Final = {
    "camera": 400,
    "short": 150,
    "background": 600,
    "main_object": 600,
    "detailed": 1200,
}

_NOT_IN_ALL: Final = frozenset(
    {"699b3cf7c5b6fc1187aa829ea8e5795b27a06a811fe63d4e9c78e50d87a3c21c", "JJshlR5WkrY"}
)
"""Videos that the official file of the main object lacks; the others are in all five."""


def tasks_of_aspects(
    prefix: str, judge_prompts: Sequence[str] = (), *, note: str = "", **extras: str
) -> dict[str, Task]:
    """A task for each aspect.

    Args:
        prefix: What its name begins with, such as ``vdc``.
        judge_prompts: Names of the prompts that the judge is asked with.
        note: What a reader of its numbers must know.
        extras: Further fields of its signature.
    """
    tasks = [
        Task(
            name=f"{prefix}_{aspect}",
            fields={"aspect": aspect},
            caption_prompt=f"vdc_caption.{aspect}",
            judge_prompts=tuple(judge_prompts),
            aspect=aspect,
            extras=extras,
            note=note,
            caption_chars=_CAPTION_CHARS[aspect],
        )
        for aspect in ASPECTS
    ]
    return {task.name: task for task in tasks}


def _documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    """Return the videos by their ids: so ``--limit`` takes the same ones in every aspect.

    The five official files have orders of their own.
    """
    aspect = task.fields["aspect"]
    questions = read_questions(settings, aspect)
    return [
        {"video_id": video_id, "aspect": aspect, "questions": list(questions[video_id])}
        for video_id in sorted(questions, key=lambda name: (name in _NOT_IN_ALL, name))
    ]


def _plain(category: str) -> str:
    """A question's category, which is free text in the data, in one spelling.

    >>> _plain("Object'"), _plain("")
    ('object', 'none')
    """
    return " ".join(category.strip(" '\".,:;").lower().split()) or "none"


def _score_of(judgement: MatchJudgement) -> tuple[float | None]:
    return (judgement.score,)


def _label(logged: Logged) -> Label | None:
    """What the judge said, in a person's terms."""
    if logged["verdict"] is None:
        return None
    score = logged["score"]
    return Label(
        choice=str(logged["verdict"]), ratings={} if score is None else {"score": float(score)}
    )


_GRADING: Final = Grading(
    asks="Answer the question from the caption alone. Does that answer match the correct one?",
    choices=(
        Choice(key="y", name="yes", text="Yes, it matches"),
        Choice(key="n", name="no", text="No, or the caption does not say"),
    ),
    ratings=(
        Rating(
            name="score",
            low=0,
            high=5,
            text="How well it matches, 0 to 5 (5 = the same meaning)",
            is_optional=True,
        ),
    ),
    of_judge=_label,
    judgement=lambda _logged, label: {
        "verdict": label.choice,
        "score": label.ratings.get("score"),
    },
)
"""The judge's second step (appendix R); the first (appendix Q) is done by the same person."""


def _rouge(videos: Iterable[Sequence[float | None]]) -> float:
    return 100.0 * mean_over_videos(videos)


VDC: Final[Benchmark[Question, MatchJudgement]] = Benchmark(
    name="vdc",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=questions_file(ASPECTS[0]),
    tasks=tasks_of_aspects("vdc", ("vdc_answer", "vdc_match")),
    read=_documents,
    question_file=QUESTION_FILE,
    questions=lambda doc: [Question(**pair) for pair in doc["questions"]],
    ask=asking(judge_question),
    silent=silence(silent_judgement),
    judge_check=JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: (
            None if judgement.verdict is None else float(judgement.verdict == "yes")
        ),
        said=lambda _question, judgement: judgement.verdict,
        silent=frozenset({"no"}),
    ),
    verification=VERIFICATION,
    grading=_GRADING,
    metrics={
        "vdc_acc": Metric(
            score=over_videos(vdc_acc),
            ratios=of_means(lambda verdict: float(verdict == "yes")),
            labels=get_args(Match),
        ),
        "vdc_score": Metric(
            score=over_videos(vdc_score),
            scale=1.0,
            highest=5.0,
            ratios=of_means(),
            values=_score_of,
            field="scores",
        ),
    },
    headline="vdc_acc",
    right=frozenset({"yes"}),
    missed=frozenset({"no"}),
    headline_means="% of questions that the caption alone answers rightly, mean over videos",
    groups=lambda doc, question, _judgement: {
        "aspects": doc["aspect"],
        "categories": _plain(question.category),
    },
    sections={"aspects": ASPECTS, "categories": ()},
    paper_table=PAPER_TABLE,
    output_tokens={"vdc_answer": 12, "vdc_match": 14},
)
"""A task for each aspect; ``vdc_acc`` and ``vdc_score`` are means over videos of means over their
questions."""

VDC_ROUGE: Final[Benchmark[Question, MatchJudgement]] = replace(
    VDC,
    tasks=tasks_of_aspects("vdc_rouge", ("vdc_answer",), matching="rouge-l"),
    ask=asking(partial(judge_question, matcher=rouge_l)),
    silent=silence(partial(silent_judgement, matcher=rouge_l)),
    judge_check=JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: judgement.score,
        # An answer in free words: there is no verdict to be the same.
        said=lambda _question, _judgement: None,
    ),
    verification=None,
    grading=None,
    metrics={
        "vdc_rouge": Metric(
            score=over_videos(_rouge), ratios=of_means(), values=_score_of, field="scores"
        )
    },
    headline="vdc_rouge",
    right=frozenset(),
    missed=frozenset(),
    paper_table=None,
    headline_means="ROUGE-L in % of answers from the caption alone and gold answers",
)
"""ROUGE-L of the judge's answer and the gold one, in percent (AuroraCap, Table C3)."""
