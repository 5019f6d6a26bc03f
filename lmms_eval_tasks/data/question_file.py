"""Official files of questions, made anew with some of the questions and all else as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl

Row = dict[str, Any]
"""A line of an official file."""
Keep = Callable[[str, str], bool]
"""Whether a question is kept, from its video and its text. It is called once for each question, in
the order in which the benchmark asks about a video: a text may be there more than once."""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A benchmark's official files of questions.

    What is kept of one is a file of the same form. Videos without a question left are not in it,
    nor is what the benchmark does not take for a question.
    """

    name: Callable[[Mapping[str, str]], str]
    """Path below the benchmark's folder, from what sets a task apart (``Task.fields``)."""
    select: Callable[[Path, Keep], str]
    """The text of such a file with the questions that are kept. The file has been read as one of
    the benchmark before; raises ``DataError`` where it cannot be read now."""


def of_json_lines(
    select: Callable[[Sequence[Row], Keep], Iterator[Row]],
) -> Callable[[Path, Keep], str]:
    """``select`` of a benchmark whose files are JSON lines, from what it does with the lines."""

    def select_text(path: Path, keep: Keep) -> str:
        rows = select(read_jsonl(path), keep)
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

    return select_text
