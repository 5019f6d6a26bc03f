"""CapQuiz's VLLM-as-a-Judge of one's own clips as one value: three ratings from 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.protocols.video_rating import (
    DIMENSIONS,
    HIGHEST,
    LOWEST,
    PROMPT,
    ShownVideo,
    judge_video,
)
from lmms_eval_captions.judges.verdict import RatingsJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    asking,
    over_videos,
)
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label, Logged, Rating
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.judge_sight import seen_of
from lmms_eval_captions.lmms_eval_tasks.own.data import SOURCE, documents
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.gveval import mean_rating
from lmms_eval_captions.model_wrappers.video.frame_strip import shown_frames


def _questions(doc: Doc) -> list[ShownVideo]:
    return [ShownVideo(partial(_frames, str(doc["video_id"])))]


def _frames(video: str, n_frames: int) -> Sequence[Picture]:
    return seen_of(SOURCE, video, lambda path, cache: shown_frames(path, n_frames, cache=cache))


def _no_frames(n_frames: int) -> Sequence[Picture]:
    # Their tokens do not depend on what they show.
    return [Picture(b"", "image/jpeg")] * n_frames


def _rating(judgement: RatingsJudgement, dimension: str) -> tuple[int | None]:
    """``None`` is unscored."""
    return (judgement.numbers.get(dimension),)


def _metric(dimension: str) -> Metric:
    return Metric(
        score=over_videos(mean_rating),
        scale=1.0,
        lowest=LOWEST,
        highest=HIGHEST,
        ratios=of_means(),
        values=partial(_rating, dimension=dimension),
        field="scores",
    )


def _label(logged: Logged) -> Label | None:
    """The numbers that the judge wrote."""
    numbers = logged["numbers"]
    return Label(ratings={name: float(numbers[name]) for name in DIMENSIONS}) if numbers else None


def _rated(_logged: Logged, label: Label) -> Mapping[str, object]:
    return {"numbers": dict(label.ratings)}


_MEANINGS: Final = {
    "trustworthiness": "does the caption contain false information? 5 is no factual error, 1 is a "
    "main action or object that is not in the video",
    "coverage": "does the caption miss important information? 5 is nothing important left out, "
    "1 misses the main story",
    "overall": "how useful is this caption to a blind user? 5 is excellent, 1 is not useful",
}
"""Figure 8's rubrics, shortened."""

_TASK: Final = Task(
    name="own_vllm_judge",
    fields={"judge": "vllm_judge"},
    caption_prompt="own_caption.own",
    judge_prompts=(PROMPT,),
    caption_chars=600,
)

OWN_RATING: Final[Benchmark[ShownVideo, RatingsJudgement]] = Benchmark(
    name="own",
    folder=Path(__file__).parent,
    template="_rating_template_yaml",
    source=SOURCE,
    probe_file="",
    tasks={_TASK.name: _TASK},
    read=documents,
    questions=_questions,
    ask=asking(judge_video),
    unseen=lambda question: replace(question, frames=_no_frames),
    judge_check=JudgeCheck(
        # There is no caption of one's own clips that is known to be right, and so no anchor.
        tell=lambda _question: "",
        credit=lambda judgement: (
            (judgement.numbers["overall"] - LOWEST) / (HIGHEST - LOWEST)
            if judgement.numbers
            else None
        ),
        said=lambda _question, judgement: "/".join(map(str, judgement.numbers.values())) or None,
        silent=frozenset({"/".join(str(LOWEST) for _ in DIMENSIONS)}),
    ),
    grading=Grading(
        asks="Watch the video and rate the caption along each dimension, 1 to 5.",
        ratings=tuple(
            Rating(name=name, low=LOWEST, high=HIGHEST, text=f"{name.capitalize()}: {meaning}")
            for name, meaning in _MEANINGS.items()
        ),
        needs_data=True,
        of_judge=_label,
        judgement=_rated,
    ),
    metrics={name: _metric(name) for name in DIMENSIONS},
    headline="overall",
    headline_means="mean of the judge's ratings of how good the caption is as a whole, 1 to 5",
    output_tokens={PROMPT: 200},
)
"""One task; the mean rating along each of the three dimensions."""
