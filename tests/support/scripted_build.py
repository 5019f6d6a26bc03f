"""A build of clips that are not there: each is seen as its name."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import (
    DataSettings,
    read_data_settings,
    read_judge_settings,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.building import categories_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Crew, Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import Frames, Shown
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Done, run_stages
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import Video
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work, kept
from scripted_crew import model

HARD_REPLIES = {
    "empty": "",
    "prose": "I am sorry, I cannot see a video.",
    "wrong keys": '[{"q": "Is it?", "a": "yes"}]',
    "cut at once": '[{"category": "color", "quest',
    "a number": "17",
    "deep": "[" * 1000,
    "half character": "\ud83d",
    "loop": "and it turns and it turns " * 400,
    "2,000 questions": json.dumps(
        [{"category": "color", "question": f"What is {n}?", "answer": "no"} for n in range(2000)]
    ),
}
"""Replies that no reader of questions, groups or reviews can use."""
NO_CAPTIONS = frozenset(
    HARD_REPLIES[name] for name in ("empty", "loop", "wrong keys", "cut at once", "2,000 questions")
)
"""Those of them that are no caption in words either."""


class _NoFrames(Frames):
    """Shows a clip's name in the place of its frames."""

    def of(self, video: Video) -> Shown:
        """See :class:`Frames`."""
        url = f"data:image/png;base64,clip={video.video_id};"
        part = {"type": "image_url", "image_url": {"url": url}}
        return Shown((part,), (0.0,), 5.0, (32, 32))


def clip_of(request: Request) -> str:
    """The clip whose frames a request shows; empty where it shows none."""
    found = re.search(r"clip=([^;]+);", str(request.messages))
    return found[1] if found else ""


def prompt_of(request: Request) -> str:
    """The name of a request's prompt."""
    return request.protocol.partition(":")[0]


def prompts_of(requests: Iterable[Request]) -> Counter[str]:
    """How often each prompt was put."""
    return Counter(map(prompt_of, requests))


def work_of(
    kind: Kind,
    folder: Path,
    crew: Crew,
    *,
    clips: Iterable[str] = ("one", "two"),
    writers: Iterable[str] = ("writer",),
    solvers: Iterable[str] = ("solver",),
    **options: Any,
) -> Work:
    """The work of a build whose clips are empty files.

    Args:
        kind: The benchmark.
        folder: Where clips, data and stages are.
        crew: Who answers.
        clips: Names of clips.
        writers: Names of models.
        solvers: Names of models.
        options: Further options.
    """
    source = folder / "clips"
    source.mkdir(exist_ok=True)
    videos = [Video(name, source / f"{name}.mp4") for name in clips]
    for video in videos:
        video.path.touch()
    given: dict[str, Any] = {
        "kind": kind.name,
        "videos": source,
        "data": folder / "data",
        "writers": tuple(map(model, writers)),
        "solvers": tuple(map(model, solvers)),
        "viewers": (model("viewer"),),
        "per_video": kind.per_video,
        **options,
    }
    chosen = Options(**given)
    return Work(
        options=chosen,
        settings=read_judge_settings({"LMMS_CAPTIONS_CACHE": str(folder / "cache")}),
        prompts=Prompts(),
        videos=videos,
        frames=_NoFrames(n_frames=1, frame_pixels=1024),
        crew=crew,
        categories=categories_of(kind, chosen.categories),
        is_rehearsal=isinstance(crew, Rehearsal),
    )


def build_all(kind: Kind, work: Work) -> dict[str, Done]:
    """All stages and files of a build; stage to what was done."""
    done = run_stages(kind.stages(work.options), work)
    rows = kept(last_rows(work))
    if rows:
        kind.write(work, rows)
    return {each.stage.name: each for each in done}


def last_rows(work: Work) -> list[Row]:
    """The rows of the last stage."""
    return list(work.rows.values())[-1]


def left(work: Work) -> list[str]:
    """The questions that are left, in order."""
    return [row["question"] for row in kept(last_rows(work))]


def reasons(work: Work) -> dict[str, str]:
    """Question to why it was dropped, in any stage."""
    return {
        row["question"]: row["dropped"]
        for rows in work.rows.values()
        for row in rows
        if "dropped" in row and "question" in row
    }


def settings_of(work: Work) -> DataSettings:
    """Settings by which tasks read what was built."""
    return read_data_settings({"LMMS_CAPTIONS_DATA": str(work.options.data)})
