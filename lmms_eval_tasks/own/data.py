"""The user's clips: every video below a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Task
from lmms_eval_captions.lmms_eval_tasks.data.files import list_videos
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

SOURCE: Final = Source(
    benchmark="own",
    page="",
    license="yours",
    video_folder="own/videos",
    note="Put the clips, or links to them, into DATA/own/videos, in folders of any depth, and set "
    "LMMS_CAPTIONS_DATA=DATA",
)


def documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    """Return a document for each clip, by its path below the folder.

    Raises:
        DataError: If there is no clip; the message says where they go.
    """
    names = list_videos(settings, SOURCE)
    # A caption file's ``clip`` is any clip of that name, whatever its folder.
    counts = Counter(PurePosixPath(name).stem for name in names)
    shared = [name for name, n in counts.items() if n > 1]
    if shared:
        logger.warning(
            "own: {} names are those of several clips, such as {!r}: a caption file must name each "
            "of these clips by its path below own/videos",
            len(shared),
            shared[0],
        )
    return [{"video_id": name, **task.fields} for name in names]
