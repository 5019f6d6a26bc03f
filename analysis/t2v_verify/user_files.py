"""Files of the user: ratings by people, captions, scores of captioners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.analysis.captioners import captioners_of
from lmms_eval_captions.analysis.t2v_verify.rating import DIMENSIONS, HIGHEST, LOWEST
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import read_numbered_jsonl
from lmms_eval_captions.model_wrappers.caption_files.tables import open_csv
from lmms_eval_captions.model_wrappers.video.endings import without_ending

if TYPE_CHECKING:
    from lmms_eval_captions.analysis.t2v_verify.videos import Key

_TABLES: Final = (".csv", ".jsonl")
_CAPTIONER: Final = "captioner"

Row = Mapping[str, object]
Ratings = list[tuple["Key", Mapping[str, float]]]
"""Generated videos with a rating along each dimension that was rated."""
Scores = dict[str, dict[str, float]]
"""Value by name of the score and captioner."""


def read_ratings_file(path: Path) -> Ratings:
    """Read ratings by people, whole numbers from 1 to 5; an empty cell is a dimension not rated.

    Args:
        path: ``.csv`` or ``.jsonl`` with ``captioner``, ``video``, ``rater``, ``VA``, ``SC``,
            ``AR``, ``LC``, and ``generator`` if there are several.

    Raises:
        DataError: If it cannot be read, lacks a column, or holds something that is not a rating;
            the message names the line.
    """
    ratings: Ratings = []
    seen: set[tuple[Key, str]] = set()
    for where, row in _rows(path):
        key, rater = _key(row, where), _text(row, "rater", where)
        if (key, rater) in seen:
            raise DataError(f"{where}: {rater!r:.80} rated {' '.join(key)!r:.120} twice")
        seen.add((key, rater))
        given = {name: row[name] for name in DIMENSIONS if row.get(name) not in (None, "")}
        for name, value in given.items():
            if _number(value) not in range(LOWEST, HIGHEST + 1):
                raise DataError(
                    f"{where}: expected a whole number from {LOWEST} to {HIGHEST} under {name}, "
                    f"got {value!r:.80}"
                )
        ratings.append((key, {name: float(str(value)) for name, value in given.items()}))
    if not ratings:
        raise DataError(f"{path}: expected ratings, got no row")
    return ratings


def read_captions_file(path: Path) -> dict[tuple[str, str], str]:
    """Read captions by captioner and video.

    Args:
        path: ``.csv`` or ``.jsonl`` with ``captioner``, ``video`` and ``caption``.

    Raises:
        DataError: If it cannot be read or lacks a column; the message names the line.
    """
    captions = {}
    for where, row in _rows(path):
        captioner, _, video = _key(row, where)
        captions[captioner, video] = _text(row, "caption", where)
    return captions


def read_scores(paths: Sequence[Path]) -> Scores:
    """Read scores of captioners from one table, or from results folders of lmms-eval.

    Args:
        paths: A ``.csv`` or ``.jsonl`` file with ``captioner`` and columns of numbers; or folders
            named like the captioners, of which every metric of every task is a score.

    Raises:
        DataError: If one cannot be read, or has no score.
    """
    if len(paths) == 1 and paths[0].suffix.lower() in _TABLES:
        return _table_of_scores(paths[0])
    scores: Scores = {}
    for captioner in captioners_of(paths):
        for task in captioner.runs:
            for metric, value in captioner.results(task).scores.items():
                if isfinite(value):
                    scores.setdefault(f"{task} {metric}", {})[captioner.name] = value
    return scores


def _table_of_scores(path: Path) -> Scores:
    scores: Scores = {}
    for where, row in _rows(path):
        captioner = _text(row, _CAPTIONER, where)
        for name, cell in row.items():
            if name == _CAPTIONER or cell in ("", None):
                continue
            value = _number(cell)
            if value is None:
                raise DataError(f"{where}: expected a number under {name!r:.80}, got {cell!r:.80}")
            if captioner in scores.setdefault(name, {}):
                raise DataError(f"{where}: {captioner!r:.80} has two rows")
            scores[name][captioner] = value
    if not scores:
        raise DataError(f"{path}: expected a column of scores next to {_CAPTIONER!r}, got none")
    return scores


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield each row with its file and line, for messages."""
    ending = path.suffix.lower()
    if ending not in _TABLES:
        raise DataError(f"{path}: expected a file that ends in {' or '.join(_TABLES)}")
    if ending == ".jsonl":
        yield from ((f"{path}, line {line}", row) for line, row in read_numbered_jsonl(path))
        return
    try:
        with open_csv(path, separators=",;\t", expected=(_CAPTIONER, "video")) as table:
            for row, further in table:
                where = f"{path}, line {table.line}"
                if any(further):
                    raise DataError(f"{where}: more cells than the header has")
                yield where, {name.strip(): cell for name, cell in row.items()}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _key(row: Row, where: str) -> Key:
    generator = row.get("generator")
    return (
        _text(row, _CAPTIONER, where),
        generator.strip() if isinstance(generator, str) else "",
        without_ending(_text(row, "video", where)),
    )


def _text(row: Row, name: str, where: str) -> str:
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: expected text under {name!r}, got {value!r:.80}")
    return value.strip()


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
