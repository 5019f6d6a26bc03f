"""Files that users give beside the videos: ratings of people, captions, caption scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.t2v_verify.generated import Key
from lmms_eval_captions.analysis.t2v_verify.rating import (
    DIMENSIONS,
    HIGHEST,
    LOWEST,
)
from lmms_eval_captions.analysis.verdicts.captioners import captioners_of
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data.files import read_numbered_jsonl
from lmms_eval_captions.model_wrappers.caption_files.tables import open_csv
from lmms_eval_captions.model_wrappers.video.endings import without_ending

_TABLES: Final = (".csv", ".jsonl")
_CAPTIONER: Final = "captioner"

Row = Mapping[str, object]
Ratings = dict[Key, list[dict[str, float]]]
"""Generated video to what each person gave it along the dimensions that they rated."""
Scores = dict[str, dict[str, float]]
"""Name of a score to captioner to its value."""


def read_ratings_file(path: Path) -> Ratings:
    """Ratings of people, whole numbers from 1 to 5; an empty cell is a dimension not rated.

    Args:
        path: ``.csv`` or ``.jsonl`` with ``captioner``, ``video``, ``rater``, ``VA``, ``SC``,
            ``AR``, ``LC``, and ``generator`` where there are several.

    Raises:
        DataError: If it cannot be read, lacks a column, or holds something that is no rating; the
            text names the line.
    """
    ratings: Ratings = {}
    seen: set[tuple[Key, str]] = set()
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        key = _key(row, where)
        rater = _text(row, "rater", where)
        if (key, rater) in seen:
            raise DataError(f"{where}: {rater!r:.80} rated {' '.join(key)!r:.120} twice")
        seen.add((key, rater))
        given = {name: _rating(row, name, where) for name in DIMENSIONS}
        ratings.setdefault(key, []).append(
            {name: value for name, value in given.items() if value is not None}
        )
    if not ratings:
        raise DataError(f"{path}: expected ratings, it has no row")
    return ratings


def read_captions_file(path: Path) -> dict[tuple[str, str], str]:
    """Captions by captioner and video.

    Args:
        path: ``.csv`` or ``.jsonl`` with ``captioner``, ``video`` and ``caption``.

    Raises:
        DataError: If it cannot be read or lacks a column; the text names the line.
    """
    captions: dict[tuple[str, str], str] = {}
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        captioner, _, video = _key(row, where)
        captions[captioner, video] = _text(row, "caption", where)
    return captions


def read_scores(paths: Sequence[Path]) -> Scores:
    """Scores of captioners: one table, or results folders of lmms-eval.

    Args:
        paths: A ``.csv`` or ``.jsonl`` file with ``captioner`` and columns of numbers; or folders,
            in which captioners are called as the folders are, and every metric of every task is a
            score.

    Raises:
        DataError: If one cannot be read, or has no score.
    """
    if len(paths) == 1 and paths[0].suffix.lower() in _TABLES:
        return _table_of_scores(paths[0])
    scores: Scores = {}
    for captioner in captioners_of(paths):
        for task, run in captioner.runs.items():
            for metric, value in run.tasks[task].scores.items():
                if isfinite(value):
                    scores.setdefault(f"{task} {metric}", {})[captioner.name] = value
    return scores


def _table_of_scores(path: Path) -> Scores:
    scores: Scores = {}
    for line, row in _rows(path):
        where = f"{path}, line {line}"
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
        raise DataError(f"{path}: expected a column of scores beside {_CAPTIONER!r}, found none")
    return scores


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Each row with its line's number."""
    ending = path.suffix.lower()
    if ending == ".jsonl":
        yield from read_numbered_jsonl(path)
    elif ending == ".csv":
        try:
            with open_csv(path, separators=",;\t", expected=(_CAPTIONER, "video")) as table:
                for row, further in table:
                    if any(further):
                        raise DataError(
                            f"{path}, line {table.line}: more cells than the header has"
                        )
                    yield table.line, {name.strip(): cell for name, cell in row.items()}
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}") from error
    else:
        raise DataError(f"{path}: expected a file that ends in {' or '.join(_TABLES)}")


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
        raise DataError(f"{where}: expected something under {name!r}, got {value!r:.80}")
    return value.strip()


def _rating(row: Row, name: str, where: str) -> float | None:
    value = row.get(name)
    if value is None or value == "":
        return None
    number = _number(value)
    if number is None or number not in range(LOWEST, HIGHEST + 1):
        raise DataError(
            f"{where}: expected a whole number from {LOWEST} to {HIGHEST} under {name}, got "
            f"{value!r:.80}"
        )
    return number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
