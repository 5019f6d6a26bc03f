"""Metrics that are compared with people: the classic ones, and the user's from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def all_columns(
    score_files: Sequence[Path],
    names: Sequence[Sequence[str]],
    items: Sequence[Any] | None,
    notes: list[str],
) -> list[Column]:
    """Return the columns of the user's score files, then BLEU, ROUGE-L, METEOR and CIDEr.

    Args:
        score_files: See :func:`read_scores`.
        names: Names that each candidate may have.
        items: Candidates with their references; ``None`` to leave the classic metrics out.
        notes: Collects why classic metrics cannot be computed, which are empty then.
    """
    columns: list[Column] = []
    for path in score_files:
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
            counts = [f"candidates without a value: {n_missing:,}"] if n_missing else []
            counts += [f"values of no candidate: {n_others:,}"] if n_others else []
            columns.append((metric, values, "; ".join(counts)))
    if items is None:
        return columns
    try:
        classic: Mapping[str, Values] = classic_scores(
            [item.candidate for item in items], [item.references for item in items]
        )
    except DataError as error:
        notes.append(str(error))
        return [*columns, *((metric, [None] * len(items), "see below") for metric in CLASSIC)]
    return [*columns, *((metric, classic[metric], "") for metric in CLASSIC)]
