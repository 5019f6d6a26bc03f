"""What people said of questions that were built: the lines that the page of ``label`` exports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CRITERIA
from lmms_eval_captions.lmms_eval_tasks.commands.exported import Exported, last_words

YES: Final = "yes"
NO: Final = "no"
PAGE_KIND: Final = "question"
"""Tells lines about questions that were built from those about captions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one person said of one question by one criterion."""

    annotator: str
    question_id: str
    text_digest: str
    """Of the question as the person read it, see :func:`text_digest`."""
    criterion: str
    said: Literal["yes", "no"] | None
    """``None`` where the person could not tell."""


def text_digest(row: Mapping[str, object]) -> str:
    """What is the same as long as a question, its options and its answer are.

    Args:
        row: Of a stage's file; ``options`` may be missing.
    """
    text = json.dumps([row["question"], row.get("options"), row["answer"]])
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def read_answers(paths: Sequence[Path], kind: str) -> list[Answer]:
    """The answers of files, each person's last word on each criterion of each question.

    Args:
        paths: Files that the page has exported.
        kind: The benchmark that is built.

    Raises:
        DataError: If a file or a line of it cannot be read, or is about something else; the text
            names the line. Also if there are files, and no line in them.
    """
    lines, _ = last_words(paths, _key)
    if paths and not lines:
        raise DataError(
            f"{', '.join(map(str, paths))}: expected the answers that a page of "
            "lmms-eval-captions label --build exports, got no line; export them again"
        )
    return [_answer(line, kind) for line in lines]


def _key(line: Exported) -> tuple[object, ...]:
    names = ("annotator", "question_id", "text_digest", "criterion")
    return tuple(str(line.row.get(name)).strip() for name in names)


def _answer(line: Exported, kind: str) -> Answer:
    row = line.row
    if row.get("kind") != PAGE_KIND or row.get("benchmark") != kind:
        raise DataError(
            f"{line.where}: expected an answer about a question of build {kind}, got one of kind "
            f"{row.get('kind')!r:.40} about {row.get('benchmark')!r:.40}; give the files that the "
            f"page of lmms-eval-captions label --build exports for {kind}"
        )
    names = [criterion.name for criterion in CRITERIA[kind]]
    return Answer(
        annotator=_text(line, "annotator"),
        question_id=_text(line, "question_id"),
        text_digest=_text(line, "text_digest"),
        criterion=_one_of(line, "criterion", row.get("criterion"), names),
        said=_said(line),
    )


def _said(line: Exported) -> Literal["yes", "no"] | None:
    label = line.row.get("label", "")
    if label is None:
        return None
    choice = label.get("choice") if isinstance(label, dict) else None
    return "yes" if _one_of(line, "choice", choice, (YES, NO)) == YES else "no"


def _text(line: Exported, name: str) -> str:
    value = line.row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{line.where}: expected a text as {name!r}, got {value!r:.80}; {_AGAIN}")
    return value.strip()


def _one_of(line: Exported, name: str, value: object, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise DataError(
            f"{line.where}: expected as {name!r} any of {', '.join(known)}, got {value!r:.80}; "
            f"{_AGAIN}"
        )
    return value


_AGAIN: Final = "export it from the page again"
