"""FOIL: pairs of a right caption and the same with one wrong word, G-VEval's Table 7.

Files: ``foilv1.0_test_2017.json`` (``annotations``: each with ``id``, ``image_id``, ``caption`` and
``foil``, true for the wrong one; the right one has the same ``id``) and COCO's
``captions_val2014.json`` (``annotations`` with ``image_id`` and ``caption``), whose other captions
of the image are the references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from operator import eq
from pathlib import Path
from typing import Final

import numpy as np

from lmms_eval_captions.analysis.meta_eval.rated_sets import RatedCaption, read_json_file
from lmms_eval_captions.analysis.meta_eval.report import (
    Column,
    Document,
    classic_columns,
    own_columns,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.intervals import interval

_FOIL: Final = "foilv1.0_test_2017.json"
_COCO: Final = "captions_val2014.json"
_PAPER: Final = {
    1: {"ROUGE-L": "71.1", "METEOR": "78.8", "CIDEr": "82.5"},
    4: {"ROUGE-L": "79.3", "METEOR": "82.6", "CIDEr": "90.6"},
}
"""Accuracies in percent. Source: G-VEval, Table 7; its "BLEU" does not say of which order."""


def read_foil(folder: Path, n_references: int) -> list[RatedCaption]:
    """Read all pairs, in the order of the file: the right caption, then the wrong one.

    Args:
        folder: Holds both files.
        n_references: 1 for the first of the image's other captions, 4 for all of them.

    Raises:
        DataError: If a file is missing or not as published.
    """
    captions: dict[object, list[str]] = {}
    for image, caption, _ in _annotations(folder / _COCO):
        captions.setdefault(image, []).append(caption)
    rights: dict[object, str] = {}
    wrongs: list[tuple[object, object, str]] = []
    path = folder / _FOIL
    for image, caption, row in _annotations(path):
        if not isinstance(row.get("foil"), bool) or "id" not in row:
            raise DataError(f"{path}: expected 'id' and 'foil', true or false, got {row!r:.120}")
        if row["foil"]:
            wrongs.append((row["id"], image, caption))
        else:
            rights[row["id"]] = caption
    pairs: list[RatedCaption] = []
    for name, image, text in wrongs:
        if name not in rights:
            raise DataError(f"{path}: annotation {name!r} has a foil and no caption without one")
        references = [caption for caption in captions.get(image, []) if caption != rights[name]]
        if not references:
            raise DataError(f"{path}: image {image!r} has no other caption in {_COCO}")
        chosen = tuple(references[:1] if n_references == 1 else references)
        pairs += [RatedCaption(str(image), of, chosen) for of in (rights[name], text)]
    if not pairs:
        raise DataError(f'{path}: expected at least one caption with "foil": true, got none')
    return pairs


def _annotations(path: Path) -> Iterator[tuple[object, str, Mapping[str, object]]]:
    """Yield image, caption and row of each annotation."""
    document = read_json_file(path)
    rows = document.get("annotations") if isinstance(document, Mapping) else None
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected an object with a list of 'annotations'")
    for row in rows:
        caption = row.get("caption") if isinstance(row, Mapping) else None
        image = row.get("image_id") if isinstance(row, Mapping) else None
        if not isinstance(caption, str) or not isinstance(image, int | str):
            raise DataError(f"{path}: expected 'image_id' and 'caption', got {row!r:.120}")
        yield image, caption, row


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
    rights, wrongs = [right for _, right, _ in scored], [wrong for *_, wrong in scored]
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
        "n_ties": sum(map(eq, rights, wrongs)),
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
