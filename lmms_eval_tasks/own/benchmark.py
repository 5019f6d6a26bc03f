"""G-VEval of one's own clips as one value: its reference-free setting, which sees three frames."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.protocols.gveval import GVeval
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
from lmms_eval_captions.lmms_eval_tasks.own.data import SOURCE, documents
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling

_SCORER: Final = GVeval("ref_free")
_FRAMES: Final[Sampling] = "first_middle_last"


def _questions(doc: Doc) -> list[Comparison]:
    return [Comparison(_SCORER, (), strip_of(SOURCE, str(doc["video_id"]), _FRAMES))]


_TASK: Final = Task(
    name="own_gveval_ref_free",
    fields={"judge": "gveval"},
    caption_prompt="own_caption.own",
    judge_prompts=(_SCORER.prompt_name,),
    extras={"frames": _FRAMES},
    caption_chars=600,
)

OWN_GVEVAL: Final[Benchmark[Comparison, ScoresJudgement]] = Benchmark(
    name="own",
    folder=Path(__file__).parent,
    source=SOURCE,
    probe_file="",
    tasks={_TASK.name: _TASK},
    read=documents,
    questions=_questions,
    ask=asking(judge_question),
    unseen=unseen,
    judge_check=JUDGE_CHECK,
    grading=grading(lambda _doc: ()),
    metrics=METRICS,
    headline=HEADLINE,
    headline_means=HEADLINE_MEANS,
    extras=scoring,
    output_tokens=OUTPUT_TOKENS,
)
"""One task; each dimension's mean score, and the mean of the four (``avg``)."""
