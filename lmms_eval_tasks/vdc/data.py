"""VDC's official files: the questions of an aspect, reference captions, and videos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.question_file import (
    Keep,
    QuestionFile,
    Row,
    of_json_lines,
    read_pair,
)
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

SOURCE: Final = Source(
    benchmark="vdc",
    page="https://huggingface.co/datasets/wchai/Video-Detailed-Caption",
    license="Apache-2.0",
    video_folder="vdc/videos",
    hub_repo="wchai/Video-Detailed-Caption",
    archives=("videos/videos_*.tar.gz",),
)
"""``VDC_1k.jsonl``, ``VDCScore_qa/<aspect>.jsonl``, three shards of videos."""
REFERENCES: Final = "VDC_1k.jsonl"
"""File of reference captions, one row for each video."""
Pair = dict[str, str]
"""One question, its gold ``answer`` and its ``category``."""


def questions_file(aspect: str) -> str:
    """Return the file that holds the questions of an aspect."""
    return f"VDCScore_qa/{aspect}.jsonl"


def read_questions(settings: DataSettings, aspect: str) -> dict[str, list[Pair]]:
    """Return the questions of one aspect, by video id, in the official order.

    Every official line holds one video under a key of its own. Of a repeated video the last line
    counts, as in the released script's dictionary. Empty pairs are kept.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path = find_file(settings, SOURCE, questions_file(aspect))
    questions = {
        video_id: read_pairs(pairs, where=f"{path}, line {number}, video {video_id!r:.80}")
        for number, row in read_numbered_jsonl(path)
        for video_id, pairs in row.items()
    }
    if not questions:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    return questions


def read_pairs(value: object, *, where: str) -> list[Pair]:
    """Return the questions of one video, checked.

    Raises:
        DataError: If they are not of the official form; the message begins with ``where``.
    """
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of question-answer pairs, got {value!r:.80}")
    return [
        read_pair(pair, "category", where=f"{where}, question {number}")
        for number, pair in enumerate(value, 1)
    ]


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    last = {video_id: index for index, row in enumerate(rows) for video_id in row}
    for index, row in enumerate(rows):
        kept = {
            video_id: [pair for pair in pairs if keep(video_id, pair["question"])]
            for video_id, pairs in row.items()
            if last[video_id] == index
        }
        if any(kept.values()):
            yield {video_id: pairs for video_id, pairs in kept.items() if pairs}


QUESTION_FILE: Final = QuestionFile(
    lambda fields: questions_file(fields["aspect"]), of_json_lines(_select)
)
"""One for each aspect."""


def read_references(settings: DataSettings, aspect: str) -> dict[str, str]:
    """Return the reference caption of each video for one aspect, in the official order.

    Of a repeated video the last row counts. Videos with an empty reference are left out, with a
    warning.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path, column = find_file(settings, SOURCE, REFERENCES), f"{aspect}_caption"
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
    kept = {video_id: text for video_id, text in captions.items() if text.strip()}
    if not kept:
        raise DataError(f"{path}: expected at least one video with a {column}, the file has none")
    if len(kept) < len(captions):
        logger.warning(
            f"{path}: {len(captions) - len(kept)} of {len(captions):,} videos have no {column} and "
            "are left out"
        )
    return kept
