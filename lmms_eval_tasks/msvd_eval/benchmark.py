"""MSVD-Eval: a task for each of G-VEval's settings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.common.gveval_tasks import Comparison, GVevalBenchmark
from lmms_eval_captions.lmms_eval_tasks.data.files import find_video
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import (
    FILE,
    QUESTION_FILE,
    SOURCE,
    read_items,
)
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip


class MsvdEval(GVevalBenchmark):
    """Scores of captions with references, frames, or both; the paper shows the judge three frames.

    Args:
        sampling: Choice of the frames, by default the paper's: first, middle and last.
    """

    name = "msvd_eval"
    folder = Path(__file__).parent
    source = SOURCE
    probe_file = FILE
    question_file = QUESTION_FILE
    name_fields = ("video_id", "vname")

    def __init__(self, sampling: Sampling = "first_middle_last") -> None:
        self.sampling = sampling
        tasks = [_task(setting, sampling) for setting in get_args(Setting)]
        self.tasks = {task.name: task for task in tasks}

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the videos with their references."""
        return [
            {
                "video_id": item.video_id,
                "vname": item.vname,
                "setting": task.fields["setting"],
                "references": list(item.references),
            }
            for item in read_items(settings)
        ]

    def questions(self, doc: Doc) -> list[Comparison]:
        """Return the one question."""
        # With references alone the judge sees the picture only as published.
        picture = partial(_strip, str(doc["vname"]), self.sampling)
        return [Comparison(GVeval(doc["setting"]), tuple(doc["references"]), picture)]


def _strip(video: str, sampling: Sampling) -> Picture:
    """Return the three frames that the judge sees of a video, as one picture."""
    settings = data_settings()
    try:
        path = find_video(settings, SOURCE, video)
        return frame_strip(path, cache=settings.cache, sampling=sampling)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error


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


MSVD_EVAL: Final = MsvdEval()
