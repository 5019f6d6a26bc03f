"""The user's metrics from a file: one or more scores per item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.data.files import read_jsonl
from lmms_eval_captions.model_wrappers.caption_files.tables import open_csv

_ID_KEYS: Final = ("video_id", "id", "vname", "video")
_VALUE: Final = "score"

Columns = dict[str, dict[str, float]]
"""Score by column and item."""


def read_scores(path: Path) -> Columns:
    """Read every column of numbers in a score file.

    Args:
        path: ``.json`` (an object from item to number or to an object of columns, or a list of
            rows), ``.jsonl`` or ``.csv``. A row names its item under ``video_id``, ``id``,
            ``vname`` or ``video``.

    Returns:
        Scores as they are in the file, without values that are empty, ``null`` or not finite, and
        without columns that have no number.

    Raises:
        DataError: If the file cannot be read, a row names no item, an item occurs twice, or there
            is no number.
    """
    columns: Columns = {}
    seen: set[str] = set()
    for row in _rows(path):
        item = next(filter(None, (_name(row.get(key)) for key in _ID_KEYS)), None)
        if item is None:
            raise DataError(
                f"{path}: expected {' or '.join(_ID_KEYS)} with a name in every row, got "
                f"{row!r:.80}"
            )
        if item in seen:
            raise DataError(f"{path}: expected one row per item, {item!r:.80} has two")
        seen.add(item)
        for name, value in row.items():
            number = None if name in _ID_KEYS else _number(value)
            if number is not None:
                columns.setdefault(name, {})[item] = number
    if not columns:
        raise DataError(f"{path}: expected a column of numbers, found none in {len(seen)} rows")
    return columns


def align(
    scores: Mapping[str, float], names: Iterable[Sequence[str]]
) -> tuple[list[float | None], int]:
    """Return a column's scores in the order of the items, ``None`` for items without one.

    Args:
        scores: Item to score.
        names: Names that each item may have.

    Returns:
        The scores, and the number of the column's scores that belong to no item.
    """
    ordered: list[float | None] = []
    used: set[str] = set()
    for spellings in names:
        name = next((spelling for spelling in spellings if spelling in scores), None)
        ordered.append(None if name is None else scores[name])
        used |= set() if name is None else {name}
    return ordered, len(set(scores) - used)


def _rows(path: Path) -> Sequence[Mapping[str, object]]:
    ending = path.suffix.lower()
    if ending == ".jsonl":
        return read_jsonl(path)
    try:
        if ending == ".csv":
            return _csv_rows(path)
        repeated: list[str] = []
        value = parse_json(read_whole(path), repeated) if ending == ".json" else None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read: {error}; give a .json, .jsonl or .csv file of scores"
        ) from error
    if repeated:
        raise DataError(f"{path}: expected every key once, {repeated[0]!r:.80} occurs twice")
    if isinstance(value, dict):
        return [
            {_ID_KEYS[0]: item, **(entry if isinstance(entry, dict) else {_VALUE: entry})}
            for item, entry in value.items()
        ]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise DataError(f"{path}: expected a .json, .jsonl or .csv file of scores, see --help")
    return value


def _csv_rows(path: Path) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    with open_csv(path) as table:
        for row, further in table:
            if any(further):
                raise ValueError(f"line {table.line} has more cells than the header")
            rows.append(row)
    return rows


def _name(value: object) -> str | None:
    """Return an item's name, which may be a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and isfinite(number) else None
