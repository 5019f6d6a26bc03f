"""Tables that users hand over as files: scores of captions or captioners, ratings, captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.lmms_eval_tasks.data.files import read_numbered_jsonl
from lmms_eval_captions.model_wrappers.caption_files.tables import open_csv

Row = Mapping[str, object]


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
        return [(f"{path}, line {line}", row) for line, row in read_numbered_jsonl(path)]
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
    with open_csv(path, separators=",;\t", expected=columns) as table:
        for row, further in table:
            where = f"{path}, line {table.line}"
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
