"""Share of FOIL's pairs whose right caption a metric prefers, G-VEval's Table 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Final

import numpy as np

from lmms_eval_captions.analysis.meta_eval.correlating import Document
from lmms_eval_captions.analysis.meta_eval.published_sets import RatedCaption
from lmms_eval_captions.analysis.meta_eval.scores import Column, classic_columns, own_columns
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.intervals import interval

_PAPER: Final = {
    1: {"ROUGE-L": "71.1", "METEOR": "78.8", "CIDEr": "82.5"},
    4: {"ROUGE-L": "79.3", "METEOR": "82.6", "CIDEr": "90.6"},
}
"""Accuracies in percent. Source: G-VEval, Table 7; its "BLEU" does not say of which order."""


def names_of(pairs: Sequence[RatedCaption]) -> list[str]:
    """Return the names of both captions of every pair.

    >>> names_of([RatedCaption("image", "right", ()), RatedCaption("image", "wrong", ())])
    ['0-right', '0-wrong']
    """
    return [f"{index // 2}-{('right', 'wrong')[index % 2]}" for index in range(len(pairs))]


def meta_eval_foil(
    pairs: Sequence[RatedCaption], *, n_references: int, classic: bool, score_files: Sequence[Path]
) -> Document:
    """Report how often metrics prefer the right caption of a pair.

    Args:
        pairs: See :func:`read_foil`.
        n_references: 1 or 4, the column of the paper's table.
        classic: Whether to compute BLEU, ROUGE-L, METEOR and CIDEr (needs Java).
        score_files: The user's scores, by the captions' names: ``0-right``, ``0-wrong``, ...

    Raises:
        DataError: If a score file cannot be used.
    """
    notes: list[str] = []
    columns = list(own_columns(score_files, [[name] for name in names_of(pairs)]))
    if classic:
        columns += classic_columns(pairs, notes)
    rows = [_accuracy(column, pairs, _PAPER[n_references]) for column in columns]
    return {"n_pairs": len(pairs) // 2, "n_references": n_references, "rows": rows, "notes": notes}


def _accuracy(column: Column, pairs: Sequence[RatedCaption], paper: Mapping[str, str]) -> Document:
    """Return how often a metric prefers the right caption, in percent; a tie is wrong."""
    metric, values, note = column
    scored = [
        (pair.source, right, wrong)
        for pair, right, wrong in zip(pairs[::2], values[::2], values[1::2], strict=True)
        if right is not None and wrong is not None
    ]
    of_images: dict[str, list[bool]] = {}
    for image, right, wrong in scored:
        of_images.setdefault(image, []).append(right > wrong)
    parts = np.array([(sum(of), len(of)) for of in of_images.values()], dtype=np.float64)
    found = None
    if scored:
        found = interval(parts[None, :, None, None, :], scale=100.0, bounds=(0.0, 100.0))
    ends = (found.low, found.high) if found else (None, None)
    return {
        "metric": metric,
        "n_pairs": len(scored),
        "accuracy": found.value if found else nan,
        "interval": [nan if end is None else end for end in ends],
        "n_ties": sum(right == wrong for _, right, wrong in scored),
        "paper": paper.get(metric, ""),
        "note": note or ("" if scored else "no value"),
    }


def text_of_pairs(report: Document) -> str:
    """Format a report: a line for each metric, then the notes."""
    rows = [("metric", "pairs", "accuracy", "95%", "ties", "paper", "")] + [
        (row["metric"], f"{row['n_pairs']:,}", f"{row['accuracy']:.1f}",
         "[{:.1f}, {:.1f}]".format(*row["interval"]), f"{row['n_ties']:,}", row["paper"],
         row["note"])
        for row in report["rows"]
    ]  # fmt: skip
    head = (
        f"FOIL: {report['n_pairs']:,} pairs, {report['n_references']} reference(s). Percentage of "
        "pairs in which the right caption has the higher value; a tie is wrong."
    )
    return "\n".join([head, "", *text_table(rows), "", *report["notes"]]).rstrip()
