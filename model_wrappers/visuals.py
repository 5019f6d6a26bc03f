"""What documents of any task show, sorted: videos, parts of them, pictures, and what is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import Message, Visuals

PICTURE_ENDINGS: Final = frozenset(
    (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".avif", ".jp2")
)
"""Files that are pictures; any other, GIFs among them, is a video unless a message says not."""
_SOUND_ENDINGS: Final = frozenset((".wav", ".mp3", ".m4a", ".aac", ".flac", ".opus"))
_FILE_KEYS: Final = ("url", "path", "video_path", "video", "image_path", "image")
"""Under which a dict of a task names its file."""
_PART_KEYS: Final = ("video_start", "start_time", "start", "video_end", "end_time", "end")
_ROLES: Final = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture that is not read yet."""

    raw: object
    """One of PIL's, an array (height, width, 3), bytes of a file, a ``Path`` or an address."""


def visuals_of(shown: object) -> Visuals:
    """What ``doc_to_visual`` of a task returned, sorted.

    Raises:
        DataError: If it is neither pictures nor videos.
    """
    return Visuals(tuple(_sorted(visual) for visual in _flat(shown)))


def conversation_of(messages: Sequence[Mapping[str, object]], prompt: str) -> Visuals:
    """What ``doc_to_messages`` of a task returned, sorted.

    Args:
        messages: Of lmms-eval's chat form: ``role``, and ``content`` that is a text or a list of
            ``{"type": "text", "text": ...}`` and ``{"type": "image" or "video", "url": ...}``.
        prompt: The request's own, for messages that show something and ask nothing.

    Raises:
        DataError: If the messages hold anything else.
    """
    shown: list[object] = []
    said = [_message(message, shown) for message in messages]
    if any(turn.role == "assistant" for turn in said):
        raise DataError(
            "expected one question, got a conversation: run this task with a model of lmms-eval"
        )
    by_users = [part for turn in said if turn.role == "user" for part in turn.content]
    if not any(isinstance(part, str) for part in by_users):
        asked = said.pop() if said and said[-1].role == "user" else Message("user", ())
        said.append(Message("user", (*asked.content, prompt)))
    return Visuals(tuple(shown), tuple(said))


def one_question(visuals: Visuals) -> str | None:
    r"""All that is said in a conversation that shows everything, then asks once; else ``None``.

    >>> system = Message("system", ("Be brief.",))
    >>> one_question(Visuals((), (system, Message("user", ("Why?",)))))
    'Be brief.\nWhy?'
    """
    *before, last = visuals.messages
    *shown, prompt = last.content
    if last.role != "user" or any(turn.role != "system" for turn in before):
        return None
    if shown != [*range(len(visuals.shown))] or not isinstance(prompt, str):
        return None
    return "\n".join([*(str(part) for turn in before for part in turn.content), prompt])


def _flat(shown: object) -> list[object]:
    """Visuals without lists in lists, and without what is not there."""
    if shown is None:
        return []
    if isinstance(shown, list | tuple):
        return [visual for some in shown for visual in _flat(some)]
    return [shown]


def _sorted(visual: object) -> object:
    """A video's path or a ``Picture``."""
    if isinstance(visual, Mapping):
        return _of_mapping(visual)
    if isinstance(visual, str | Path):
        return _of_name(visual)
    if _is_picture(visual):
        return Picture(visual)
    raise DataError(
        f"expected a picture, or the path of a video or picture, got {type(visual).__name__}"
    )


def _is_picture(visual: object) -> bool:
    from PIL.Image import Image

    if isinstance(visual, np.ndarray):
        return visual.ndim in (2, 3)
    return isinstance(visual, Image) or (isinstance(visual, bytes) and bool(visual))


def _of_name(name: str | Path) -> object:
    """A file or an address by its ending: nothing is opened before its turn."""
    text = str(name)
    if text.startswith("data:image/"):
        return Picture(text)
    ending = Path(text.partition("?")[0]).suffix.lower()
    if text.startswith(("http://", "https://")):
        if ending in PICTURE_ENDINGS:
            return Picture(text)
        raise DataError(f"expected a file of this machine, got the address {text}: fetch it first")
    if ending in _SOUND_ENDINGS:
        raise DataError(f"expected a picture or a video, got sound: {text}")
    path = Path(text.removeprefix("file://"))
    return Picture(path) if ending in PICTURE_ENDINGS else path


def _of_mapping(visual: Mapping[str, object]) -> object:
    """``{"path": ..., "video_start": ...}``, or a picture as ``datasets`` keeps it undecoded."""
    raw = visual.get("bytes")
    if isinstance(raw, bytes) and raw:
        return Picture(raw)
    given = (visual.get(key) for key in _FILE_KEYS)
    name = next((value for value in given if isinstance(value, str | Path)), None)
    if name is None:
        raise DataError(
            f"expected a picture or a video, got something with {', '.join(map(str, visual))}"
        )
    if visual.get("type") == "audio":
        raise DataError(f"expected a picture or a video, got sound: {name}")
    return _complete(_of_name(name), visual)


def _complete(visual: object, bounds: Mapping[str, object]) -> object:
    """A visual that is shown from its beginning to its end."""
    if any(bounds.get(key) is not None for key in _PART_KEYS):
        raise DataError(
            f"expected complete videos, got a part of {visual}: captioners caption one video; "
            "run this task with a model of lmms-eval"
        )
    return visual


def _message(message: Mapping[str, object], shown: list[object]) -> Message:
    """One turn; what it shows is appended to ``shown``."""
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise DataError(f"expected a message of {', '.join(_ROLES)}, got one of {role!r}")
    items = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(items, list | tuple):
        raise DataError(f"expected a message's content as text or a list, got {content!r}")
    parts: list[str | int] = []
    for item in items:
        if isinstance(item, str):
            parts.append(item)
        elif item.get("type") == "text":
            parts.append(str(item["text"]))
        else:
            parts.append(len(shown))
            shown.append(_shown_in(item))
    return Message(str(role), tuple(parts))


def _shown_in(item: Mapping[str, object]) -> object:
    kind = str(item.get("type"))
    if kind not in ("image", "video"):
        raise DataError(f"expected messages of texts, pictures and videos, got {kind}")
    given = item.get("url", item.get(kind))
    visual = _sorted(given)
    if kind == "image":
        # Whatever it is called.
        return Picture(visual) if isinstance(visual, Path) else visual
    if isinstance(visual, Picture) and isinstance(visual.raw, Path):
        visual = visual.raw
    return _complete(visual, item)
