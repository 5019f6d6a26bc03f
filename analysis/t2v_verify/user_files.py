"""Files of the user: ratings by people, captions, scores of captioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from lmms_eval_captions.analysis.captioners import captioners_of
from lmms_eval_captions.analysis.t2v_verify.rating import DIMENSIONS, HIGHEST, LOWEST, Key
from lmms_eval_captions.analysis.user_table import Row, name_of, number_of, read_user_table
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.endings import without_ending

Ratings = list[tuple[Key, Mapping[str, float]]]
"""Generated videos with a rating along each dimension that was rated."""
Scores = dict[str, dict[str, float]]
"""Value by name of the score and captioner."""
_COLUMNS = ("captioner", "video")


def read_ratings_file(path: Path) -> Ratings:
    """Read ratings by people, whole numbers from 1 to 5; an empty cell is a dimension not rated.

    Args:
        path: Table with ``captioner``, ``video``, ``rater``, ``VA``, ``SC``, ``AR``, ``LC``, and
            ``generator`` if there are several.

    Raises:
        DataError: If it cannot be read, lacks a column, or holds something that is not a rating;
            the message names the line.
    """
    ratings: dict[tuple[Key, str], Mapping[str, float]] = {}
    for where, row in read_user_table(path, _COLUMNS):
        key, rater = _key(row, where), _text(row, "rater", where)
        if (key, rater) in ratings:
            raise DataError(f"{where}: {rater!r:.80} rated {' '.join(key)!r:.120} twice")
        given = {name: row[name] for name in DIMENSIONS if row.get(name) not in (None, "")}
        for name, value in given.items():
            if number_of(value) not in range(LOWEST, HIGHEST + 1):
                raise DataError(
                    f"{where}: expected a whole number from {LOWEST} to {HIGHEST} under {name}, "
                    f"got {value!r:.80}"
                )
        ratings[key, rater] = {name: float(str(value)) for name, value in given.items()}
    if not ratings:
        raise DataError(f"{path}: expected ratings, got no row")
    return [(key, rating) for (key, _), rating in ratings.items()]


def read_captions_file(path: Path) -> dict[tuple[str, str], str]:
    """Read captions by captioner and video, from columns ``captioner``, ``video``, ``caption``.

    Raises:
        DataError: If it cannot be read or lacks a column; the message names the line.
    """
    captions = {}
    for where, row in read_user_table(path, _COLUMNS):
        captioner, _, video = _key(row, where)
        captions[captioner, video] = _text(row, "caption", where)
    return captions


def read_scores(paths: Sequence[Path]) -> Scores:
    """Read scores of captioners from one table, or from results folders of lmms-eval.

    Args:
        paths: A table with ``captioner`` and columns of numbers; or folders named like the
            captioners, of which every metric of every task is a score.

    Raises:
        DataError: If one cannot be read, or has no score.
    """
    if len(paths) > 1 or paths[0].suffix.lower() not in (".csv", ".jsonl", ".json"):
        return _scores_of_runs(paths)
    scores: Scores = {}
    for where, row in read_user_table(paths[0], _COLUMNS):
        name = _text(row, "captioner", where)
        for column, cell in row.items():
            if column == "captioner" or cell in ("", None):
                continue
            number = number_of(cell)
            if number is None:
                raise DataError(
                    f"{where}: expected a number under {column!r:.80}, got {cell!r:.80}"
                )
            if name in scores.setdefault(column, {}):
                raise DataError(f"{where}: {name!r:.80} has two rows")
            scores[column][name] = number
    if not scores:
        raise DataError(f"{paths[0]}: expected a column of scores next to 'captioner', got none")
    return scores


def _scores_of_runs(folders: Sequence[Path]) -> Scores:
    scores: Scores = {}
    for captioner in captioners_of(folders):
        for task in captioner.runs:
            for metric, value in captioner.results(task).scores.items():
                if isfinite(value):
                    scores.setdefault(f"{task} {metric}", {})[captioner.name] = value
    return scores


def _key(row: Row, where: str) -> Key:
    generator = row.get("generator")
    return (
        _text(row, "captioner", where),
        generator.strip() if isinstance(generator, str) else "",
        without_ending(_text(row, "video", where)),
    )


def _text(row: Row, column: str, where: str) -> str:
    text = name_of(row.get(column))
    if not text:
        raise DataError(f"{where}: expected text under {column!r}, got {row.get(column)!r:.80}")
    return text
