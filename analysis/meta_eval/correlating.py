"""Correlations of metrics with people's ratings, next to the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from lmms_eval_captions.analysis.meta_eval.published_sets import RatedSet
from lmms_eval_captions.analysis.meta_eval.scores import Column, classic_columns, own_columns
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.correlation import annotator_tau, kendall_interval, kendall_tau

_SEED: Final = 0
"""Seed of the intervals' draws, the same for every row."""
_VARIANTS: Final[tuple[Literal["b", "c"], ...]] = ("b", "c")

Document = dict[str, Any]
"""Findings of JSON's types."""


def meta_eval_ratings(
    rated: RatedSet, *, classic: bool, score_files: Sequence[Path], n_resamples: int
) -> Document:
    """Correlate metrics with the ratings of a published set.

    Args:
        rated: The set.
        classic: Whether to compute BLEU, ROUGE-L, METEOR and CIDEr (needs Java).
        score_files: The user's scores, by the captions' indices in the set, from 0.
        n_resamples: Draws of the intervals.

    Raises:
        DataError: If a score file cannot be used.
    """
    notes: list[str] = []
    columns = list(own_columns(score_files, [[str(index)] for index in range(len(rated.items))]))
    if classic:
        columns += classic_columns(rated.items, notes)
    if rated.decimals is not None:
        columns = [
            (metric, [None if v is None else round(v, rated.decimals) for v in values], note)
            for metric, values, note in columns
        ]
    ratings = [item.ratings for item in rated.items]
    rows = [
        correlated(
            column, "human", ratings, paper=rated.paper.get(column[0], ""),
            n_resamples=n_resamples, sources=[item.source for item in rated.items],
            by_annotator=rated.by_annotator,
        )
        for column in columns
    ]  # fmt: skip
    return {
        "title": f"{rated.title}: {len(rated.items):,} candidates",
        "counting": rated.counting,
        "n_ratings": sum(not isnan(rating) for row in ratings for rating in row),
        "n_resamples": n_resamples,
        "rows": rows,
        "ceilings": [ceiling("human", ratings, are_known=rated.by_annotator)],
        "notes": notes,
    }


def correlated(
    column: Column,
    rating: str,
    ratings: Sequence[Sequence[float]],
    *,
    paper: str,
    n_resamples: int,
    sources: Sequence[str] | None = None,
    by_annotator: bool = False,
) -> Document:
    """Return how one metric agrees with the annotators, in percent.

    Args:
        column: The metric.
        rating: Rating that it is compared with.
        ratings: Shape (n_candidates, n_annotators).
        paper: What the paper prints.
        n_resamples: Draws of the intervals.
        sources: Image or video of each candidate, which is drawn with all of its candidates.
        by_annotator: Whether tau is the mean over annotators.
    """
    metric, values, note = column
    scored = [index for index, value in enumerate(values) if value is not None]
    scores = [value for value in values if value is not None]
    rated = [ratings[index] for index in scored]
    clusters = None if sources is None else [sources[index] for index in scored]
    found: Document = {"metric": metric, "rating": rating, "n_items": len(scored)}
    for variant in _VARIANTS:
        tau, ends = nan, (nan, nan)
        if scored:
            tau = kendall_tau(scores, rated, variant=variant, by_annotator=by_annotator)
            ends = kendall_interval(
                scores, rated, variant=variant, rng=np.random.default_rng(_SEED),
                n_resamples=n_resamples, clusters=clusters, by_annotator=by_annotator,
            )  # fmt: skip
        found[f"tau_{variant}"] = 100 * tau
        found[f"interval_{variant}"] = [100 * end for end in ends]
    if not note and isnan(found["tau_b"]):
        note = "all values are equal" if scored else "no value"
    return {**found, "paper": paper, "note": note}


def ceiling(rating: str, ratings: Sequence[Sequence[float]], *, are_known: bool = True) -> Document:
    """Return how well annotators agree with each other, in percent; see :func:`annotator_tau`."""
    taus = {
        f"tau_{variant}": 100 * annotator_tau(ratings, variant=variant, are_known=are_known)
        for variant in _VARIANTS
    }
    return {"rating": rating, **taus}


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
        f"95% intervals from {report['n_resamples']:,} draws of the candidates (seed {_SEED}); "
        "annotators: agreement of one with another.",
    )
    return "\n".join([*head, "", *text_table(rows), "", *report["notes"]]).rstrip()
