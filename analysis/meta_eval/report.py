"""Rows of a report on metrics and people: correlations with ratings, next to the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.meta_eval.score_file import align, read_scores
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.classic_metrics import CLASSIC, classic_scores
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.correlation import Variant, annotator_tau

SEED: Final = 0
"""Seed of the intervals' draws, the same for every row."""

Values = Sequence[float | None]
"""A metric's value of each candidate."""
Column = tuple[str, Values, str]
"""A metric, its values, and a note on them."""
Document = dict[str, Any]
"""Findings of JSON's types."""
Taus = Callable[[Sequence[float], Sequence[int], Variant], tuple[float, float, float]]
"""From scores of some candidates, their indices and a variant to tau and its interval's ends."""


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
            values, n_others = align(scores, names)
            n_missing = values.count(None)
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


def agreement(column: Column, rating: str, taus: Taus, *, paper: str) -> Document:
    """Return how one metric agrees with the annotators, in percent.

    Args:
        column: The metric.
        rating: Rating that it is compared with.
        taus: Correlates some of the candidates.
        paper: What the paper prints.
    """
    metric, values, note = column
    scores = [value for value in values if value is not None]
    scored = [index for index, value in enumerate(values) if value is not None]
    variants: tuple[Variant, Variant] = ("b", "c")
    of_b, of_c = (
        [100 * value for value in taus(scores, scored, variant)] if scored else [nan] * 3
        for variant in variants
    )
    if not note and isnan(of_b[0]):
        note = "all values are equal" if scored else "no value"
    return {
        "metric": metric,
        "rating": rating,
        "n_items": len(scored),
        "tau_b": of_b[0],
        "interval_b": of_b[1:],
        "tau_c": of_c[0],
        "interval_c": of_c[1:],
        "paper": paper,
        "note": note,
    }


def ceiling(rating: str, ratings: Sequence[Sequence[float]], *, are_known: bool = True) -> Document:
    """Return how well annotators agree with each other, in percent; see :func:`annotator_tau`."""
    return {
        "rating": rating,
        "tau_b": 100 * annotator_tau(ratings, variant="b", are_known=are_known),
        "tau_c": 100 * annotator_tau(ratings, variant="c", are_known=are_known),
    }


def text_of(report: Document) -> str:
    """Format a report: a line for each row, then the notes."""
    among = {
        of["rating"]: "" if isnan(of["tau_b"]) else f"{of['tau_b']:.1f} / {of['tau_c']:.1f}"
        for of in report["ceilings"]
    }
    rows = [
        ("metric", "rating", "n", "tau-b", "95%", "tau-c", "95%", "annotators b / c",
         "paper b / c", "")
    ] + [
        (row["metric"], row["rating"], str(row["n_items"]),
         f"{row['tau_b']:.1f}", "[{:.1f}, {:.1f}]".format(*row["interval_b"]),
         f"{row['tau_c']:.1f}", "[{:.1f}, {:.1f}]".format(*row["interval_c"]),
         among.get(row["rating"], ""), row["paper"], row["note"])
        for row in report["rows"]
    ]  # fmt: skip
    head = (
        f"{report['title']}, {report['n_ratings']:,} ratings. Kendall's tau x 100 with "
        f"{report['counting']};",
        f"95% intervals from {report['n_resamples']:,} draws of the candidates (seed {SEED}); "
        "annotators: agreement of one with another.",
    )
    return "\n".join([*head, "", *text_table(rows), "", *report["notes"]]).rstrip()
