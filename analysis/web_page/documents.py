"""The documents of a task, for pages that show what was asked and the videos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.hub import has_videos
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

Documents = Mapping[str, Mapping[str, Any]]
"""Video's id to its document."""


def documents_of(task: str, settings: DataSettings, *, is_needed: bool = False) -> Documents:
    """The documents of a task by video; none where they are not at hand.

    Args:
        task: One of ours.
        settings: Says where data is.
        is_needed: Whether nothing can be shown without them; otherwise nothing is downloaded.

    Raises:
        DataError: If they are needed, and not there.
    """
    benchmark = benchmark_of_task(task)
    if not is_needed and settings.data is None and not has_videos(benchmark.source, settings.cache):
        return {}
    try:
        read = benchmark.read(settings, benchmark.tasks[task])
    except DataError:
        if is_needed:
            raise
        return {}
    return {benchmark.video_id(doc): doc for doc in read}


def documents_to_label(task: str, settings: DataSettings) -> Documents:
    """The same for people who are asked about the task.

    Raises:
        DataError: If they cannot be asked without the documents, and these are not there.
    """
    grading = benchmark_of_task(task).grading
    return documents_of(task, settings, is_needed=grading is not None and grading.needs_data)
