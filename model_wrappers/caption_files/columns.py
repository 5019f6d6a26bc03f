"""Columns of a caption file: video, caption, aspect, and spellings of videos."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.tables import CAPTION_KEYS, VIDEO_KEYS
from lmms_eval_captions.model_wrappers.no_caption import KIND, GeneralCaption
from lmms_eval_captions.model_wrappers.video.endings import without_ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from lmms_eval_captions.model_wrappers.caption_files.tables import CaptionRow

ASPECTS = ("camera", "short", "background", "main_object", "detailed")
"""Aspects that may have a column of their own, ``<aspect>_caption``."""

_SEGMENT: Final = re.compile(
    r"(?:segment_?|clip_?)?(?:start|end|begin|stop)(?:[_ ]?(?:time|s|sec|seconds|frame))?"
    r"|timestamps?|time_?span|segment(?:_?(?:id|index))?"
)
"""Columns that say which part of a video a caption is about."""

ANY = ""
"""Stands in for the aspect of a caption that is of none in particular."""


def plain_aspect(aspect: str) -> str:
    """Return an aspect in its plain form, or the text unchanged if it is none of ``ASPECTS``.

    >>> plain_aspect("Camera"), plain_aspect("main object "), plain_aspect("Mood")
    ('camera', 'main_object', 'Mood')
    """
    plain = re.sub(r"[\s-]+", "_", aspect.strip().lower())
    return plain if plain in ASPECTS else aspect


def base_name(video: str) -> str:
    r"""Return a video's name without folders, of either slash.

    >>> base_name("a/b/clip.mp4"), base_name("a\\clip.mp4")
    ('clip.mp4', 'clip.mp4')
    """
    return re.split(r"[/\\]", video)[-1] or video


def stem(video: str) -> str:
    """Return a video's base name without a known video ending; other dots belong to the id.

    >>> stem("a/eyhzdC936uk_15_27.avi"), stem("foo.bar"), stem("foo.bar.MP4")
    ('eyhzdC936uk_15_27', 'foo.bar', 'foo.bar')
    """
    return without_ending(base_name(video))


def plain_name(video: str) -> str:
    r"""Return a video's stem without surrounding blanks, its accents in one form of Unicode.

    macOS writes names of files with accents apart from their letters (NFD), most others do not.

    >>> plain_name(" a/cafe\u0301.mp4 ") == "caf\xe9"
    True
    """
    return unicodedata.normalize("NFC", stem(video.strip())).strip()


def video_names(doc: Mapping[str, object]) -> list[str]:
    """Return a document's or row's names of its video, those under ``VIDEO_KEYS``, in order."""
    names = (_as_name(doc.get(key)) for key in VIDEO_KEYS)
    return [name for name in names if name is not None]


def listed(values: Iterable[str], most: int = 5) -> str:
    """Return names for a message: the first few, quoted."""
    names = list(values)
    return ", ".join(f"{name!r:.80}" for name in names[:most]) + (
        " and more" if len(names) > most else ""
    )


def video_of(fields: Mapping[str, object]) -> str | None:
    """Return the video that a row is about, or ``None`` if it names none."""
    names = video_names(fields)
    if _is_log(fields):
        # The document itself is not logged: its video survives in metric items, or as the target.
        items = [value for value in fields.values() if isinstance(value, dict)]
        names += [name for item in items for name in video_names(item)]
        target = _as_name(fields.get("target"))
        names += [target] if target is not None else []
    return names[0] if names else None


def segment_of(fields: Mapping[str, object]) -> tuple[object, ...]:
    """Return what a row says of the part of the video that its caption is about.

    >>> segment_of({"video": "a", "Start": 3, "end_time": 5.0, "caption": "A dog."})
    (3, 5.0)
    """
    return tuple(value for key, value in fields.items() if _SEGMENT.fullmatch(key.strip().lower()))


def captions_of(row: CaptionRow, path: Path, column: str | None) -> dict[str, str]:
    """Return the captions in a row, by aspect, ``ANY`` for a general one; null counts as missing.

    Those of a row that says that its caption serves all aspects, or has the same text for each, are
    a :class:`GeneralCaption`.

    Args:
        row: The row.
        path: Its file, for messages.
        column: The only column to take the caption from, or ``None`` to look for the known ones.

    Raises:
        CaptionError: If a caption is neither text nor null.
    """
    fields = row.fields
    # A row that names its aspect holds the caption of that aspect alone.
    own = fields.get("aspect")
    captions = {plain_aspect(own) if isinstance(own, str) else ANY: _caption_of(fields, column)}
    if column is None:
        named = {aspect: fields[key] for aspect, key in _aspect_columns(tuple(fields))}
        captions |= {aspect: value for aspect, value in named.items() if value is not None}
    for value in captions.values():
        if value is not None and not isinstance(value, str):
            raise CaptionError(
                f"{path}, {row.place}: expected a caption as text, got {value!r:.80}; write "
                "captions as strings, or null where there is none"
            )
    texts = {role: value for role, value in captions.items() if isinstance(value, str)}
    if _is_marked_general(fields) or (len(texts) > 1 and len(set(texts.values())) == 1):
        return {role: GeneralCaption(text) for role, text in texts.items()}
    return texts


def aspect_of(fields: Mapping[str, object], path: Path, column: str | None) -> str | None:
    """Return the aspect of a caption that names none, by its column, task or file; else ``None``.

    A column may be one of an aspect, and a log is that of a task, which its items name, or else the
    name of the file.
    """
    tasks: list[object] = []
    if column is not None:
        tasks.append(column.removesuffix("_caption"))
    elif _is_log(fields):
        items = (value for value in fields.values() if isinstance(value, dict))
        tasks += [item["task"] for item in items if "task" in item]
        tasks.append(path.name.removesuffix(".gz").removesuffix(".jsonl"))
    endings = (
        aspect
        for task in tasks[:1]
        for aspect in ASPECTS
        if isinstance(task, str) and (task == aspect or task.endswith(f"_{aspect}"))
    )
    return next(endings, None)


@lru_cache(maxsize=64)
def _aspect_columns(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return each aspect that has a column, and that column, spelled exactly or nearly so."""
    found: dict[str, str] = {}
    for column in columns:
        plain = column.strip().lower()
        aspect = plain_aspect(plain.removesuffix("_caption"))
        if plain.endswith("_caption") and aspect in ASPECTS:
            found[aspect] = column
    exact = {aspect: f"{aspect}_caption" for aspect in ASPECTS if f"{aspect}_caption" in columns}
    return list((found | exact).items())


def _is_marked_general(fields: Mapping[str, object]) -> bool:
    """Return if a row of ours, or of a log with verdicts, marks its caption as general."""
    if fields.get("captions") == KIND:
        return True
    extras = (value.get("extras") for value in fields.values() if isinstance(value, dict))
    return _is_log(fields) and any(
        isinstance(extra, dict) and extra.get("captions") == KIND for extra in extras
    )


def _caption_of(fields: Mapping[str, object], column: str | None) -> object:
    if column is not None:
        value = fields.get(column)
    elif _is_log(fields):
        if _has_no_caption(fields):
            return None  # an empty text stands for it in the log
        value = fields.get("filtered_resps", fields.get("resps"))
    else:
        value = next((fields[key] for key in CAPTION_KEYS if fields.get(key) is not None), None)
    return _first(value) if _is_log(fields) else value


def _has_no_caption(fields: Mapping[str, object]) -> bool:
    """Return if a row of a log shows, by a verdict or its tokens, that there was no caption."""
    if any("no_caption" in item for item in fields.values() if isinstance(item, dict)):
        return True
    # What --predict_only logs: our captioners count no token where they gave no caption.
    return _first(fields.get("token_counts")) == {"input_tokens": 0, "output_tokens": 0}


def _first(value: object) -> object:
    while isinstance(value, list):
        value = value[0] if value else None
    return value


def _as_name(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _is_log(fields: Mapping[str, object]) -> bool:
    return "doc_id" in fields and ("filtered_resps" in fields or "resps" in fields)
