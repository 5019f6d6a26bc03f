"""Multiple-choice sets answered from captions: their tasks and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.protocols.caption_qa import (
    ChoiceJudgement,
    ChoiceQuestion,
    Outcome,
    judge_choice,
    silent_choice,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Task,
    pooled,
)
from lmms_eval_captions.lmms_eval_tasks.caption_qa.data import (
    DAILY_OMNI,
    LMMS_EVAL_SETS,
    SOURCE,
    read_set,
)
from lmms_eval_captions.lmms_eval_tasks.ratios import DENOMINATOR, NEITHER, NUMERATOR
from lmms_eval_captions.metrics.caption_qa import qa_accuracy, qa_coverage, qa_precision


def _task(name: str, set_name: str) -> Task:
    return Task(
        name=name,
        fields={"set": set_name},
        caption_prompt="caption_qa_caption.caption",
        judge_prompts=("caption_qa_answer",),
        extras={"prompts": "ours"},
        caption_chars=2400,
    )


class CaptionQA(Benchmark[ChoiceQuestion, ChoiceJudgement]):
    """Multiple-choice questions about videos, answered from their captions."""

    name = "caption_qa"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = DAILY_OMNI
    name_fields = ("video",)
    tasks = {
        "caption_qa": _task("caption_qa", "custom"),
        **{
            f"caption_qa_{name}": _task(f"caption_qa_{name}", name)
            for name in ("daily_omni", *LMMS_EVAL_SETS)
        },
    }
    metrics = {
        "qa_accuracy": pooled(
            qa_accuracy,
            {"right": NUMERATOR, "wrong": DENOMINATOR, "unknown": DENOMINATOR},
            labels=get_args(Outcome),
        ),
        "qa_coverage": pooled(
            qa_coverage, {"right": NUMERATOR, "wrong": NUMERATOR, "unknown": DENOMINATOR}
        ),
        "qa_precision": pooled(
            qa_precision, {"right": NUMERATOR, "wrong": DENOMINATOR, "unknown": NEITHER}
        ),
    }
    headline = "qa_accuracy"
    headline_means = "% of questions that the caption alone answers rightly"
    right = frozenset({"right"})
    missed = frozenset({"unknown"})
    wrong = frozenset({"wrong"})
    judge = staticmethod(judge_choice)
    silent = staticmethod(lambda question, run: (silent_choice(question, run),))
    output_tokens = {"caption_qa_answer": 2}

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the videos of a set."""
        name = task.fields["set"]
        return [{**video, "set": name} for video in read_set(settings, name)]

    def questions(self, doc: Doc) -> list[ChoiceQuestion]:
        """Return the questions about a video."""
        return [
            ChoiceQuestion(**{**row, "options": tuple(row["options"])}) for row in doc["questions"]
        ]

    def groups(
        self, doc: Doc, question: ChoiceQuestion, _judgement: ChoiceJudgement | None
    ) -> dict[str, str]:
        """Return type of the question and category of the video."""
        return {"types": question.category, "videos": doc["group"]}


CAPTION_QA: Final = CaptionQA()
