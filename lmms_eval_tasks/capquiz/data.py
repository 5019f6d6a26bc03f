"""CapQuiz's file: multiple-choice questions of ten types, and videos.

The benchmark is announced and not released: the schema is ours, and is checked in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.protocols.capquiz import N_OPTIONS, UNKNOWN
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
"""The two groups and their ten question types (figures 2b and 6)."""

GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}
"""Question type to its group."""

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
"""The five super-categories of videos and their 24 domains (figure 5)."""

SUPER_OF: Final = {name: group for group, names in DOMAINS.items() for name in names}
"""Domain to its super-category; a domain that the paper does not name has none."""

_N_SHOWN: Final = 5
_TYPES: Final = {name.casefold(): name for name in GROUP_OF}


def read_videos(settings: DataSettings) -> list[Row]:
    """The rows of the file: ``video``, ``domain`` and ``questions``, checked, in its order.

    Raises:
        DataError: If the file is missing, or anything in it is not of the schema; the text names
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
    videos = [_normal(row) for _, row in rows]
    _tell_of_own_types(path, videos)
    return videos


def _tell_of_own_types(path: Path, videos: Iterable[Row]) -> None:
    """Log the question types that the paper does not name."""
    own = Counter(
        question["category"]
        for video in videos
        for question in video["questions"]
        if question["category"] not in GROUP_OF
    )
    if own:
        logger.warning(
            "{}: {:,} questions are of types that the paper does not name, which count overall and "
            "in no group: {}",
            path,
            own.total(),
            ", ".join(f"{name} ({n:,})" for name, n in own.most_common(_N_SHOWN)),
        )


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    for row in rows:
        kept = [asked for asked in row["questions"] if keep(row["video"], asked["question"])]
        if kept:
            yield {**row, "questions": kept}


QUESTION_FILE: Final = QuestionFile(lambda _fields: FILE, of_json_lines(_select))
"""Both tasks ask the same."""


def problems(rows: Iterable[tuple[int, Mapping[str, object]]]) -> Iterator[str]:
    """What is wrong with the rows of a file, as ``line 3, questions[0].options: ...``.

    Args:
        rows: Each with the number of its line.
    """
    lines: dict[str, int] = {}
    for number, row in rows:
        for field, words in _row_problems(row):
            yield f"line {number}, {field}: {words}"
        video = row.get("video")
        if isinstance(video, str) and lines.setdefault(video, number) != number:
            yield f"line {number}, video: {video!r} is on line {lines[video]} already"


def read_questions(values: Sequence[Any]) -> list[dict[str, Any]]:
    """The questions of one video, with the paper's names of their types.

    Raises:
        DataError: If one is not of the schema; the text says which.
    """
    for field, words in _questions_problems(values):
        raise DataError(f"{field}: {words}")
    return [_normal_question(value) for value in values]


def _row_problems(row: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name in ("video", "domain"):
        if not _is_text(row.get(name)):
            yield name, f"expected text, got {row.get(name)!r:.60}"
    questions = row.get("questions")
    if not isinstance(questions, list) or not questions:
        yield "questions", f"expected a list with at least one question, got {questions!r:.60}"
        return
    yield from _questions_problems(questions)


def _questions_problems(questions: Sequence[object]) -> Iterator[tuple[str, str]]:
    for index, question in enumerate(questions):
        for field, words in _question_problems(question):
            yield f"questions[{index}]{field}", words


def _question_problems(question: object) -> Iterator[tuple[str, str]]:
    if not isinstance(question, dict):
        yield "", f"expected an object, got {question!r:.60}"
        return
    category, options = question.get("category"), question.get("options")
    if not _is_text(category):
        yield ".category", f"expected text, such as {next(iter(GROUP_OF))}, got {category!r:.60}"
    if not _is_text(question.get("question")):
        yield ".question", f"expected text, got {question.get('question')!r:.60}"
    if (
        not isinstance(options, list)
        or len(options) != N_OPTIONS
        or not all(map(_is_text, options))
    ):
        yield ".options", f"expected {N_OPTIONS} texts, got {options!r:.120}"
        return
    if len({_plain(option) for option in [*options, UNKNOWN]}) <= N_OPTIONS:
        yield (
            ".options",
            f"expected different texts, none of them {UNKNOWN!r}, got {options!r:.120}",
        )
    if question.get("answer") not in options:
        yield ".answer", f"expected one of the options, got {question.get('answer')!r:.60}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _plain(option: str) -> str:
    return " ".join(option.split()).casefold().rstrip(".")


def _type_of(category: str) -> str:
    """The paper's name of a question type, whatever its case, and without "Reasoning" too.

    A type that is none of the paper's is as it is spelled.
    """
    spelled = " ".join(category.split())
    name = spelled.casefold()
    return _TYPES.get(name) or _TYPES.get(f"{name} reasoning") or spelled


def _normal(row: Mapping[str, object]) -> Row:
    """A checked row with the paper's names of question types and nothing that is not used."""
    questions = row["questions"]
    if not isinstance(questions, list):
        raise TypeError(f"expected a checked row, got {row!r:.80}")
    return {
        "video": row["video"],
        "domain": row["domain"],
        "questions": [_normal_question(question) for question in questions],
    }


def _normal_question(question: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "category": _type_of(question["category"]),
        **{name: question[name] for name in ("question", "options", "answer")},
    }
