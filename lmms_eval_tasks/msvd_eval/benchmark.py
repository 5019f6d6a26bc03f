"""MSVD-Eval as one value: a task for each of G-VEval's settings, and its four dimensions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.judges.verdict import ScoresJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task, asking
from lmms_eval_captions.lmms_eval_tasks.gveval_tasks import (
    HEADLINE,
    HEADLINE_MEANS,
    JUDGE_CHECK,
    METRICS,
    OUTPUT_TOKENS,
    Comparison,
    grading,
    judge_question,
    scoring,
    strip_of,
    unseen,
)
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import (
    FILE,
    QUESTION_FILE,
    SOURCE,
    read_items,
)
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.paper import PAPER_TABLE
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.verification import VERIFICATION
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling

_SETTINGS: Final[tuple[Setting, ...]] = get_args(Setting)


def with_frames(sampling: Sampling) -> Benchmark[Comparison, ScoresJudgement]:
    """The benchmark where the judge sees frames drawn so; the paper's are first, middle, last."""
    tasks = [_task(setting, sampling) for setting in _SETTINGS]
    return replace(
        MSVD_EVAL,
        tasks={task.name: task for task in tasks},
        questions=partial(_questions, sampling=sampling),
    )


def _task(setting: Setting, sampling: Sampling) -> Task:
    scorer = GVeval(setting)
    return Task(
        name=f"msvd_eval_{setting}",
        fields={"setting": setting},
        caption_prompt="gveval_caption.msvd_eval",
        judge_prompts=(scorer.prompt_name,),
        extras={"frames": sampling} if scorer.sees else {},
        caption_chars=60,
    )


def _documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    return [
        {
            "video_id": item.video_id,
            "vname": item.vname,
            "setting": task.fields["setting"],
            "references": list(item.references),
        }
        for item in read_items(settings)
    ]


def _questions(doc: Doc, *, sampling: Sampling) -> list[Comparison]:
    scorer = GVeval(doc["setting"])
    # Without references alone the judge sees it; as published, always.
    picture = strip_of(SOURCE, str(doc["vname"]), sampling)
    return [Comparison(scorer, tuple(doc["references"]), picture)]


def _references(doc: Doc) -> tuple[str, ...]:
    return () if doc["setting"] == "ref_free" else tuple(doc["references"])


MSVD_EVAL: Final[Benchmark[Comparison, ScoresJudgement]] = Benchmark(
    name="msvd_eval",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file=FILE,
    tasks={f"msvd_eval_{setting}": _task(setting, "first_middle_last") for setting in _SETTINGS},
    read=_documents,
    name_fields=("video_id", "vname"),
    question_file=QUESTION_FILE,
    questions=partial(_questions, sampling="first_middle_last"),
    ask=asking(judge_question),
    unseen=unseen,
    judge_check=JUDGE_CHECK,
    verification=VERIFICATION,
    grading=grading(_references),
    metrics=METRICS,
    headline=HEADLINE,
    headline_means=HEADLINE_MEANS,
    extras=scoring,
    paper_table=PAPER_TABLE,
    output_tokens=OUTPUT_TOKENS,
)
"""A task for each setting; each dimension's mean score, and the mean of the four (``avg``)."""
