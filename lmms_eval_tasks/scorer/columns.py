"""Columns as people have them: lists, and those of pandas, numpy and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import shown


def listed(name: str, column: Any) -> list[Any]:  # noqa: ANN401 - whatever holds values
    """The values of a column, with lists and dictionaries within them; ``None`` for none.

    Args:
        name: What it is called.
        column: A sequence, a series of pandas, an array of numpy or Arrow.

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
    """A value as Python has it: arrays as lists, what is missing as ``None``."""
    if is_missing(value):
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def without_nulls(question: object) -> object:
    """A question without what a table has put in the place of fields that are not there."""
    if not isinstance(question, Mapping):
        return question
    return {name: value for name, value in question.items() if value is not None}


def is_missing(value: object) -> bool:
    """Whether a value stands for none, as ``nan``, ``NA`` and ``NaT`` of pandas do.

    >>> is_missing(float("nan")), is_missing(None), is_missing("nan")
    (True, True, False)
    """
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def caption_of(value: object) -> str | None:
    """A caption, ``None`` where there is none.

    Raises:
        DataError: If it is no text.
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        return value
    raise DataError(f"caption: expected text, got {shown(value)}")


def references_of(value: object) -> list[str]:
    """Reference captions: one, or a list of them.

    Raises:
        DataError: If one is no text.
    """
    texts = [value] if isinstance(value, str) else ([] if is_missing(value) else value)
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"reference: expected text, or a list of texts, got {shown(value)}")
    return list(texts)


def name_of_clip(value: object) -> str:
    """A clip's name.

    Raises:
        DataError: If it is none.
    """
    if isinstance(value, (str, int)):
        return str(value)
    raise DataError(f"clip_id: expected text or a whole number, got {shown(value)}")
