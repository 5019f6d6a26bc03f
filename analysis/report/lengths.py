"""How long captions are, beside what they score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from statistics import fmean

from lmms_eval_captions.analysis.report.rows import value_of
from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.report.tables import (
    NOTHING,
    Column,
    Table,
    cells,
)
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.correlation import correlations

LENGTHS: dict[str, Callable[[CaptionRecord], int | None]] = {
    "words": lambda record: record.n_words,
    "tokens": lambda record: n if isinstance(n := record.fields.get("n_tokens"), int) else None,
}
"""Measures of a caption's length: words, and T5's tokens where the run counted them."""


def lengths_of(view: View) -> list[str]:
    """The measures that are known of any caption."""
    captions = [
        caption
        for verdicts in view.verdicts
        if verdicts is not None
        for task in verdicts.tasks
        for caption in task.captions
    ]
    return [name for name, of in LENGTHS.items() if any(of(c) is not None for c in captions)]


def length_table(view: View, names: Sequence[str]) -> Table:
    """Mean length of each captioner's captions, and how the metrics go with it."""
    known = lengths_of(view)
    metrics = list(view.benchmark.metrics)
    columns = [
        Column("captioner"),
        *(Column(f"mean {name}", is_number=True) for name in known),
        *(Column(f"{metric} with {known[0]}", is_number=True) for metric in metrics if known),
    ]
    rows = [
        cells(name, *_row(verdicts, known, metrics))
        for name, verdicts in zip(names, view.verdicts, strict=True)
        if verdicts is not None
    ]
    notes = ["Spearman's rank correlation of captions' own scores with their length, in [-1, 1]."]
    return Table("Length of captions", columns, rows, notes)


def points_of(view: View) -> Iterator[tuple[str, str, list[list[tuple[float, float]]]]]:
    """Measure of length and metric, and for each captioner both of each caption."""
    for length in lengths_of(view):
        for metric in view.benchmark.metrics:
            of_captioners = [
                [] if verdicts is None else _points(verdicts, length, metric)
                for verdicts in view.verdicts
            ]
            if any(of_captioners):
                yield length, metric, of_captioners


def _points(verdicts: Verdicts, length: str, metric: str) -> list[tuple[float, float]]:
    """Length and value of each caption that has both."""
    return [
        (float(n), value)
        for task in verdicts.tasks
        for caption in task.captions
        if (n := LENGTHS[length](caption)) is not None
        and (value := value_of(verdicts.benchmark, metric, caption)) is not None
    ]


def _row(verdicts: Verdicts, known: Sequence[str], metrics: Sequence[str]) -> list[str]:
    captions = [caption for task in verdicts.tasks for caption in task.captions]
    row = []
    for name in known:
        lengths = [n for caption in captions if (n := LENGTHS[name](caption)) is not None]
        row.append(f"{fmean(lengths):,.1f}" if lengths else NOTHING)
    for metric in metrics if known else ():
        points = _points(verdicts, known[0], metric)
        row.append(_correlation(points))
    return row


def _correlation(points: Sequence[tuple[float, float]]) -> str:
    if len(points) < 2 or any(len({point[axis] for point in points}) < 2 for axis in (0, 1)):
        return NOTHING
    found = correlations(*zip(*points, strict=True)).spearman
    return NOTHING if isnan(found) else f"{found:+.2f}"
