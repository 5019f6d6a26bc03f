"""A benchmark's official files, one of several, any of which may have nothing in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import write_rows


def write_file(
    folder: Path, name: str, rows: Sequence[Mapping[str, Any]], *, n: int
) -> dict[str, int]:
    """Write a file; without questions there is none, as its reader would refuse it.

    Args:
        folder: The benchmark's.
        name: Path below it. The file that an earlier build left there is taken away where this
            one has no questions for it.
        rows: Its lines.
        n: Its questions.

    Returns:
        The name with the number of questions; empty where there are none.

    Raises:
        DataError: If it cannot be written, or taken away.
    """
    path = folder / name
    if n:
        write_rows(path, rows)
        return {name: n}
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be taken away: {error}") from error
    return {}
