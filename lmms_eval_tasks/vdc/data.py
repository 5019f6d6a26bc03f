"""VDC's official files: the questions of an aspect, and videos."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.sources import (
    Keep,
    QuestionFile,
    Row,
    Source,
    of_json_lines,
)

SOURCE: Final = Source(
    benchmark="vdc",
    page="https://huggingface.co/datasets/wchai/Video-Detailed-Caption",
    license="Apache-2.0",
    video_folder="vdc/videos",
    hub_repo="wchai/Video-Detailed-Caption",
    archives=("videos/videos_*.tar.gz",),
)
"""``VDC_1k.jsonl``, ``VDCScore_qa/<aspect>.jsonl``, three shards of videos."""

_FIELDS: Final = ("question", "answer", "category")

Pair = dict[str, str]
"""One question, its gold ``answer`` and its ``category``."""


def questions_file(aspect: str) -> str:
    """The file that holds the questions of an aspect."""
    return f"VDCScore_qa/{aspect}.jsonl"


def read_questions(settings: DataSettings, aspect: str) -> dict[str, list[Pair]]:
    """The questions of one aspect, by video id, in the official order.

    Every official line holds one video under a key of its own. Of a video that is there more than
    once the last line counts, as in the released script's dictionary; empty pairs are kept, too.

    Args:
        settings: Says where the data is.
        aspect: One of the five, such as ``camera``.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path = find_file(settings, SOURCE, questions_file(aspect))
    questions: dict[str, list[Pair]] = {}
    for number, row in read_numbered_jsonl(path):
        for video_id, pairs in row.items():
            questions[video_id] = read_pairs(
                pairs, where=f"{path}, line {number}, video {video_id!r:.80}"
            )
    if not questions:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    return questions


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    # Of a video that is there more than once the last line counts.
    last = {video_id: place for place, row in enumerate(rows) for video_id in row}
    for place, row in enumerate(rows):
        counting = {video_id: pairs for video_id, pairs in row.items() if last[video_id] == place}
        kept = {
            video_id: [pair for pair in pairs if keep(video_id, pair["question"])]
            for video_id, pairs in counting.items()
        }
        if any(kept.values()):
            yield {video_id: pairs for video_id, pairs in kept.items() if pairs}


QUESTION_FILE: Final = QuestionFile(
    lambda fields: questions_file(fields["aspect"]), of_json_lines(_select)
)
"""One for each aspect."""


def read_pairs(value: object, *, where: str) -> list[Pair]:
    """The questions of one video, checked.

    Args:
        value: As a row has them.
        where: Where they stand, for messages.

    Raises:
        DataError: If they are not of the official form.
    """
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of question-answer pairs, got {value!r:.80}")
    return [_pair(pair, where=f"{where}, question {i}") for i, pair in enumerate(value, 1)]


def _pair(value: object, *, where: str) -> Pair:
    if not isinstance(value, dict) or not {"question", "answer"} <= set(value):
        raise DataError(f"{where}: expected 'question' and 'answer', got {value!r:.80}")
    pair = {field: value.get(field, "") for field in _FIELDS}
    if not all(isinstance(text, str) for text in pair.values()):
        raise DataError(f"{where}: expected text, got {pair!r:.120}")
    return pair
