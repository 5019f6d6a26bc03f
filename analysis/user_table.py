"""Tables that users hand over as files: scores of captions or captioners, ratings, captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.data.files import read_located
from lmms_eval_captions.model_wrappers.caption_files.tables import csv_rows

Row = Mapping[str, object]
ID_KEYS: Final = ("video_id", "id", "vname", "video")


def read_user_table(path: Path, columns: Sequence[str]) -> list[tuple[str, Row]]:
    """Return the rows of a file, each with its position for messages.

    Args:
        path: ``.csv`` (separated by commas, semicolons or tabs), ``.jsonl`` or ``.json``: a list of
            rows, or an object from an item to its ``score`` or to its columns.
        columns: Names of columns that the header may have; the first gets an object's items.

    Raises:
        DataError: If the file cannot be read, or is not such a table.
    """
    ending = path.suffix.lower()
    if ending == ".jsonl":
        return list(read_located(path))
    repeated: list[str] = []
    try:
        if ending == ".csv":
            return list(_csv_rows(path, columns))
        value = parse_json(read_whole(path), repeated) if ending == ".json" else None
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be read: {error}; give a .json, .jsonl or .csv file"
        ) from error
    if repeated:
        raise DataError(f"{path}: expected every key once, {repeated[0]!r:.80} occurs twice")
    if isinstance(value, dict):
        value = [
            {columns[0]: item, **(entry if isinstance(entry, dict) else {"score": entry})}
            for item, entry in value.items()
        ]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise DataError(f"{path}: expected a .json, .jsonl or .csv file of rows, see --help")
    return [(f"{path}, row {place}", row) for place, row in enumerate(value, start=1)]


def _csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
    for line, row, further in csv_rows(path, ",;\t", columns):
        where = f"{path}, line {line}"
        if any(further):
            raise DataError(f"{where} has more cells than the header")
        yield where, {name.strip(): cell for name, cell in row.items()}


def name_of(value: object) -> str:
    """Return a cell that names something, which may be a whole number; empty if it does not."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value).strip() if is_number or isinstance(value, str) else ""


def number_of(value: object) -> float | None:
    """Return a cell as a finite number; ``None`` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def read_scores(
    path: Path, keys: Sequence[str] = ID_KEYS, *, is_strict: bool = False
) -> dict[str, dict[str, float]]:
    """Read every column of numbers of a file; return scores by column and item.

    Args:
        path: See :func:`read_user_table`.
        keys: Columns of which one names a row's item.
        is_strict: Whether a cell that is neither empty nor a number is an error; otherwise it is
            left out.

    Raises:
        DataError: If the file cannot be read, a row names no item, an item occurs twice, or there
            is no number.
    """
    scores: dict[str, dict[str, float]] = {}
    seen: set[str] = set()
    for where, row in read_user_table(path, keys):
        item = next(filter(None, (name_of(row.get(key)) for key in keys)), None)
        if item is None:
            raise DataError(
                f"{where}: expected {' or '.join(keys)} with a name in every row, got {row!r:.80}"
            )
        if item in seen:
            raise DataError(f"{path}: expected one row per item, {item!r:.80} has two")
        seen.add(item)
        for column, cell in row.items():
            number = None if column in keys else number_of(cell)
            if number is not None:
                scores.setdefault(column, {})[item] = number
            elif is_strict and column not in keys and cell not in ("", None):
                raise DataError(
                    f"{where}: expected a number under {column!r:.80}, got {cell!r:.80}"
                )
    if not scores:
        raise DataError(f"{path}: expected a column of numbers, found none in {len(seen)} rows")
    return scores
