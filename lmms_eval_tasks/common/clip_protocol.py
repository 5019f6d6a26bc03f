"""Scoring of the user's clips, which are in none of a benchmark's files, by its protocol.

Protocols are found as ``PROTOCOLS`` in ``benchmark.py`` of a benchmark's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task

Need = Literal["questions", "reference", "video"]
"""Input of a protocol besides the caption, as the columns of a table are called."""
Frames = str | Path | Sequence[Any]
"""File of a video, or its frames in order of time: pictures of PIL, or arrays of shape
(height, width, 3), RGB, unsigned bytes."""
_SHOWN: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """A clip of the user's with the input for scoring its caption."""

    clip_id: str
    questions: Sequence[object] | None = None
    """In the form of the benchmark's official files; ``None`` for those in these files."""
    references: Sequence[str] = ()
    """Reference captions."""
    frames: Frames | None = None
    cache: Path | None = None
    """Folder of the frames that a judge sees, by default the run's cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipProtocol:
    """A benchmark's way of scoring captions, for clips of the user's."""

    name: str
    benchmark: Benchmark[Any, Any]
    task: Task
    """Task of the clips; its name is in their signature."""
    needs: frozenset[Need]
    document: Callable[[Clip], Doc]
    """Makes a document of the benchmark from a clip. Raises :class:`DataError` if it cannot."""

    def document_of(self, clip: Clip) -> Doc:
        """Return the clip as a document of the benchmark.

        Raises:
            DataError: If input is missing or not of the official form; the message names the
                question.
        """
        for need in sorted(self.needs):
            if not _has(clip, need):
                raise DataError(f"{self.name}: expected {_WORDS[need]} of the clip, got none")
        return self.document(clip)


_WORDS: Final[Mapping[Need, str]] = {
    "questions": "at least one question",
    "reference": "at least one reference caption",
    "video": "the video or frames",
}


def _has(clip: Clip, need: Need) -> bool:
    if need == "questions":
        return bool(clip.questions)
    if need == "reference":
        return any(reference.strip() for reference in clip.references)
    return clip.frames is not None


def shown(value: object) -> str:
    """Return an unexpected value for messages, cut if it is long."""
    return f"{value!r}"[:_SHOWN]
