"""Lines of JSON that pages export, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import BadLineError, json_lines


@dataclass(frozen=True, slots=True)
class Exported:
    """A person's answer, as a page exports it."""

    where: str
    """File and line, for errors."""
    row: Mapping[str, Any]


def exported_lines(path: Path) -> Iterator[Exported]:
    """The lines of a file.

    Raises:
        DataError: If it or a line of it cannot be read; the text names the line.
    """
    try:
        for number, row in json_lines(path):
            if not isinstance(row, dict):
                raise DataError(f"{path}, line {number}: expected a label, got {row!r:.80}")
            yield Exported(f"{path}, line {number}", row)
    except BadLineError as error:
        raise DataError(
            f"{path}, line {error.number}: expected one JSON object per line ({error}), as the "
            "page of lmms-eval-captions label exports them"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def last_words(
    paths: Iterable[Path], key: Callable[[Exported], tuple[object, ...]]
) -> tuple[list[Exported], int]:
    """Return each person's last answer to each item, and the number of lines that leaves out.

    Args:
        paths: Files; one may hold again what another one holds.
        key: Tells who spoke of what.

    Raises:
        DataError: As :func:`exported_lines`.
    """
    kept: dict[tuple[object, ...], Exported] = {}
    n_lines = 0
    for path in paths:
        for line in exported_lines(path):
            n_lines += 1
            name = key(line)
            before = kept.get(name)
            if before is None or _time(before) <= _time(line):
                kept[name] = line
    return list(kept.values()), n_lines - len(kept)


def _time(line: Exported) -> str:
    return str(line.row.get("answered_at"))
