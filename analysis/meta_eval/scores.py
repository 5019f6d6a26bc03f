"""Metrics that are compared with people: the classic ones, and the user's from files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.user_table import name_of, number_of, read_user_table
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.classic_metrics import CLASSIC, classic_scores

_ID_KEYS: Final = ("video_id", "id", "vname", "video")

Values = Sequence[float | None]
"""A metric's value of each candidate."""
Column = tuple[str, Values, str]
"""A metric, its values, and a note on them."""


def read_scores(path: Path) -> dict[str, dict[str, float]]:
    """Read every column of numbers in a score file; return scores by column and item.

    Values that are empty, ``null`` or not finite are left out, and columns without a number.

    Args:
        path: See :func:`read_user_table`. A row names its item under ``video_id``, ``id``,
            ``vname`` or ``video``.

    Raises:
        DataError: If the file cannot be read, a row names no item, an item occurs twice, or there
            is no number.
    """
    columns: dict[str, dict[str, float]] = {}
    seen: set[str] = set()
    for where, row in read_user_table(path, _ID_KEYS):
        item = next(filter(None, (name_of(row.get(key)) for key in _ID_KEYS)), None)
        if item is None:
            raise DataError(
                f"{where}: expected {' or '.join(_ID_KEYS)} with a name in every row, got "
                f"{row!r:.80}"
            )
        if item in seen:
            raise DataError(f"{path}: expected one row per item, {item!r:.80} has two")
        seen.add(item)
        for name, value in row.items():
            number = None if name in _ID_KEYS else number_of(value)
            if number is not None:
                columns.setdefault(name, {})[item] = number
    if not columns:
        raise DataError(f"{path}: expected a column of numbers, found none in {len(seen)} rows")
    return columns


def own_columns(paths: Sequence[Path], names: Sequence[Sequence[str]]) -> Iterator[Column]:
    """Yield the columns of the user's score files.

    Args:
        paths: See :func:`read_scores`.
        names: Names that each candidate may have.

    Raises:
        DataError: If a file cannot be read, or scores none of the candidates.
    """
    for path in paths:
        for metric, scores in read_scores(path).items():
            used = [next((name for name in of if name in scores), None) for of in names]
            values = [None if name is None else scores[name] for name in used]
            n_missing, n_others = values.count(None), len(scores.keys() - set(used))
            if n_missing == len(values):
                examples = " or ".join(map(repr, dict.fromkeys(names[0])))
                hint = " (--items writes all)" if len(names[0]) == 1 else ""
                raise DataError(
                    f"{path}: expected scores of the rated captions, such as {examples}{hint}; "
                    f"column {metric!r} has {', '.join(list(scores)[:3])}"
                )
            notes = [f"candidates without a value: {n_missing:,}"] if n_missing else []
            notes += [f"values of no candidate: {n_others:,}"] if n_others else []
            yield metric, values, "; ".join(notes)


def classic_columns(items: Sequence[Any], notes: list[str]) -> Iterator[Column]:
    """Yield BLEU, ROUGE-L, METEOR and CIDEr of items with ``candidate`` and ``references``.

    If they cannot be computed they are empty, and a note says why.
    """
    try:
        scores: Mapping[str, Values] = classic_scores(
            [item.candidate for item in items], [item.references for item in items]
        )
    except DataError as error:
        notes.append(str(error))
        yield from ((metric, [None] * len(items), "see below") for metric in CLASSIC)
    else:
        yield from ((metric, scores[metric], "") for metric in CLASSIC)
