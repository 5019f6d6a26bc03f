"""Columns of a caption file: video, caption, aspect, and spellings of videos."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_files.tables import (
    CAPTION_KEYS,
    VIDEO_KEYS,
    CaptionRow,
)
from lmms_eval_captions.model_wrappers.no_caption import KIND, GeneralCaption
from lmms_eval_captions.model_wrappers.video.endings import without_ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


ASPECTS = ("camera", "short", "background", "main_object", "detailed")
"""Aspects that may have a column of their own, ``<aspect>_caption``."""
ANY = ""
"""Stands in for the aspect of a caption that is of none in particular."""
_LOGGED: Final = "task of the log"
"""Added column of the rows of a sample log."""
_SEGMENT: Final = re.compile(
    r"(?:segment_?|clip_?)?(?:start|end|begin|stop)(?:[_ ]?(?:time|s|sec|seconds|frame))?"
    r"|timestamps?|time_?span|segment(?:_?(?:id|index))?"
)
"""Columns that say which part of a video a caption is about."""


def plain_aspect(aspect: str) -> str:
    """Return an aspect in its plain form, or the text unchanged if it is none of ``ASPECTS``.

    >>> plain_aspect("Camera"), plain_aspect("main object "), plain_aspect("Mood")
    ('camera', 'main_object', 'Mood')
    """
    plain = re.sub(r"[\s-]+", "_", aspect.strip().lower())
    return plain if plain in ASPECTS else aspect


def base_name(video: str) -> str:
    """Return a video's name without folders, of either slash."""
    return re.split(r"[/\\]", video)[-1] or video


def stem(video: str) -> str:
    """Return a video's base name without a known video ending; other dots belong to the id."""
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
    shown = ", ".join(f"{name!r:.80}" for name in names[:most])
    return shown + (" and more" if len(names) > most else "")


def video_of(fields: Mapping[str, object]) -> str | None:
    """Return the video that a row is about, or ``None`` if it names none."""
    return next(iter(video_names(fields)), None)


def plain_log(fields: Mapping[str, object], path: Path) -> Mapping[str, object]:
    """Return a row of lmms-eval's sample log with the columns of a caption file, others unchanged.

    The document itself is not logged: its video survives in metric items, or as the target.
    """
    texts = {key: _first(fields[key]) for key in ("filtered_resps", "resps") if key in fields}
    if "doc_id" not in fields or not texts:
        return fields
    items = [value for value in fields.values() if isinstance(value, dict)]
    names = [name for names in (fields, *items) for name in video_names(names)]
    # An empty text stands in the log for a caption that is missing, as a verdict says, or with
    # --predict_only the tokens: our captioners count none where they gave no caption.
    no_tokens = {"input_tokens": 0, "output_tokens": 0}
    is_missing = _first(fields.get("token_counts")) == no_tokens or any(
        "no_caption" in item for item in items
    )
    extras = [item["extras"] for item in items if isinstance(item.get("extras"), dict)]
    of_file = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return {
        **fields,
        **texts,
        VIDEO_KEYS[0]: names[0] if names else fields.get("target"),
        CAPTION_KEYS[0]: None if is_missing else next(iter(texts.values())),
        _LOGGED: next((item["task"] for item in items if "task" in item), of_file),
        "captions": next(
            (e["captions"] for e in extras if "captions" in e), fields.get("captions")
        ),
    }


def segment_of(fields: Mapping[str, object]) -> tuple[object, ...]:
    """Return what a row says of the part of the video that its caption is about.

    >>> segment_of({"video": "a", "Start": 3, "end_time": 5.0, "caption": "A dog."})
    (3, 5.0)
    """
    return tuple(value for key, value in fields.items() if _SEGMENT.fullmatch(key.strip().lower()))


def captions_of(row: CaptionRow, path: Path, column: str | None) -> dict[str, str]:
    """Return the captions in a row, by aspect, ``ANY`` for a general one; null counts as missing.

    Those of a row that says that its caption serves all aspects, or has the same text for each, are
    a :class:`GeneralCaption`. ``column`` is the only one to take the caption from, if given.
    """
    fields = row.fields
    keys = CAPTION_KEYS if column is None else (column,)
    if _LOGGED in fields and column is None:
        keys = CAPTION_KEYS[:1]
    # A row that names its aspect holds the caption of that aspect alone.
    own = fields.get("aspect")
    caption = next((fields[key] for key in keys if fields.get(key) is not None), None)
    captions = {plain_aspect(own) if isinstance(own, str) else ANY: caption}
    if column is None:
        named = {aspect: fields[key] for aspect, key in _aspect_columns(tuple(fields)).items()}
        captions |= {aspect: value for aspect, value in named.items() if value is not None}
    texts: dict[str, str] = {}
    for aspect, value in captions.items():
        if isinstance(value, str):
            texts[aspect] = value
        elif value is not None:
            raise CaptionError(
                f"{path}, {row.place}: expected a caption as text, got {value!r:.80}; write "
                "captions as strings, or null where there is none"
            )
    is_general = fields.get("captions") == KIND
    if is_general or (len(texts) > 1 and len(set(texts.values())) == 1):
        return {aspect: GeneralCaption(text) for aspect, text in texts.items()}
    return texts


def aspect_of(fields: Mapping[str, object], column: str | None) -> str | None:
    """Return the aspect of a caption that names none, by its column or logged task, if any."""
    task = fields.get(_LOGGED) if column is None else column.removesuffix("_caption")
    name = f"_{task}" if isinstance(task, str) else ""
    return next((aspect for aspect in ASPECTS if name.endswith(f"_{aspect}")), None)


@lru_cache(maxsize=64)
def _aspect_columns(columns: Sequence[str]) -> dict[str, str]:
    """Return each aspect that has a column, and that column, spelled exactly or nearly so."""
    found: dict[str, str] = {}
    for column in columns:
        plain = column.strip().lower()
        aspect = plain_aspect(plain.removesuffix("_caption"))
        if plain.endswith("_caption") and aspect in ASPECTS:
            found[aspect] = column
    return found | {a: f"{a}_caption" for a in ASPECTS if f"{a}_caption" in columns}


def _first(value: object) -> object:
    while isinstance(value, list):
        value = value[0] if value else None
    return value


def _as_name(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None
