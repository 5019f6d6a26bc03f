"""What a judge that sees is shown of a document's video."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_video
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

T = TypeVar("T")


def seen_of(source: Source, video: str, draw: Callable[[Path, Path], T]) -> T:
    """What is drawn of a video for the judge.

    Args:
        source: The benchmark.
        video: Its name below the benchmark's folder of videos.
        draw: Draws from the video's file, given the package's cache folder.

    Raises:
        DataError: If the video is not there or cannot be read.
    """
    settings = data_settings()
    try:
        return draw(find_video(settings, source, video), settings.cache)
    except DataError as error:
        raise DataError(f"no frames to show to the judge: {error}") from error
