"""UGC-VideoCap: its file, task and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from statistics import fmean
from typing import Any, Final

from lmms_eval_captions.judges.protocols import caption_rating as protocol
from lmms_eval_captions.judges.protocols.caption_rating import HumanCaption, RatingJudgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Metric,
    Task,
    over_videos,
)
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_clips
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import of_means
from lmms_eval_captions.metrics.vdc import mean_over_videos

SOURCE: Final = Source(
    benchmark="ugc_videocap",
    page="https://huggingface.co/datasets/openinterx/UGC-VideoCap",
    license="MIT",
    video_folder="ugc_videocap/video",
)
FILE: Final = "final_caption_qa.json"
_BEST: Final = 5.0


def _mean_rating(judgement: RatingJudgement) -> Sequence[object]:
    ratings = [getattr(judgement, dimension) for dimension in protocol.RATED]
    return (None if None in ratings else fmean(ratings),)


def _dimension(name: str) -> Metric:
    return Metric(
        score=over_videos(mean_over_videos),
        ratios=of_means(lambda rating: rating / _BEST),
        scale=_BEST,
        lowest=1.0,
        highest=_BEST,
        values=lambda judgement: (getattr(judgement, name),),
        field=name,
    )


class UgcVideoCap(Benchmark[HumanCaption, RatingJudgement]):
    """Ratings of captions against human ones."""

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
            score=over_videos(lambda videos: 100 * mean_over_videos(videos) / _BEST),
            ratios=of_means(lambda rating: rating / _BEST),
            lowest=20.0,
            values=_mean_rating,
            field="avg",
        ),
        **{f"ugc_{name}": _dimension(name) for name in protocol.RATED},
    }
    headline = "ugc_avg"
    headline_means = "mean rating of visual, audio and details, in % of 5"
    judge = staticmethod(protocol.rate_caption)
    silent = staticmethod(lambda question, run: (protocol.silent_rating(question, run),))
    output_tokens = {"ugc_rating": 25}

    read = staticmethod(
        lambda settings, _task: read_clips(
            find_file(settings, SOURCE, FILE),
            _clip,
            expected="video_id, path and answer",
            under="samples",
        )
    )
    questions = staticmethod(lambda doc: [HumanCaption(doc["reference"])])


def _clip(sample: Any) -> dict[str, object]:  # noqa: ANN401 - a sample of the file
    name = PurePosixPath(sample["path"]).name
    video_id, reference = str(sample["video_id"]), str(sample["answer"])
    return {"video_id": video_id, "video": name, "reference": reference}


UGC_VIDEOCAP: Final = UgcVideoCap()
