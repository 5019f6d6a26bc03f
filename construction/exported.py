"""Lines of JSON that pages export, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import BadLineError, json_lines


class Exported(NamedTuple):
    """A person's answer, as a page exports it."""

    where: str
    """File and line, for errors."""
    row: Mapping[str, Any]


def exported_lines(path: Path) -> Iterator[Exported]:
    """Yield the lines of a file; :class:`DataError` names a line that cannot be read."""
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

    ``key`` tells who spoke of what; files may hold again what another one holds.
    """
    lines = [line for path in paths for line in exported_lines(path)]
    by_time = sorted(lines, key=lambda line: str(line.row.get("answered_at")))
    last = {key(line): line for line in by_time}
    return [last[name] for name in dict.fromkeys(map(key, lines))], len(lines) - len(last)
