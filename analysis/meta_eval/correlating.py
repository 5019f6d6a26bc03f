"""Agreement of metrics with people's ratings or choices, next to the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import isnan, nan
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from lmms_eval_captions.analysis.meta_eval.published_sets import RatedCaption, RatedSet
from lmms_eval_captions.analysis.user_table import read_scores
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.common.classic_metrics import CLASSIC, classic_scores
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.metrics import correlation
from lmms_eval_captions.metrics.intervals import interval

_SEED: Final = 0
"""Seed of the intervals' draws, the same for every row."""
_VARIANTS: Final[tuple[correlation.Variant, ...]] = ("b", "c")
_PAPER_FOIL: Final = {
    1: {"ROUGE-L": "71.1", "METEOR": "78.8", "CIDEr": "82.5"},
    4: {"ROUGE-L": "79.3", "METEOR": "82.6", "CIDEr": "90.6"},
}
"""Accuracies in percent. Source: G-VEval, Table 7; its "BLEU" does not say of which order."""

Document = dict[str, Any]
"""Findings of JSON's types."""
Column = tuple[str, Sequence[float | None], str]
"""A metric, its value of each candidate, and a note on them."""


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
            counts = {"candidates without a value": n_missing, "values of no candidate": n_others}
            note = "; ".join(f"{what}: {n:,}" for what, n in counts.items() if n)
            columns.append((metric, values, note))
    if items is None:
        return columns
    try:
        classic = classic_scores([of.candidate for of in items], [of.references for of in items])
    except DataError as error:
        notes.append(str(error))
        return [*columns, *((metric, [None] * len(items), "see below") for metric in CLASSIC)]
    return [*columns, *((metric, classic[metric], "") for metric in CLASSIC)]


def meta_eval_ratings(
    rated: RatedSet, *, classic: bool, score_files: Sequence[Path], n_resamples: int
) -> Document:
    """Correlate metrics with the ratings of a set; the user's name captions by their index."""
    notes: list[str] = []
    names = [[str(index)] for index in range(len(rated.items))]
    columns = all_columns(score_files, names, rated.items if classic else None, notes)
    if rated.decimals is not None:
        columns = [
            (metric, [None if v is None else round(v, rated.decimals) for v in values], note)
            for metric, values, note in columns
        ]
    (rating,) = rated.ratings
    return correlated(rated, [(rating, column) for column in columns], n_resamples, notes)


def correlated(
    rated: RatedSet, columns: Sequence[tuple[str, Column]], n_resamples: int, notes: Sequence[str]
) -> Document:
    """Return how well metrics agree with the annotators, in percent, and these with each other.

    Each column comes with the name of the rating that it is compared with.
    """

    def ceiling(rating: str, variant: correlation.Variant) -> float:
        ratings = rated.ratings[rating]
        return 100 * correlation.annotator_tau(ratings, variant=variant, are_known=rated.are_known)

    ratings = chain.from_iterable(next(iter(rated.ratings.values())))
    return {
        "title": f"{rated.title}: {len(rated.items):,} candidates",
        "counting": rated.counting,
        "n_ratings": sum(not isnan(rating) for rating in ratings),
        "n_resamples": n_resamples,
        "rows": [_correlated(rated, rating, column, n_resamples) for rating, column in columns],
        "ceilings": [
            {"rating": rating, "tau_b": ceiling(rating, "b"), "tau_c": ceiling(rating, "c")}
            for rating in dict.fromkeys(rating for rating, _ in columns)
        ],
        "notes": list(dict.fromkeys(notes)),
    }


def _correlated(rated: RatedSet, rating: str, column: Column, n_resamples: int) -> Document:
    metric, values, note = column
    scored = [index for index, value in enumerate(values) if value is not None]
    scores = [value for value in values if value is not None]
    ratings = [rated.ratings[rating][index] for index in scored]
    clusters = [rated.sources[index] for index in scored] if rated.sources else None
    row: Document = {"metric": metric, "rating": rating, "n_items": len(scored)}
    for variant in _VARIANTS:
        tau, ends = nan, (nan, nan)
        if scored:
            of, by_annotator = (scores, ratings), rated.by_annotator
            tau = correlation.kendall_tau(*of, variant=variant, by_annotator=by_annotator)
            ends = correlation.kendall_interval(
                *of, variant=variant, rng=np.random.default_rng(_SEED), n_resamples=n_resamples,
                clusters=clusters, by_annotator=by_annotator,
            )  # fmt: skip
        row[f"tau_{variant}"] = 100 * tau
        row[f"interval_{variant}"] = [100 * end for end in ends]
    if not note and isnan(row["tau_b"]):
        note = "all values are equal" if scored else "no value"
    return {**row, "paper": rated.paper.get(metric, ""), "note": note}


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
        f"{report['counting']};\n95% intervals from {report['n_resamples']:,} draws of the "
        f"candidates (seed {_SEED}); annotators: agreement of one with another."
    )
    return "\n".join([head, "", *text_table(rows), "", *report["notes"]]).rstrip()


def names_of(pairs: Sequence[RatedCaption]) -> list[str]:
    """Return the names of both captions of every pair of FOIL.

    >>> names_of([RatedCaption("image", "right", ()), RatedCaption("image", "wrong", ())])
    ['0-right', '0-wrong']
    """
    return [f"{index // 2}-{('right', 'wrong')[index % 2]}" for index in range(len(pairs))]


def meta_eval_foil(
    pairs: Sequence[RatedCaption], *, n_references: int, classic: bool, score_files: Sequence[Path]
) -> Document:
    """Report the share of FOIL's pairs whose right caption a metric prefers, G-VEval's Table 7."""
    notes: list[str] = []
    names = [[name] for name in names_of(pairs)]
    columns = all_columns(score_files, names, pairs if classic else None, notes)
    rows = [_accuracy(column, pairs, _PAPER_FOIL[n_references]) for column in columns]
    return {"n_pairs": len(pairs) // 2, "n_references": n_references, "rows": rows, "notes": notes}


def _accuracy(column: Column, pairs: Sequence[RatedCaption], paper: Mapping[str, str]) -> Document:
    """Return how often a metric prefers the right caption, in percent; a tie is wrong."""
    metric, values, note = column
    sides = {"right": values[::2], "wrong": values[1::2]}
    scored = pd.DataFrame(sides, [pair.source for pair in pairs[::2]], dtype=float).dropna()
    is_better = scored["right"] > scored["wrong"]
    parts = is_better.groupby(level=0, sort=False).agg(["sum", "size"]).to_numpy(float)
    found = interval(parts[None, :, None, None, :], scale=100.0, bounds=(0.0, 100.0))
    return {
        "metric": metric,
        "n_pairs": len(scored),
        "accuracy": found.value,
        "interval": [nan if end is None else end for end in (found.low, found.high)],
        "n_ties": int((scored["right"] == scored["wrong"]).sum()),
        "paper": paper.get(metric, ""),
        "note": note or ("" if len(scored) else "no value"),
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
