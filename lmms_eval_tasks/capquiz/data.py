"""CapQuiz's file: multiple-choice questions of ten types, and videos.

The benchmark is announced and not released: the schema is ours, and is checked in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

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
_FIELDS: Final = ("category", "question", "options", "answer")
_TYPES: Final = {name.casefold(): name for name in GROUP_OF}


def read_videos(settings: DataSettings) -> list[Row]:
    """Return the rows of the file: ``video``, ``domain`` and ``questions``, checked, in its order.

    Raises:
        DataError: If the file is missing, or anything in it is not of the schema; the message names
            the line and the field of the first problems.
    """
    path = find_file(settings, SOURCE, FILE)
    rows = read_numbered_jsonl(path)
    wrong = list(problems(rows))
    if wrong:
        more = f"; {len(wrong) - _N_SHOWN:,} more" if len(wrong) > _N_SHOWN else ""
        raise DataError(
            f"{path} is not of CapQuiz's schema (see the task's README): "
            f"{'; '.join(wrong[:_N_SHOWN])}{more}. Correct the file"
        )
    if not rows:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    videos: list[Row] = [
        {
            "video": row["video"],
            "domain": row["domain"],
            "questions": [_with_type(question) for question in cast("list[Row]", row["questions"])],
        }
        for _, row in rows
    ]
    types = Counter(question["category"] for video in videos for question in video["questions"])
    own = Counter({name: n for name, n in types.items() if name not in GROUP_OF})
    if own:
        logger.warning(
            "{}: {:,} questions are of types that the paper does not name, which count overall and "
            "in no group: {}",
            path,
            own.total(),
            ", ".join(f"{name} ({n:,})" for name, n in own.most_common(_N_SHOWN)),
        )
    return videos


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    for row in rows:
        kept = [asked for asked in row["questions"] if keep(row["video"], asked["question"])]
        if kept:
            yield {**row, "questions": kept}


QUESTION_FILE: Final = QuestionFile(lambda _fields: FILE, of_json_lines(_select))
"""One for both tasks."""


def problems(rows: Iterable[tuple[int, Mapping[str, object]]]) -> Iterator[str]:
    """Yield what is wrong with the rows of a file, as ``line 3, questions[0].options: ...``.

    Args:
        rows: Each with the number of its line.
    """
    lines: dict[str, int] = {}
    for number, row in rows:
        for problem in _row_problems(row):
            yield f"line {number}, {problem}"
        video = row.get("video")
        if isinstance(video, str) and lines.setdefault(video, number) != number:
            yield f"line {number}, video: {video!r} is on line {lines[video]} already"


def read_questions(values: Sequence[Any]) -> list[Row]:
    """Return the questions of one video, with the paper's names of their types.

    Raises:
        DataError: If one is not of the schema; the message says which.
    """
    for problem in _questions_problems(values):
        raise DataError(problem)
    return [_with_type(value) for value in values]


def _row_problems(row: Mapping[str, object]) -> Iterator[str]:
    for name in ("video", "domain"):
        if not _is_text(row.get(name)):
            yield f"{name}: expected text, got {row.get(name)!r:.60}"
    questions = row.get("questions")
    if isinstance(questions, list) and questions:
        yield from _questions_problems(questions)
    else:
        yield f"questions: expected a list with at least one question, got {questions!r:.60}"


def _questions_problems(questions: Sequence[object]) -> Iterator[str]:
    for index, question in enumerate(questions):
        where = f"questions[{index}]"
        if isinstance(question, dict):
            yield from (f"{where}.{problem}" for problem in _question_problems(question))
        else:
            yield f"{where}: expected an object, got {question!r:.60}"


def _question_problems(question: Mapping[str, object]) -> Iterator[str]:
    category, asked, options, answer = map(question.get, _FIELDS)
    if not _is_text(category):
        yield f"category: expected text, such as {next(iter(GROUP_OF))}, got {category!r:.60}"
    if not _is_text(asked):
        yield f"question: expected text, got {asked!r:.60}"
    if (
        not isinstance(options, list)
        or len(options) != N_OPTIONS
        or not all(map(_is_text, options))
    ):
        yield f"options: expected {N_OPTIONS} texts, got {options!r:.120}"
        return
    plain = {" ".join(option.split()).casefold().rstrip(".") for option in [*options, UNKNOWN]}
    if len(plain) <= N_OPTIONS:
        yield f"options: expected different texts, none of them {UNKNOWN!r}, got {options!r:.120}"
    if answer not in options:
        yield f"answer: expected one of the options, got {answer!r:.60}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _with_type(question: Row) -> Row:
    """Return a checked question with the paper's name of its type, and no unknown fields.

    Case does not matter, nor a missing "Reasoning"; a custom type is kept as it is spelled.
    """
    spelled = " ".join(question["category"].split())
    name = spelled.casefold()
    kind = _TYPES.get(name) or _TYPES.get(f"{name} reasoning") or spelled
    return {**{field: question[field] for field in _FIELDS}, "category": kind}
