"""CapQuiz's file: multiple-choice questions of ten types, and videos.

The benchmark is announced and not released: the schema is ours, and is checked in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.capquiz import N_OPTIONS, UNKNOWN
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.question_file import (
    Keep,
    QuestionFile,
    Row,
    of_json_lines,
)
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source

SOURCE: Final = Source(
    benchmark="capquiz",
    page="the paper's project page",
    license="not released",
    video_folder="capquiz/videos",
    note="CapQuiz is announced and not released; a local capquiz.jsonl of the schema in the task's "
    "README can be scored.",
)

FILE: Final = "capquiz.jsonl"

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Descriptive": ("Entity", "Attribute", "Action", "Event", "Setting"),
    "Inferential": (
        "Relational Reasoning",
        "Causal Reasoning",
        "Interpretive Reasoning",
        "Intent & Emotion Reasoning",
        "Grounding Reasoning",
    ),
}
"""Groups and their ten question types (figures 2b and 6)."""

GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}
"""Group of each question type."""

DOMAINS: Final[dict[str, tuple[str, ...]]] = {
    "Knowledge": ("Nature", "Science", "Health", "History", "Society"),
    "Everyday": ("Human Bonds", "Animal Companions", "Personal Life"),
    "Creativity": (
        "Movie & Show", "Dance & Performance", "Music & Singing", "Animation", "Comedy Sketch",
        "Game", "Sports",
    ),
    "Civics": ("News", "Social Issues", "Civic Action"),
    "Function": (
        "How-To", "Cooking", "Buyer's Guide", "Travel Planning", "Life Guide",
        "Functional Recordings",
    ),
}  # fmt: skip
"""Super-categories of videos and their 24 domains (figure 5)."""

SUPER_OF: Final = {name: group for group, names in DOMAINS.items() for name in names}
"""Super-category of each domain that the paper names."""

_N_SHOWN: Final = 5
_TYPES: Final = {name.casefold(): name for name in GROUP_OF}


def read_videos(settings: DataSettings) -> list[Row]:
    """Return the rows of the file: ``video``, ``domain`` and ``questions``, checked, in its order.

    Raises:
        DataError: If the file is missing, or something in it is not of the schema; the message
            names the line and the field.
    """
    path = find_file(settings, SOURCE, FILE)
    lines: dict[str, int] = {}
    videos: list[Row] = []
    for number, row in read_numbered_jsonl(path):
        where, questions = f"{path}, line {number}, ", row.get("questions")
        video, domain = (_text(row, name, where) for name in ("video", "domain"))
        if lines.setdefault(video, number) != number:
            raise DataError(f"{where}video: {video!r} is on line {lines[video]} already")
        if not isinstance(questions, list) or not questions:
            raise DataError(
                f"{where}questions: expected a list with at least one question, got "
                f"{questions!r:.60}"
            )
        quiz = read_questions(questions, where=where)
        videos.append({"video": video, "domain": domain, "questions": quiz})
    if not videos:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    types = [question["category"] for video in videos for question in video["questions"]]
    if own := Counter(name for name in types if name not in GROUP_OF):
        logger.warning(
            "{}: {:,} questions are of types that the paper does not name, which count overall and "
            "in no group: {}",
            path,
            own.total(),
            ", ".join(f"{name} ({n:,})" for name, n in own.most_common(_N_SHOWN)),
        )
    return videos


def read_questions(values: Sequence[object], *, where: str = "") -> list[Row]:
    """Return the questions of one video, with the paper's names of their types.

    Raises:
        DataError: If one is not of the schema; the message begins with ``where``.
    """
    return [_question(value, f"{where}questions[{index}]") for index, value in enumerate(values)]


def _question(value: object, where: str) -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, got {value!r:.60}")
    category, asked = (_text(value, name, f"{where}.") for name in ("category", "question"))
    options, answer = value.get("options"), value.get("answer")
    if (
        not isinstance(options, list)
        or len(options) != N_OPTIONS
        or not all(isinstance(option, str) and option.strip() for option in options)
    ):
        raise DataError(f"{where}.options: expected {N_OPTIONS} texts, got {options!r:.120}")
    plain = {" ".join(option.split()).casefold().rstrip(".") for option in [*options, UNKNOWN]}
    if len(plain) <= N_OPTIONS:
        raise DataError(
            f"{where}.options: expected different texts, none of them {UNKNOWN!r}, got "
            f"{options!r:.120}"
        )
    if answer not in options:
        raise DataError(f"{where}.answer: expected one of the options, got {answer!r:.60}")
    # Case does not matter, nor a missing "Reasoning"; a custom type is kept as it is spelled.
    spelled = " ".join(category.split())
    name = spelled.casefold()
    kind = _TYPES.get(name) or _TYPES.get(f"{name} reasoning") or spelled
    return {"category": kind, "question": asked, "options": options, "answer": answer}


def _text(row: Mapping[str, object], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}{name}: expected text, got {value!r:.60}")
    return value


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    for row in rows:
        kept = [asked for asked in row["questions"] if keep(row["video"], asked["question"])]
        if kept:
            yield {**row, "questions": kept}


QUESTION_FILE: Final = QuestionFile(lambda _fields: FILE, of_json_lines(_select))
"""One for both tasks."""
