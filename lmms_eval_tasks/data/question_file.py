"""Official files of questions, from which smaller ones of the same form are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl

Row = dict[str, Any]
"""A line of an official file."""
Keep = Callable[[str, str], bool]
"""Tells if a question is kept, from its video and its text. It is called once for each question, in
the order in which the benchmark asks about a video: a text may occur more than once."""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A benchmark's official files of questions, from which smaller ones of that form are made."""

    name: Callable[[Mapping[str, str]], str]
    """Path below the benchmark's folder, from ``Task.fields``."""
    select: Callable[[Path, Keep], str]
    """The text of such a file with only the questions that are kept, without videos that have none
    left. The benchmark has read the file before; raises ``DataError`` if that fails now."""


def read_pair(value: object, *optional: str, where: str) -> dict[str, str]:
    """Return a ``question`` with its ``answer`` and optional texts, which are empty if missing.

    Raises:
        DataError: If it is not of that form; the message begins with ``where``.
    """
    if not isinstance(value, dict) or not {"question", "answer"} <= set(value):
        raise DataError(f"{where}: expected 'question' and 'answer', got {value!r:.80}")
    pair = {name: value.get(name, "") for name in ("question", "answer", *optional)}
    if not all(isinstance(text, str) for text in pair.values()):
        raise DataError(f"{where}: expected text, got {pair!r:.120}")
    return pair


def of_json_lines(
    select: Callable[[Sequence[Row], Keep], Iterator[Row]],
) -> Callable[[Path, Keep], str]:
    """Return ``QuestionFile.select`` for files of JSON lines, from a selection of the lines."""

    def select_text(path: Path, keep: Keep) -> str:
        rows = select(read_jsonl(path), keep)
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

    return select_text
