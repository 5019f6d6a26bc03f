"""Scoring of the user's clips, which are in none of a benchmark's files, by its protocol.

Protocols are found as ``PROTOCOLS`` in ``benchmark.py`` of a benchmark's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task

Need = Literal["questions", "reference", "video"]
"""Input of a protocol besides the caption, as the columns of a table are called."""
Frames = str | Path | Sequence[Any]
"""File of a video, or its frames in order of time: pictures of PIL, or arrays of shape
(height, width, 3), RGB, unsigned bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """A clip of the user's with the input for scoring its caption."""

    clip_id: str
    questions: Sequence[object] | None = None
    """In the form of the benchmark's official files; ``None`` for those in these files."""
    references: Sequence[str] = ()
    frames: Frames | None = None
    cache: Path | None = None
    """Folder of the frames that a judge sees, by default the run's cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipProtocol:
    """A benchmark's way of scoring captions, for clips of the user's."""

    benchmark: Benchmark[Any, Any]
    task: Task
    """Task of the clips; its name is the protocol's, and in their signature."""
    needs: frozenset[Need] = frozenset({"questions"})
    document: Callable[[Clip], Doc]
    """Makes a document of the benchmark from a clip. Raises :class:`DataError` if it cannot."""

    @property
    def name(self) -> str:
        """Name of the protocol."""
        return self.task.name

    def document_of(self, clip: Clip) -> Doc:
        """Return the clip as a document of the benchmark.

        Raises:
            DataError: If input is missing or not of the official form; the message names the
                question.
        """
        inputs: dict[Need, tuple[bool, str]] = {
            "questions": (bool(clip.questions), "at least one question"),
            "reference": (any(map(str.strip, clip.references)), "at least one reference caption"),
            "video": (clip.frames is not None, "the video or frames"),
        }
        for need in sorted(self.needs):
            has_it, words = inputs[need]
            if not has_it:
                raise DataError(f"{self.name}: expected {words} of the clip, got none")
        return self.document(clip)


def shown(value: object) -> str:
    """Return an unexpected value for messages, cut if it is long."""
    return f"{value!r:.160}"
