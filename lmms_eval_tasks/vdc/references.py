"""VDC's reference captions: ``VDC_1k.jsonl``, one row for each video."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Task
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.vdc.data import SOURCE

REFERENCES: Final = "VDC_1k.jsonl"


def read_references(settings: DataSettings, aspect: str) -> dict[str, str]:
    """The reference caption of each video for one aspect, by video id, in the official order.

    Of a video that is there more than once the last row counts. One without a word has nothing to
    compare with: it is left out, and said.

    Args:
        settings: Says where the data is.
        aspect: One of the five, such as ``camera``.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path = find_file(settings, SOURCE, REFERENCES)
    column = f"{aspect}_caption"
    captions: dict[str, str] = {}
    for number, row in read_numbered_jsonl(path):
        video_id, caption = row.get("video_id"), row.get(column)
        is_text = isinstance(caption, str) or (caption is None and column in row)
        if not isinstance(video_id, str) or not is_text:
            raise DataError(
                f"{path}, line {number}: expected texts under 'video_id' and {column!r}, got "
                f"{row!r:.120}; download the file again from {SOURCE.page}"
            )
        captions[video_id] = str(caption or "")
    return _with_words(captions, path, column)


def documents(settings: DataSettings, task: Task) -> list[dict[str, object]]:
    """A document for each video that has a reference caption of the task's aspect."""
    aspect = task.fields["aspect"]
    return [
        {"video_id": video_id, "aspect": aspect, "reference": reference}
        for video_id, reference in read_references(settings, aspect).items()
    ]


def _with_words(captions: dict[str, str], path: Path, column: str) -> dict[str, str]:
    kept = {video_id: text for video_id, text in captions.items() if text.strip()}
    if not kept:
        raise DataError(f"{path}: expected at least one video with a {column}, the file has none")
    if len(kept) < len(captions):
        logger.warning(
            "{}: {} of {:,} videos have no {} and are left out",
            path,
            len(captions) - len(kept),
            len(captions),
            column,
        )
    return kept
