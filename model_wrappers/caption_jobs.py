"""What a captioner is handed, and what it hands back."""

from __future__ import annotations

import re
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmms_eval_captions.model_wrappers.generation import Generation
    from lmms_eval_captions.model_wrappers.video.clip import Clip


_MARK: Final = re.compile(r"<image>|<video>")
"""Where prompts of lmms-eval's tasks mean something shown; what its wrappers put in themselves."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of what a captioner is told; of a captioning task there is one, the user's."""

    role: str
    """``system``, ``user`` or ``assistant``."""
    content: tuple[str | int, ...]
    """In order: texts, and places in ``CaptionJob.clips`` of what is shown there."""


def listed(messages: Sequence[Message]) -> list[list[object]]:
    """Messages as JSON has them.

    >>> listed([Message("user", (0, "Describe."))])
    [['user', (0, 'Describe.')]]
    """
    return [[message.role, message.content] for message in messages]


def asked_about(n_clips: int, prompt: str) -> tuple[Message, ...]:
    """The one message that shows everything, and asks.

    Where a prompt has as many ``<image>`` or ``<video>`` as there is to show, it is shown there, as
    its task wrote it; otherwise these marks are left out, and everything is shown before the text.

    >>> asked_about(1, "Describe the video.")
    (Message(role='user', content=(0, 'Describe the video.')),)
    >>> asked_about(2, "Is <image> older than <image>?")
    (Message(role='user', content=('Is', 0, 'older than', 1, '?')),)
    """
    return (Message("user", _at_marks(range(n_clips), prompt)),)


def shown_at_marks(message: Message) -> Message:
    """A message that shows everything before its text, as :func:`asked_about` has it.

    >>> shown_at_marks(Message("user", (3, 5, "Is <image> older than <image>?"))).content
    ('Is', 3, 'older than', 5, '?')
    >>> shown_at_marks(Message("user", (3, "Is <image> older than", 5, "?"))).content
    (3, 'Is <image> older than', 5, '?')
    """
    places = [part for part in message.content if isinstance(part, int)]
    texts = [part for part in message.content if isinstance(part, str)]
    if message.role != "user" or len(texts) != 1 or message.content[-1] != texts[0]:
        return message
    return Message("user", _at_marks(places, texts[0]))


def _at_marks(places: Sequence[int], text: str) -> tuple[str | int, ...]:
    """What is shown, where a text has a mark for each of it; else before the text without marks."""
    texts = _MARK.split(text)
    if len(texts) == 1:
        return (*places, text)
    if len(texts) != len(places) + 1:
        return (*places, "".join(texts).strip())
    content: list[str | int] = []
    for number, said in enumerate(texts):
        content += [said.strip()] if said.strip() else []
        content += places[number : number + 1]
    return tuple(content)


@dataclass(frozen=True, slots=True)
class Visuals:
    """What a document of a task shows, as lmms-eval hands it over: nothing of it is decoded."""

    shown: tuple[object, ...]
    """Pictures (PIL's, bytes, arrays), files and addresses, in the order in which they appear."""
    messages: tuple[Message, ...] = ()
    """The conversation, by places in ``shown``; empty where the request's prompt is all."""


@dataclass(frozen=True, slots=True)
class DocVisuals:
    """What a document shows, where that is more or other than one video file.

    Equal where the document is: it is read in a decoding thread, when its turn comes.
    """

    task: str
    split: str
    doc_id: int
    read: Callable[[], Visuals] = field(compare=False, repr=False)
    """Fetches what is shown; it may decode or download, and raise ``DataError``."""


Source = Path | DocVisuals
"""What a caption is about: the file of a video, or what a document of a task shows."""


def source_name(source: Source) -> str:
    """What a source is called in messages.

    >>> source_name(Path("clips/a.mp4"))
    'a.mp4'
    """
    if isinstance(source, Path):
        return source.name
    return f"document {source.doc_id} of {source.task}"


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A source that was read."""

    clips: Sequence[Clip]
    """Its videos and pictures, in order; none where a task asks by text alone."""
    messages: Sequence[Message] = ()
    """Its conversation; empty where the prompt of each caption is all there is."""


@dataclass(frozen=True, slots=True, eq=False)
class CaptionJob:
    """One caption to write: what is shown, and what is asked about it."""

    clips: Sequence[Clip]
    """Videos and pictures, of most tasks one; jobs on one source share them. ``clips[0].frames`` is
    (n, height, width, 3), uint8, RGB; a picture is a clip of one frame with ``is_image``."""
    messages: Sequence[Message]
    """The conversation so far; the last one is the user's."""
    source: Source
    """Where the clips come from: equal sources show the same."""
    task: str
    doc_id: int
    draw: int = 0
    """Its number among those that ask the same, where answers are drawn at random."""

    @property
    def clip(self) -> Clip:
        """What is shown, where that is one video or one picture.

        Raises:
            DataError: If several are.
        """
        if len(self.clips) != 1:
            raise DataError(
                f"{self.task}, document {self.doc_id}: expected one video or picture, got "
                f"{len(self.clips)}; this captioner takes one"
            )
        return self.clips[0]

    @property
    def path(self) -> Path:
        """The video's file.

        Raises:
            DataError: If what is shown is not one video file.
        """
        if not isinstance(self.source, Path):
            raise DataError(
                f"{self.task}, document {self.doc_id}: expected one video file, and it shows "
                "something else"
            )
        return self.source

    @property
    def prompt(self) -> str:
        """What the last message asks."""
        return "\n".join(part for part in self.messages[-1].content if isinstance(part, str))


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
