"""Columns as people have them: lists, and those of pandas, numpy and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import shown


def listed(column: Any) -> list[Any]:  # noqa: ANN401 - whatever holds values
    """The values of a column, with lists and dictionaries within them.

    Args:
        column: A sequence, a series of pandas, an array of numpy or Arrow.
    """
    values: Iterable[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column
    return [plain(value) for value in values]


def plain(value: Any) -> Any:  # noqa: ANN401 - of any column
    """A value as Python has it: arrays as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def caption_of(value: object) -> str | None:
    """A caption, ``None`` where there is none, as ``nan`` of pandas says, too.

    Raises:
        DataError: If it is no text.
    """
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return None
    raise DataError(f"captions: expected text, got {shown(value)}")
