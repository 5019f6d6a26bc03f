"""Types that a captioner is handed, and hands back."""

from __future__ import annotations

import re
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmms_eval_captions.model_wrappers.model_args import Generation
    from lmms_eval_captions.model_wrappers.video.clip import Clip

Content = tuple[str | int, ...]
"""A question in order: texts, and positions in ``CaptionJob.clips`` of what is shown there."""
_MARK: Final = re.compile(r"<image>|<video>")
"""Places in prompts of lmms-eval's tasks at which something is shown."""


def content_of(n_clips: int, prompt: str) -> Content:
    """Return a question about clips or pictures.

    A prompt with as many ``<image>`` or ``<video>`` as there is to show has everything in these
    places; otherwise the marks are left out, and everything is shown before the text.

    >>> content_of(1, "Describe the video.")
    (0, 'Describe the video.')
    >>> content_of(2, "Is <image> older than <image>?")
    ('Is', 0, 'older than', 1, '?')
    """
    texts = _MARK.split(prompt)
    if len(texts) == 1:
        return (*range(n_clips), prompt)
    if len(texts) != n_clips + 1:
        return (*range(n_clips), "".join(texts).strip())
    content: list[str | int] = [texts[0].strip()]
    for number, text in enumerate(texts[1:]):
        content += [number, text.strip()]
    return tuple(part for part in content if part != "")


class Visuals(NamedTuple):
    """Content of a document as lmms-eval hands it over; nothing of it is decoded."""

    shown: tuple[object, ...]
    """Pictures (PIL's, bytes, arrays) and files, in the order in which they appear."""
    content: Content = ()
    """The question of a chat task; empty if the request's prompt is all."""


@dataclass(frozen=True, slots=True)
class CaptionRequest:
    """One caption that lmms-eval asks for."""

    prompt: str
    """Text of the request, few-shot examples and description included."""
    task: str
    doc_id: int
    docs: Sequence[Mapping[str, object]] = field(repr=False)
    """The rows of the task's split; a row that holds pictures is decoded whenever it is taken."""
    visuals: Callable[[], Visuals] = field(repr=False)
    """Fetches what is shown; it may decode or download, and raise ``DataError``."""
    generation_kwargs: Mapping[str, object]
    """Generation settings of the task's YAML and of ``--gen_kwargs``."""

    @property
    def doc(self) -> Mapping[str, object]:
        """Row of the benchmark, as its task made it; fetched each time."""
        return self.docs[self.doc_id]


@dataclass(frozen=True, slots=True)
class DocVisuals:
    """Pictures of a document; equal if the document is. It is read in a decoding thread."""

    task: str
    doc_id: int
    read: Callable[[], Visuals] = field(compare=False, repr=False)
    """Fetches what is shown; it may decode or download, and raise ``DataError``."""


Source = Path | DocVisuals
"""Subject of a caption: the file of a video, or the pictures of a document."""


def source_name(source: Source) -> str:
    """Return a source's name for messages."""
    if isinstance(source, Path):
        return source.name
    return f"document {source.doc_id} of {source.task}"


class Shown(NamedTuple):
    """A source that was read."""

    clips: Sequence[Clip]
    """One video, or pictures in order."""
    content: Content = ()
    """The question of a chat task; empty if the prompt of each caption is all."""


@dataclass(frozen=True, slots=True, eq=False)
class CaptionJob:
    """One caption to write: what is shown, and what is asked about it."""

    clips: Sequence[Clip]
    """One video, or pictures; jobs on one source share them. ``clips[0].frames`` is
    (n, height, width, 3), uint8, RGB; a picture is a clip of one frame with ``is_image``."""
    content: Content
    """Texts and clips in the order of the question."""
    source: Source
    """Origin of the clips; equal sources show the same."""
    task: str
    doc_id: int
    draw: int = 0
    """Number among jobs that ask the same, if answers are drawn at random."""

    @property
    def clip(self) -> Clip:
        """The only video or picture; a ``DataError`` if several are shown."""
        if len(self.clips) != 1:
            raise DataError(
                f"{self.task}, document {self.doc_id}: expected one video or picture, got "
                f"{len(self.clips)}; this captioner takes one"
            )
        return self.clips[0]

    @property
    def path(self) -> Path:
        """The video's file; a ``DataError`` if pictures are shown."""
        if not isinstance(self.source, Path):
            raise DataError(
                f"{self.task}, document {self.doc_id}: expected one video file, got pictures"
            )
        return self.source

    @property
    def prompt(self) -> str:
        """Text of the question."""
        return "\n".join(part for part in self.content if isinstance(part, str))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Jobs that a captioner is handed at once, at most ``batch_size``, with one set of settings."""

    jobs: Sequence[CaptionJob]
    """At least one."""
    generation: Generation
    """``max_new_tokens``, ``do_sample``, ... of the task's YAML or of ``--gen_kwargs``."""
    prepared: Any = None
    """Return value of ``prepare`` for these jobs."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and its tokens; a captioner that does not count tokens returns plain text."""

    text: str
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None


Answer = str | Caption | Future[Caption]
"""A caption as a captioner may return it."""
