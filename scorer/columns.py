"""Values as people have them: columns of lists, pandas, numpy and Arrow; questions; videos."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import shown


def listed(name: str, column: Any) -> list[Any]:  # noqa: ANN401 - whatever holds values
    """Return the values of a column as Python has them; ``None`` for missing ones.

    Raises:
        DataError: If it is a text, a table or no column at all.
    """
    is_column = isinstance(column, Iterable) and not isinstance(column, (str, bytes, Mapping))
    if not is_column or hasattr(column, "columns"):
        raise DataError(
            f"{name}: expected a column, such as a list with one value for each caption, got "
            f"{type(column).__name__} {shown(column)}"
        )
    values: Iterable[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column
    return [plain(value) for value in values]


def plain(value: Any) -> Any:  # noqa: ANN401 - of any column
    """Return a value as Python has it: arrays as lists, missing values as ``None``."""
    if is_missing(value):
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def is_missing(value: object) -> bool:
    """Return whether a value stands for none, like ``nan``, ``NA`` and ``NaT`` of pandas.

    >>> is_missing(float("nan")), is_missing(None), is_missing("nan")
    (True, True, False)
    """
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def from_json(value: object) -> object:
    """Return a list or an object that a text holds as JSON; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read


def questions_of(value: object) -> list[object]:
    """Return questions as the official files have them, whatever a table has made of them.

    Raises:
        DataError: If it is neither a list of questions, nor a record of columns, nor JSON of one.

    >>> questions_of({"question": ["Who?", "Where?"], "answer": ["A dog", "Here"]})[1]
    {'question': 'Where?', 'answer': 'Here'}
    """
    read: Any = from_json(plain(value))
    if read is None or read == "":
        return []
    is_record = isinstance(read, Mapping) and all(isinstance(part, list) for part in read.values())
    if is_record and len(set(map(len, read.values()))) == 1:
        records = zip(*read.values(), strict=True)
        read = [dict(zip(read, record, strict=True)) for record in records]
    if not isinstance(read, list):
        raise DataError(f"questions: expected a list, or one in JSON, got {shown(value)}")
    # Tables put nulls in place of missing fields.
    return [
        {name: part for name, part in question.items() if part is not None}
        if isinstance(question, Mapping)
        else question
        for question in read
    ]


def caption_of(value: object) -> str | None:
    """Return a caption, ``None`` if it is missing; anything but text raises :class:`DataError`."""
    if is_missing(value):
        return None
    if isinstance(value, str):
        return value
    raise DataError(f"caption: expected text, got {shown(value)}")


def references_of(value: object) -> list[str]:
    """Return reference captions out of one text or a list; others raise :class:`DataError`."""
    texts = [value] if isinstance(value, str) else ([] if is_missing(value) else value)
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"reference: expected text, or a list of texts, got {shown(value)}")
    return list(texts)


def clip_name(value: object) -> str:
    """Return the name of a clip, a text or a whole number; others raise :class:`DataError`."""
    if isinstance(value, (str, int)):
        return str(value)
    raise DataError(f"clip_id: expected text or a whole number, got {shown(value)}")


def video_in(folder: Path, name: str) -> Path:
    """Return the path of a video that data name, which must lie in a folder.

    Raises:
        DataError: If it lies elsewhere: by its name, or through a link.

    >>> video_in(Path("clips"), "a/b.mp4").as_posix()
    'clips/a/b.mp4'
    """
    path = folder / name
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a circle of links, or no name of a file
        is_inside = False
    if not is_inside:
        raise DataError(
            f"video: expected a file in the folder {folder.absolute()}, got {shown(name)}, which "
            "lies elsewhere; name its folder with --videos, or videos= in Python"
        )
    return path
