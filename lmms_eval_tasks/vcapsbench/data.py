"""VCapsBench's official file: yes-no questions in 21 categories, and videos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loguru import logger

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
    benchmark="vcapsbench",
    page="https://huggingface.co/datasets/somos99/VCapsBench",
    license="see its page",
    video_folder="vcapsbench/videos5k",
    hub_repo="somos99/VCapsBench",
    # The repository holds archives of captions and results beside those of videos.
    archives=("*video*.zip", "*video*.tar", "*video*.tar.gz", "**/*video*.zip"),
)
"""The repository's list of files is unseen."""

FILE: Final = "VCapsBench_100KQA.jsonl"

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Content & Entity": (
        "proper noun", "action", "relation", "count", "entity", "entity size", "entity shape",
    ),
    "Color & Lighting": ("lighting", "color palette", "color grading", "color"),
    "Visuals & Composition": ("position", "relative position", "background", "text", "blur"),
    "Cinematography & Atmosphere": (
        "style", "camera movement", "shot type", "emotion", "atmosphere",
    ),
}  # fmt: skip
"""The four groups and their 21 categories, in the order of the paper's tables."""

GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}
"""Category to its group."""

_N_SHOWN: Final = 3


@dataclass(slots=True)
class Video:
    """One video with its questions."""

    video_id: str
    questions: list[dict[str, str]] = field(default_factory=list)
    """``category``, ``question`` and ``answer`` (yes or no) of each."""
    n_malformed: int = 0
    """Strings of this video that are no question and are left out."""
    n_malformed_in_file: int = 0
    """Those of all videos, also of videos that have no other strings and are left out."""


def read_videos(settings: DataSettings) -> list[Video]:
    """The videos that have questions, in the official order; what is left out is logged.

    Rows of one and the same video are taken together. A string that is not
    ``category*question*answer`` is left out. A question of a category that the paper does not name
    is kept, and counts in no group.

    Raises:
        DataError: If the file is missing or a row is not of the official shape.
    """
    path = find_file(settings, SOURCE, FILE)
    videos: dict[str, Video] = {}
    malformed: list[str] = []
    for number, row in read_numbered_jsonl(path):
        video_id, texts = _check_row(row, where=f"{path}, line {number}")
        video = videos.setdefault(video_id, Video(video_id))
        for text in texts:
            question = parse_question(text)
            if question is None:
                malformed.append(f"{video_id}: {text!r:.80}")
                video.n_malformed += 1
            else:
                video.questions.append(question)
    for video in videos.values():
        video.n_malformed_in_file = len(malformed)
    asked_about = [video for video in videos.values() if video.questions]
    if not asked_about:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    _report(path, videos.values(), malformed)
    return asked_about


def parse_question(text: object) -> dict[str, str] | None:
    """``category``, ``question`` and ``answer`` of an official string, ``None`` where malformed.

    The first star ends the category and the last one begins the answer, so that a question may hold
    stars of its own.

    >>> parse_question("text * Is there a sign saying 5*? * Yes")
    {'category': 'text', 'question': 'Is there a sign saying 5*?', 'answer': 'yes'}
    >>> parse_question("Is there a sign?*yes") is None
    True
    """
    if not isinstance(text, str):
        return None
    head, _, rest = text.partition("*")
    question, _, tail = rest.rpartition("*")
    category = category_name(head)
    answer = tail.strip(" \t\r\n.\"'").lower()
    if not category or not question.strip() or answer not in ("yes", "no"):
        return None
    return {"category": category, "question": question.strip(), "answer": answer}


def category_name(text: str) -> str:
    """A category as the paper's tables spell it, in lower case.

    >>> category_name(" Camera_movement")
    'camera movement'
    """
    return " ".join(text.replace("_", " ").replace("-", " ").lower().split())


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    for row in rows:
        read = ((text, parse_question(text)) for text in row["qa"])
        kept = [text for text, asked in read if asked and keep(row["video_id"], asked["question"])]
        if kept:
            yield {**row, "qa": kept}


QUESTION_FILE: Final = QuestionFile(lambda _fields: FILE, of_json_lines(_select))
"""Strings that are no question are left out."""


def _check_row(row: dict[str, object], *, where: str) -> tuple[str, list[object]]:
    video_id, texts = row.get("video_id"), row.get("qa")
    if not isinstance(video_id, str) or not video_id.strip():
        raise DataError(f"{where}: expected 'video_id' with a name, got {video_id!r:.80}")
    if not isinstance(texts, list):
        raise DataError(
            f"{where}, video {video_id!r:.80}: expected 'qa' with a list, got {texts!r:.80}"
        )
    return video_id, texts


def _report(path: Path, videos: Iterable[Video], malformed: list[str]) -> None:
    """Log what was left out, and categories that the paper does not name."""
    videos = list(videos)
    n_questions = sum(len(video.questions) for video in videos)
    if malformed:
        logger.warning(
            "{}: {:,} of {:,} strings are not category*question*answer with the answer yes or no "
            "and are left out, such as {}",
            path,
            len(malformed),
            n_questions + len(malformed),
            "; ".join(malformed[:_N_SHOWN]),
        )
    empty = [video.video_id for video in videos if not video.questions]
    if empty:
        logger.warning(
            "{}: {:,} videos have no question and are left out, such as {}",
            path,
            len(empty),
            ", ".join(empty[:_N_SHOWN]),
        )
    other = sorted(
        {
            q["category"]
            for video in videos
            for q in video.questions
            if q["category"] not in GROUP_OF
        }
    )
    if other:
        logger.warning(
            "{}: {:,} categories that the paper does not name count overall and in no group: {}",
            path,
            len(other),
            ", ".join(other[:_N_SHOWN]),
        )
