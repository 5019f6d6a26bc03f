"""UGC-VideoCap: its task and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Ask
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.caption_rating import (
    RATED,
    HumanCaption,
    RatingJudgement,
    rate_caption,
    silent_rating,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    over_questions,
)
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.lmms_eval_tasks.ugc_videocap.data import FILE, SOURCE, read_clips

_BEST: Final = 5.0


def _rating(dimension: str) -> Callable[[RatingJudgement], Sequence[object]]:
    return lambda judgement: (getattr(judgement, dimension),)


def _mean_rating(judgement: RatingJudgement) -> Sequence[object]:
    ratings = [getattr(judgement, dimension) for dimension in RATED]
    return (None if None in ratings else fmean(ratings),)


def _percent_of_best(ratings: Sequence[float | None]) -> float:
    scored = [rating for rating in ratings if rating is not None]
    return 100 * fmean(scored) / _BEST if scored else nan


def _mean(ratings: Sequence[float | None]) -> float:
    scored = [rating for rating in ratings if rating is not None]
    return fmean(scored) if scored else nan


def _dimension(name: str) -> Metric:
    return Metric(
        score=over_questions(_mean),
        ratios=of_means(lambda rating: rating / _BEST),
        scale=_BEST,
        lowest=1.0,
        highest=_BEST,
        values=_rating(name),
        field=name,
    )


class UgcVideoCap(Benchmark[HumanCaption, RatingJudgement]):
    """Ratings of captions against human ones."""

    name = "ugc_videocap"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = FILE
    name_fields = ("video_id", "video")
    tasks = {
        "ugc_videocap": Task(
            name="ugc_videocap",
            caption_prompt="ugc_videocap_caption.caption",
            judge_prompts=("ugc_rating",),
            extras={"prompts": "ours"},
            caption_chars=1100,
        )
    }
    metrics = {
        "ugc_avg": Metric(
            score=over_questions(_percent_of_best),
            ratios=of_means(lambda rating: rating / _BEST),
            lowest=20.0,
            values=_mean_rating,
            field="avg",
        ),
        **{f"ugc_{name}": _dimension(name) for name in RATED},
    }
    headline = "ugc_avg"
    headline_means = "mean rating of visual, audio and details, in % of 5"
    silent = staticmethod(lambda question, run: (silent_rating(question, run),))
    output_tokens = {"ugc_rating": 25}

    def read(self, settings: DataSettings, _task: Task) -> list[dict[str, object]]:
        """Return the clips of the official file."""
        return read_clips(settings)

    def questions(self, doc: Doc) -> list[HumanCaption]:
        """Return the human caption as the one question."""
        return [HumanCaption(doc["reference"])]

    def question_text(self, _question: HumanCaption) -> str:
        """Return an empty text: there is one question per clip."""
        return ""

    async def judge(
        self, ask: Ask, question: HumanCaption, caption: str, *, config: JudgeConfig, run: int
    ) -> RatingJudgement:
        """Rate one caption."""
        return await rate_caption(ask, question, caption, config=config, run=run)


UGC_VIDEOCAP: Final = UgcVideoCap()
