"""Where a benchmark is published, and its files of questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl

ANY_ARCHIVE: Final = ("*.zip", "*.tar", "*.tar.gz", "**/*.zip", "**/*.tar", "**/*.tar.gz")
"""Patterns of a repository in which every archive holds videos."""
Row = dict[str, Any]
"""A line of an official file."""
Keep = Callable[[str, str], bool]
"""Tells if a question is kept, from its video and its text. It is called once for each question, in
the order in which the benchmark asks about a video: a text may occur more than once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Location of a benchmark's files and videos, on the hub and below a local root."""

    benchmark: str
    """Name, and the benchmark's folder below ``LMMS_CAPTIONS_DATA``."""
    page: str
    """Web page that provides the data; empty for the user's own, whose location the note gives."""
    license: str
    """License of the data."""
    video_folder: str
    """Folder of the videos below ``LMMS_CAPTIONS_DATA``."""
    hub_repo: str | None = None
    """Dataset repository on the Hugging Face hub, or ``None`` if there is none."""
    revision: str = "main"
    """Commit, tag or branch of the repository."""
    archives: tuple[str, ...] = ()
    """Patterns of the paths of the video archives in the repository."""
    note: str = ""
    """Further advice to a user on how to get the data, a sentence, or nothing."""

    def advice(self) -> str:
        """Return how to get the data locally, in one or two sentences."""
        if not self.page:
            return self.note
        get = f"get it from {self.page}"
        if self.hub_repo is not None:
            get = (
                f"run `hf download {self.hub_repo} --repo-type dataset --revision {self.revision} "
                f"--local-dir DATA/{self.benchmark}` (page: {self.page})"
            )
        videos = f"unpack the videos to DATA/{self.video_folder}"
        text = f"To use local files, {get}, {videos}, and set LMMS_CAPTIONS_DATA=DATA"
        return f"{text}. {self.note}" if self.note else text

    def require_repo(self) -> str:
        """Return the hub repository.

        Raises:
            DataError: If the benchmark is not on the hub.
        """
        if self.hub_repo is None:
            why = "is not on the Hugging Face hub" if self.page else "is data of your own"
            raise DataError(f"{self.benchmark} {why}. {self.advice()}")
        return self.hub_repo


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A benchmark's official files of questions, from which smaller ones of that form are made."""

    name: Callable[[Mapping[str, str]], str]
    """Path below the benchmark's folder, from ``Task.fields``."""
    select: Callable[[Path, Keep], str]
    """The text of such a file with only the questions that are kept, without videos that have none
    left. The benchmark has read the file before; raises ``DataError`` if that fails now."""


def of_json_lines(
    select: Callable[[Sequence[Row], Keep], Iterator[Row]],
) -> Callable[[Path, Keep], str]:
    """Return ``QuestionFile.select`` for files of JSON lines, from a selection of the lines."""

    def select_text(path: Path, keep: Keep) -> str:
        rows = select(read_jsonl(path), keep)
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)

    return select_text
