"""The rows of several caption files as those of one, where they do not contradict each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.columns import captions_of, video_of
from lmms_eval_captions.model_wrappers.caption_files.rows import CaptionRow, read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_Key = tuple[str, str, str]
"""Task, video and aspect."""


def read_files(paths: Sequence[Path], column: str | None) -> list[CaptionRow]:
    """The rows of all files, in order.

    Args:
        paths: At least one.
        column: The only column to take captions from, or ``None``.

    Raises:
        CaptionError: If a file cannot be read, all together have more than two million rows, or
            two files give one video different captions: within a file the last one counts, but
            nobody can tell which file does.
    """
    if len(paths) == 1:
        return read_rows(paths[0])
    rows: list[CaptionRow] = []
    seen: dict[_Key, tuple[str, Path]] = {}
    for path in paths:
        own = [replace(row, place=f"{path.name}, {row.place}") for row in read_rows(path)]
        rows += own
        for key, caption in _captions(own, path, column).items():
            other, before = seen.setdefault(key, (caption, path))
            if other != caption:
                raise CaptionError(
                    f"{before} and {path} have different captions of video {key[1]!r:.80}; give "
                    "one of the two, or files of different videos or aspects"
                )
    return rows


def _captions(rows: Sequence[CaptionRow], path: Path, column: str | None) -> dict[_Key, str]:
    """What counts in one file: the last caption of each video and aspect."""
    captions: dict[_Key, str] = {}
    for row in rows:
        video = video_of(row.fields)
        for role, caption in captions_of(row, path, column).items():
            captions[str(row.fields.get("task")), str(video), role] = caption
    return captions
