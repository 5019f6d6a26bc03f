"""Documents of tasks: what they show is found when captions are planned, and read in its turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.caption_jobs import (
    CaptionRequest,
    DocVisuals,
    Shown,
    Source,
    Visuals,
    content_of,
)
from lmms_eval_captions.model_wrappers.video.pictures import is_picture, read_picture

if TYPE_CHECKING:
    from lmms_eval_captions.model_wrappers.video.clip import Clip

Takes = Literal["videos", "one", "all"]
"""Input that a captioner is written for; see ``Captioner.takes``."""

_PICTURE_ENDINGS: Final = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".avif", ".jp2")
)
"""Files that are pictures; any other, GIFs among them, is a video unless a message says not."""
_SOUND_ENDINGS: Final = frozenset((".wav", ".mp3", ".m4a", ".aac", ".flac", ".opus"))
_FILE_KEYS: Final = ("url", "path", "video_path", "video", "image_path", "image")
_PART_KEYS: Final = ("video_start", "start_time", "start", "video_end", "end_time", "end")
_USE_OTHERS: Final = "run this task with a model of lmms-eval"


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture that is not read yet."""

    raw: object
    """One of PIL's, an array (height, width, 3), bytes of a file or a ``Path``."""


class Sources:
    """Finds the sources of one call's requests.

    One document of each task is read to see what the task shows. If that is pictures in memory, the
    others are left for the decoding threads: those of a complete benchmark fill any memory.
    """

    def __init__(self, takes: Takes, captioner: str) -> None:
        self._takes = takes
        self._captioner = captioner
        self._tasks_of_pictures: set[str] = set()

    def of(self, request: CaptionRequest) -> tuple[Source, str]:
        """Return a request's source and prompt.

        Raises:
            DataError: If the source cannot be found.
            SettingsError: If it is nothing that the captioner is written for.
        """

        def by_content(visual: object) -> object:
            """Sort a file by what is in it; a captioner of videos reads stills as videos, too."""
            if not isinstance(visual, Picture) or not isinstance(visual.raw, Path):
                return visual
            is_still = self._takes != "videos" and is_picture(visual.raw)
            return visual if is_still else visual.raw

        def read() -> Visuals:
            visuals = request.visuals()
            return visuals._replace(shown=tuple(map(by_content, visuals.shown)))

        document = DocVisuals(request.task, request.doc_id, read)
        if request.task in self._tasks_of_pictures:
            return document, request.prompt
        visuals = read()
        reason = _refusal(self._takes, visuals)
        if reason is not None:
            raise SettingsError(
                f"{self._captioner} {reason} (document {request.doc_id} of {request.task}); leave "
                f"the task out, or {_USE_OTHERS}; a custom captioner declares its input by the "
                "class attribute takes"
            )
        if isinstance(visuals.shown[0], Path):
            texts = [part for part in visuals.content if isinstance(part, str)]
            return visuals.shown[0], "\n".join(texts) or request.prompt
        pictures = [visual.raw for visual in visuals.shown if isinstance(visual, Picture)]
        if not all(isinstance(picture, Path) for picture in pictures):
            self._tasks_of_pictures.add(request.task)
            return document, request.prompt
        return replace(document, read=lambda: visuals), request.prompt


def read_document(document: DocVisuals, takes: Takes, read_video: Callable[[Path], Clip]) -> Shown:
    """Read what a document shows; a ``DataError`` if it cannot be captioned."""
    visuals = document.read()
    reason = _refusal(takes, visuals)
    if reason is not None:
        raise DataError(f"this model {reason}")
    clips = [
        read_picture(visual.raw) if isinstance(visual, Picture) else read_video(Path(str(visual)))
        for visual in visuals.shown
    ]
    return Shown(clips, visuals.content)


def visuals_of(shown: object) -> Visuals:
    """Sort what ``doc_to_visual`` of a task returned; a ``DataError`` if it cannot be shown."""

    def flat(visual: object) -> list[object]:
        if isinstance(visual, list | tuple):
            return [part for some in visual for part in flat(some)]
        return [] if visual is None else [_sorted(visual)]

    return Visuals(tuple(flat(shown)))


def question_of(messages: Sequence[Mapping[str, object]], prompt: str) -> Visuals:
    """Sort what ``doc_to_messages`` of a task returned: one question, after any system message.

    Args:
        messages: Of lmms-eval's chat form: ``role``, and ``content`` that is a text or a list of
            ``{"type": "text", "text": ...}`` and ``{"type": "image" or "video", "url": ...}``.
        prompt: The request's own, for messages that show something and ask nothing.
    """
    shown: list[object] = []
    parts: list[str | int] = []
    is_asked = False
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "user"):
            raise DataError(f"expected one question, got a turn of {role!r}: {_USE_OTHERS}")
        items = [content] if isinstance(content, str) else content
        if not isinstance(items, list | tuple):
            raise DataError(f"expected a message's content as text or a list, got {content!r}")
        for item in items:
            if isinstance(item, str) or item.get("type") == "text":
                parts.append(item if isinstance(item, str) else str(item["text"]))
                is_asked |= role == "user"
            else:
                kind = str(item.get("type"))
                if kind not in ("image", "video"):
                    raise DataError(f"expected messages of texts, pictures and videos, got {kind}")
                visual = item.get("url", item.get(kind))
                is_file = isinstance(visual, str | Path)
                parts.append(len(shown))
                shown.append(_sorted({**item, "url": visual} if is_file else visual, kind))
    if not is_asked:
        parts.append(prompt)
    texts = [part for part in parts if isinstance(part, str)]
    # What comes before one text goes to the marks in it.
    is_before = len(texts) == 1 and parts[-1] == texts[0]
    content_parts = content_of(len(shown), texts[0]) if is_before else tuple(parts)
    return Visuals(tuple(shown), content_parts)


def _refusal(takes: Takes, visuals: Visuals) -> str | None:
    """Return why a captioner cannot caption a document, to follow its name; ``None`` if it can."""
    if not visuals.shown:
        raise DataError("the document shows no video and no picture, and captioners caption those")
    n_videos = sum(not isinstance(visual, Picture) for visual in visuals.shown)
    n_shown = len(visuals.shown)
    if n_shown > 1 and (takes != "all" or n_videos):
        what = "pictures, or one video," if takes == "all" else "one video"
        return f"captions {what} at a time, and {n_shown} visuals are shown"
    if takes == "videos" and not n_videos:
        return "captions videos only, and pictures are shown"
    return None


def _sorted(visual: object, kind: str = "") -> object:
    """Return a video's path or a ``Picture``; nothing is opened before its turn.

    Args:
        visual: As lmms-eval hands it over.
        kind: ``image`` or ``video`` if the task says so, whatever a file is called.
    """
    from PIL.Image import Image

    is_sound = False
    if isinstance(visual, Mapping):
        if isinstance(visual.get("bytes"), bytes) and visual["bytes"]:
            return Picture(visual["bytes"])
        given = (visual.get(key) for key in _FILE_KEYS)
        name = next((value for value in given if isinstance(value, str | Path)), None)
        if name is None:
            raise DataError(
                f"expected a picture or a video, got something with {', '.join(map(str, visual))}"
            )
        if any(visual.get(key) is not None for key in _PART_KEYS):
            raise DataError(
                f"expected complete videos, got a part of {name}: captioners caption one video; "
                f"{_USE_OTHERS}"
            )
        is_sound, visual = visual.get("type") == "audio", name
    if not isinstance(visual, str | Path):
        is_array = isinstance(visual, np.ndarray) and visual.ndim in (2, 3)
        if is_array or isinstance(visual, Image) or (isinstance(visual, bytes) and visual):
            return Picture(visual)
        raise DataError(
            f"expected a picture, or the path of a video or picture, got {type(visual).__name__}"
        )
    name, ending = str(visual), Path(visual).suffix.lower()
    if name.startswith(("http://", "https://", "data:")):
        raise DataError(
            f"expected a file of this machine, got the address {name:.80}: fetch it first"
        )
    if is_sound or ending in _SOUND_ENDINGS:
        raise DataError(f"expected a picture or a video, got sound: {name}")
    path = Path(name.removeprefix("file://"))
    is_image = kind == "image" if kind else ending in _PICTURE_ENDINGS
    return Picture(path) if is_image else path
