"""CapQuiz as one value: its two tasks, questions, metrics, question types and domains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from lmms_eval_captions.judges.protocols.capquiz import (
    LETTERS,
    N_OPTIONS,
    UNKNOWN,
    Question,
    judge_question,
    silent_judgement,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import QuizJudgement, QuizOutcome
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    asking,
    over_questions,
    silence,
)
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import (
    DOMAINS,
    FILE,
    GROUP_OF,
    GROUPS,
    QUESTION_FILE,
    SOURCE,
    SUPER_OF,
    read_videos,
)
from lmms_eval_captions.lmms_eval_tasks.capquiz.paper import PAPER_TABLE
from lmms_eval_captions.lmms_eval_tasks.capquiz.verification import VERIFICATION
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading, Label, Logged
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, tell_answer
from lmms_eval_captions.lmms_eval_tasks.ratios import (
    DENOMINATOR,
    NEITHER,
    NUMERATOR,
    of_verdicts,
)
from lmms_eval_captions.metrics.capquiz import abstain, capf1, capp, capr


def _task(name: str, prompt: str, *, caption_chars: int) -> Task:
    return Task(
        name=name,
        fields={"caption_prompt": prompt},
        caption_prompt=f"capquiz_caption.{prompt}",
        judge_prompts=("capquiz_answer",),
        extras={"prompt": prompt},
        caption_chars=caption_chars,
    )


def _documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    return [{**row, **task.fields} for row in read_videos(settings)]


def _questions(doc: Doc) -> list[Question]:
    return [Question(**{**row, "options": tuple(row["options"])}) for row in doc["questions"]]


def _letter(question: Question, judgement: QuizJudgement) -> str | None:
    """The letter of the option that the judge chose."""
    if judgement.choice is None:
        return None
    return LETTERS[(*question.options, UNKNOWN).index(judgement.choice)]


def _choices(doc: Mapping[str, Any], place: int) -> tuple[Choice, ...]:
    """The options of a question, each with its letter."""
    options = (*doc["questions"][place]["options"], UNKNOWN)
    return tuple(
        Choice(key=letter.lower(), name=option, text=f"{letter}: {option}")
        for letter, option in zip(LETTERS, options, strict=False)
    )


def _label(logged: Logged) -> Label | None:
    return None if logged["verdict"] is None else Label(choice=str(logged["choice"]))


def _judgement(logged: Logged, label: Label) -> Mapping[str, object]:
    verdict = "true_positive" if label.choice == logged["answer"] else "false_positive"
    if label.choice == UNKNOWN:
        verdict = "false_negative"
    return {"choice": label.choice, "verdict": verdict}


_GRADING: Final = Grading(
    asks="Choose the option that the caption alone supports, whatever the video shows.",
    shows_answer=False,
    choices_of=_choices,
    needs_data=True,
    of_judge=_label,
    judgement=_judgement,
)


def _groups(doc: Doc, question: Question, _judgement: QuizJudgement | None) -> dict[str, str]:
    """Where a question counts: in no group, no super-category where the paper names none."""
    domain, kind = doc["domain"], question.category
    group = {"groups": GROUP_OF[kind]} if kind in GROUP_OF else {}
    above = {"super_categories": SUPER_OF[domain]} if domain in SUPER_OF else {}
    return {**group, "types": kind, **above, "domains": domain}


def _fields(doc: Doc, _caption: str | None) -> Mapping[str, object]:
    return {
        "categories": [question["category"] for question in doc["questions"]],
        "domain": doc["domain"],
    }


# 2 TP / (TP + FP + N), where N is all three.
_F1: Final = of_verdicts(
    {"true_positive": (2.0, 2.0), "false_positive": (0.0, 2.0), "false_negative": DENOMINATOR}
)
_P: Final = of_verdicts(
    {"true_positive": NUMERATOR, "false_positive": DENOMINATOR, "false_negative": NEITHER}
)
_R: Final = of_verdicts(
    {"true_positive": NUMERATOR, "false_positive": DENOMINATOR, "false_negative": DENOMINATOR}
)
_ABSTAIN: Final = of_verdicts(
    {"true_positive": DENOMINATOR, "false_positive": DENOMINATOR, "false_negative": NUMERATOR}
)

CAPQUIZ: Final[Benchmark[Question, QuizJudgement]] = Benchmark(
    name="capquiz",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=FILE,
    tasks={
        "capquiz": _task("capquiz", "standard", caption_chars=600),
        "capquiz_detailed": _task("capquiz_detailed", "detailed", caption_chars=6000),
    },
    read=_documents,
    name_fields=("video",),
    question_file=QUESTION_FILE,
    questions=_questions,
    ask=asking(judge_question),
    silent=silence(silent_judgement),
    judge_check=JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: (
            None if judgement.verdict is None else float(judgement.verdict == "true_positive")
        ),
        said=_letter,
        silent=frozenset({LETTERS[N_OPTIONS]}),
    ),
    verification=VERIFICATION,
    grading=_GRADING,
    metrics={
        "capf1": Metric(score=over_questions(capf1), ratios=_F1, labels=get_args(QuizOutcome)),
        "capp": Metric(score=over_questions(capp), ratios=_P),
        "capr": Metric(score=over_questions(capr), ratios=_R),
        "abstain": Metric(score=over_questions(abstain), ratios=_ABSTAIN, higher_is_better=False),
    },
    headline="capf1",
    right=frozenset({"true_positive"}),
    missed=frozenset({"false_negative"}),
    wrong=frozenset({"false_positive"}),
    headline_means="% of the quiz that the caption answers, and how rightly: their harmonic mean",
    groups=_groups,
    sections={
        "groups": tuple(GROUPS),
        "types": tuple(GROUP_OF),
        "super_categories": tuple(DOMAINS),
        "domains": tuple(SUPER_OF),
    },
    fields=_fields,
    paper_table=PAPER_TABLE,
    output_tokens={"capquiz_answer": 2},
)
"""Two tasks that differ in the caption prompt."""
