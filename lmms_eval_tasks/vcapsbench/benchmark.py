"""VCapsBench as one value: its task, questions, metrics, groups and categories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.protocols.vcapsbench import (
    N_ASKS,
    Question,
    judge_question,
    silent_judgement,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import Agreement, AgreementJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    asking,
    over_questions,
    silence,
)
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading, Label, Logged
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, tell_answer
from lmms_eval_captions.lmms_eval_tasks.ratios import (
    DENOMINATOR,
    NEITHER,
    NUMERATOR,
    of_verdicts,
)
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import (
    FILE,
    GROUP_OF,
    GROUPS,
    QUESTION_FILE,
    SOURCE,
    read_videos,
)
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.paper import PAPER_TABLE
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.verification import VERIFICATION
from lmms_eval_captions.metrics.vcapsbench import vcapsbench_ar, vcapsbench_cr, vcapsbench_ir


def _label(logged: Logged) -> Label | None:
    """What the judge answered, by consensus of its asks."""
    return None if logged["verdict"] is None else Label(choice=str(logged["predicted_answer"]))


def _judgement(logged: Logged, label: Label) -> Mapping[str, object]:
    verdict = "positive" if label.choice == logged["answer"] else "negative"
    if label.choice == "unanswerable":
        verdict = "unanswerable"
    return {"predicted_answer": label.choice, "verdict": verdict}


_GRADING: Final = Grading(
    asks="Answer the question from the caption alone, whatever the video shows.",
    choices=(
        Choice(key="y", name="yes", text="Yes"),
        Choice(key="n", name="no", text="No"),
        Choice(key="u", name="unanswerable", text="Unanswerable: the caption does not say"),
    ),
    shows_answer=False,
    of_judge=_label,
    judgement=_judgement,
)


def groups_of(category: str) -> dict[str, str]:
    """Where a question of a category counts; in no group where the paper does not name it."""
    group = {"groups": GROUP_OF[category]} if category in GROUP_OF else {}
    return {**group, "categories": category}


def _documents(settings: DataSettings, _task: Task) -> list[dict[str, object]]:
    return [
        {
            "video_id": video.video_id,
            "questions": video.questions,
            "n_malformed": video.n_malformed,
            "n_malformed_in_file": video.n_malformed_in_file,
        }
        for video in read_videos(settings)
    ]


def _fields(doc: Doc, _caption: str | None) -> Mapping[str, object]:
    return {
        "categories": [question["category"] for question in doc["questions"]],
        "n_malformed": doc["n_malformed"],
        "n_malformed_in_file": doc["n_malformed_in_file"],
    }


_AR: Final = of_verdicts(
    {"positive": NUMERATOR, "negative": DENOMINATOR, "unanswerable": DENOMINATOR}
)
_IR: Final = of_verdicts({"positive": DENOMINATOR, "negative": NUMERATOR, "unanswerable": NEITHER})
_CR: Final = of_verdicts(
    {"positive": NUMERATOR, "negative": NUMERATOR, "unanswerable": DENOMINATOR}
)

VCAPSBENCH: Final[Benchmark[Question, AgreementJudgement]] = Benchmark(
    name="vcapsbench",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=FILE,
    tasks={
        "vcapsbench": Task(
            name="vcapsbench",
            caption_prompt="vcapsbench_caption.caption",
            judge_prompts=("vcapsbench_answer",),
            extras={"asks": str(N_ASKS)},
            caption_chars=1400,
        )
    },
    read=_documents,
    question_file=QUESTION_FILE,
    questions=lambda doc: [Question(**question) for question in doc["questions"]],
    ask=asking(judge_question),
    silent=silence(silent_judgement),
    judge_check=JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: (
            None if judgement.verdict is None else float(judgement.verdict == "positive")
        ),
        said=lambda _question, judgement: judgement.predicted_answer,
        silent=frozenset({"unanswerable"}),
    ),
    verification=VERIFICATION,
    grading=_GRADING,
    metrics={
        "ar": Metric(score=over_questions(vcapsbench_ar), ratios=_AR, labels=get_args(Agreement)),
        "ir": Metric(score=over_questions(vcapsbench_ir), ratios=_IR, higher_is_better=False),
        "cr": Metric(score=over_questions(vcapsbench_cr), ratios=_CR),
    },
    headline="ar",
    right=frozenset({"positive"}),
    missed=frozenset({"unanswerable"}),
    wrong=frozenset({"negative"}),
    headline_means="% of yes-no questions that the caption alone answers rightly",
    groups=lambda _doc, question, _judgement: groups_of(question.category),
    sections={"groups": tuple(GROUPS), "categories": tuple(GROUP_OF)},
    fields=_fields,
    # Every record has the file's number: videos without any question have no record.
    summary=lambda records: {"n_malformed": records[0].fields["n_malformed_in_file"]},
    paper_table=PAPER_TABLE,
    output_tokens={"vcapsbench_answer": 25},
)
"""One task; ``ar``, ``ir`` and ``cr`` over all questions, the 4 groups and the 21 categories."""
