"""MSVD-Eval: its official file, and a task for each of G-VEval's settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Final, get_args

from lmms_eval_captions.judges.endpoint.request import Picture
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.gveval import ACCR, GVeval, Setting
from lmms_eval_captions.judges.settings import DataSettings, data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_captions.lmms_eval_tasks.common.gveval_tasks import Comparison, GVevalBenchmark
from lmms_eval_captions.lmms_eval_tasks.data import files
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.model_wrappers.video.frame_strip import Sampling, frame_strip

SOURCE: Final = Source(
    benchmark="msvd_eval",
    page="https://huggingface.co/datasets/friedrichor/MSVD",
    video_folder="msvd_eval/YouTubeClips",
    hub_repo="friedrichor/MSVD",
    note="MSVD-Eval.json is in https://github.com/ztangaj/gveval: put it at "
    "DATA/msvd_eval/MSVD-Eval.json; VLM2Vec/MSVD holds the raw videos too.",
)
FILE: Final = "MSVD-Eval.json"

RATED: Final = (*ACCR, "avg")
"""Ratings in each annotator's row, in this order, 1 to 5."""


@dataclass(frozen=True, slots=True)
class Item:
    """One video with its reference captions, and the published candidate with its ratings."""

    video_id: str
    vname: str
    """Name of the clip's file."""
    references: tuple[str, ...]
    candidate: str
    ratings: tuple[tuple[float, ...], ...]
    """Shape (n_annotators, 5), in [1, 5]: the four dimensions and their mean."""


def read_items(settings: DataSettings) -> list[Item]:
    """Return the videos of ``MSVD-Eval.json``, in the official order.

    Raises:
        DataError: If the file is missing or not of the official shape.
    """
    path = files.find_file(settings, SOURCE, FILE)
    return [_item(video_id, row, path) for video_id, row in _read_videos(path).items()]


def collapsed(text: str) -> str:
    r"""Return a published caption as the released code judges it, with single spaces.

    Source: ztangaj/gveval@fee3fd7:dataset.py, class MSVD. 53 of the 197 candidates change.

    >>> collapsed("A man cooks. \n\nHe stirs.")
    'A man cooks. He stirs.'
    """
    return " ".join(text.split())


def _read_videos(path: Path) -> dict[str, object]:
    rows: dict[str, object] = files.read_json(path, dict)
    if not rows:
        raise DataError(f"{path}: expected a JSON object of videos, got none")
    return rows


def _select(path: Path, keep: files.Keep) -> str:
    # There is one question about a video, which needs no text.
    kept = {video_id: row for video_id, row in _read_videos(path).items() if keep(video_id, "")}
    return json.dumps(kept, ensure_ascii=False)


def _item(video_id: str, row: object, path: Path) -> Item:
    where = f"{path}, video {video_id!r:.80}"
    if not isinstance(row, dict) or not {"vname", "ref"} <= set(row):
        raise DataError(f"{where}: expected an object with 'vname' and 'ref', got {row!r:.80}")
    references, candidate = row["ref"], row.get("candidate", "")
    texts = [row["vname"], candidate, *(references if isinstance(references, list) else [None])]
    if len(texts) < 3 or not all(isinstance(text, str) for text in texts):
        raise DataError(
            f"{where}: expected a file name and at least one reference, got {row!r:.80}"
        )
    ratings = row.get("human_score", [])
    try:
        rated = tuple(tuple(float(number) for number in rating) for rating in ratings)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: expected ratings as numbers, got {ratings!r:.80}") from error
    if not all(len(rating) == len(RATED) and all(map(isfinite, rating)) for rating in rated):
        raise DataError(f"{where}: expected {len(RATED)} numbers a rating, got {ratings!r:.80}")
    return Item(video_id, row["vname"], tuple(references), candidate, rated)


class MsvdEval(GVevalBenchmark):
    """Scores of captions with references, frames, or both; the paper shows the judge three frames.

    Args:
        sampling: Choice of the frames, by default the paper's: first, middle and last.
    """

    source = SOURCE
    probe_file = FILE
    question_file = files.QuestionFile(lambda _fields: FILE, _select)
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
                **task.fields,
                "references": [*item.references],
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
        path = files.find_video(settings, SOURCE, video)
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
