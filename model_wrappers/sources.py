"""What requests are about: found as they are planned, read when their turn comes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.caption_jobs import (
    DocVisuals,
    Shown,
    asked_about,
    shown_at_marks,
)
from lmms_eval_captions.model_wrappers.video.pictures import is_picture, read_picture
from lmms_eval_captions.model_wrappers.visuals import Picture, one_question

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmms_eval_captions.model_wrappers.base import CaptionRequest
    from lmms_eval_captions.model_wrappers.caption_jobs import Message, Source, Visuals
    from lmms_eval_captions.model_wrappers.video.clip import Clip

Takes = Literal["videos", "one", "all"]
"""What a captioner is written for; see ``Captioner.takes``."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request is about, and what it asks."""

    source: Source
    prompt: str
    messages: tuple[Message, ...] = ()
    """As of ``PlannedCaption``."""


class Sources:
    """Finds the sources of one call's requests.

    One document of each task is read to see what the task shows. Where that is pictures in memory,
    the others are left for the decoding threads: those of a whole benchmark fill any memory.

    Args:
        takes: What the captioner is written for.
        captioner: Its name, for messages.
    """

    def __init__(self, takes: Takes, captioner: str) -> None:
        self._takes = takes
        self._captioner = captioner
        self._tasks_of_pictures: set[str] = set()

    def of(self, request: CaptionRequest) -> Asked:
        """What a request is about.

        Raises:
            DataError: If it cannot be found.
            SettingsError: If it is nothing that the captioner is written for.
        """

        def read() -> Visuals:
            return by_content(self._takes, request.visuals())

        if request.task in self._tasks_of_pictures:
            return self._document(request, read)
        visuals = read()
        words = refusal(self._takes, visuals)
        if words is not None:
            raise SettingsError(
                f"{self._captioner} {words} (document {request.doc_id} of {request.task}); leave "
                "the task out, or choose a captioner that takes it, such as caption_hf; one of "
                "your own says what it takes by its class attribute takes"
            )
        if len(visuals.shown) == 1 and isinstance(visuals.shown[0], Path):
            question = one_question(visuals) if visuals.messages else None
            messages = self._conversation(visuals, question)
            return Asked(visuals.shown[0], question or request.prompt, messages)
        pictures = [visual.raw for visual in visuals.shown if isinstance(visual, Picture)]
        if not all(isinstance(picture, str | Path) for picture in pictures):
            self._tasks_of_pictures.add(request.task)
            return self._document(request, read)
        return self._document(request, lambda: visuals)

    def _conversation(self, visuals: Visuals, question: str | None) -> tuple[Message, ...]:
        """The messages, where they are more than a video and a prompt to this captioner."""
        is_more = len(visuals.messages) > 1 or question is None
        if self._takes != "all" or not is_more:
            return ()
        return tuple(shown_at_marks(message) for message in visuals.messages)

    @staticmethod
    def _document(request: CaptionRequest, read: Callable[[], Visuals]) -> Asked:
        source = DocVisuals(request.task, request.split, request.doc_id, read)
        return Asked(source, request.prompt)


def by_content(takes: Takes, visuals: Visuals) -> Visuals:
    """What a document shows, its files sorted by what is in them, whatever they are called.

    To a captioner that is written for videos every file is one: it reads stills, too.
    """
    shown = tuple(
        visual.raw
        if isinstance(visual, Picture)
        and isinstance(visual.raw, Path)
        and (takes == "videos" or not is_picture(visual.raw))
        else visual
        for visual in visuals.shown
    )
    return replace(visuals, shown=shown)


def refusal(takes: Takes, visuals: Visuals) -> str | None:
    """Why a captioner cannot caption a document, to follow its name; ``None`` where it can.

    Raises:
        DataError: If the document shows nothing and the captioner must be shown something.
    """
    if takes == "all":
        return None
    if not visuals.shown:
        raise DataError("the document shows no video, and this captioner captions nothing else")
    if len(visuals.shown) > 1:
        return f"captions one video at a time, and {len(visuals.shown)} visuals are shown"
    if takes == "videos" and isinstance(visuals.shown[0], Picture):
        return "captions videos only, and pictures are shown"
    if visuals.messages and one_question(visuals) is None:
        return "answers one prompt about one video, and a conversation is to be continued"
    return None


def read_document(document: DocVisuals, takes: Takes, read_video: Callable[[Path], Clip]) -> Shown:
    """What a document shows, decoded.

    Raises:
        DataError: If it cannot be read, or is nothing that the captioner is written for.
    """
    visuals = document.read()
    words = refusal(takes, visuals)
    if words is not None:
        raise DataError(f"this model {words}")
    clips = []
    for visual in visuals.shown:
        if isinstance(visual, Picture):
            clips.append(read_picture(visual.raw))
        elif isinstance(visual, Path):
            clips.append(read_video(visual))
        else:
            raise TypeError(f"expected a picture or a video, got {visual!r}")
    if takes == "all" or not visuals.messages:
        return Shown(clips, [shown_at_marks(message) for message in visuals.messages])
    return Shown(clips, asked_about(len(clips), one_question(visuals) or ""))
