"""What a captioner is handed, and what it hands back."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.generation import Generation
    from lmms_eval_captions.model_wrappers.video.clip import Clip


@dataclass(frozen=True, slots=True, eq=False)
class CaptionJob:
    """One caption to write: the frames of a clip, and what is asked about them."""

    clip: Clip
    """``clip.frames`` is (n, height, width, 3), uint8, RGB; jobs on one clip share it."""
    prompt: str
    path: Path
    """The clip's file."""
    task: str
    doc_id: int


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What a captioner is handed: at most ``batch_size`` jobs with one set of settings."""

    jobs: Sequence[CaptionJob]
    """At least one."""
    generation: Generation
    """``max_new_tokens``, ``do_sample``, ... of the task's YAML or of ``--gen_kwargs``."""
    prepared: object = None
    """What ``prepare`` returned for these jobs."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and what it cost; a captioner that does not count tokens returns plain text."""

    text: str
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None


Answer = str | Caption | Future[Caption]
"""A caption as a captioner may return it."""
