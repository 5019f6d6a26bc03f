"""Metrics compared with published sets of rated captions other than MSVD-Eval."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

import numpy as np

from lmms_eval_captions.analysis.meta_eval.report import (
    SEED,
    Column,
    Document,
    agreement,
    ceiling,
    classic_columns,
    own_columns,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import parse_json, read_whole
from lmms_eval_captions.metrics.correlation import Variant, kendall_interval, kendall_tau


@dataclass(frozen=True, slots=True)
class RatedCaption:
    """One candidate caption with its references and ratings."""

    source: str
    """Image or video of the caption."""
    candidate: str
    references: tuple[str, ...]
    ratings: tuple[float, ...] = ()
    """One per annotator; ``nan`` if one gave none."""


@dataclass(frozen=True, slots=True)
class RatedSet:
    """A published set of rated captions, and how its table correlates metrics with them."""

    title: str
    items: Sequence[RatedCaption]
    """In the order of the file; their indices are their names."""
    counting: str
    """Ratings that Kendall's tau is of, for the head of the report."""
    by_annotator: bool = False
    """True if tau is the mean over annotators, not one with all ratings together."""
    knows_annotators: bool = False
    """True if the n-th rating of all items is the same person's."""
    decimals: int | None = None
    """Decimal places that metrics are rounded to first; ``None`` for no rounding."""
    paper: Mapping[str, str] = field(default_factory=dict)
    """The paper's numbers by metric, tau-b / tau-c x 100."""


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
    ratings = [item.ratings for item in rated.items]
    return {
        "title": f"{rated.title}: {len(rated.items):,} candidates",
        "counting": rated.counting,
        "n_ratings": sum(not isnan(rating) for row in ratings for rating in row),
        "n_resamples": n_resamples,
        "rows": [_row(rated, column, n_resamples=n_resamples) for column in columns],
        "ceilings": [ceiling("human", ratings, are_known=rated.knows_annotators)],
        "notes": notes,
    }


def _row(rated: RatedSet, column: Column, *, n_resamples: int) -> Document:
    digits = rated.decimals

    def taus(
        scores: Sequence[float], scored: Sequence[int], variant: Variant
    ) -> tuple[float, float, float]:
        shown = scores if digits is None else [round(score, digits) for score in scores]
        ratings = [rated.items[index].ratings for index in scored]
        tau = kendall_tau(shown, ratings, variant=variant, by_annotator=rated.by_annotator)
        low, high = kendall_interval(
            shown,
            ratings,
            variant=variant,
            rng=np.random.default_rng(SEED),
            n_resamples=n_resamples,
            clusters=[rated.items[index].source for index in scored],
            by_annotator=rated.by_annotator,
        )
        return tau, low, high

    return agreement(column, "human", taus, paper=rated.paper.get(column[0], ""))


def items_text(items: Sequence[RatedCaption], names: Sequence[str] = ()) -> str:
    """Return the captions that a metric of the user's is to score, a line of JSON each.

    Args:
        items: The captions.
        names: Their names, by default their indices.
    """
    names = names or [str(index) for index in range(len(items))]
    rows = (
        {"id": name, "source": of.source, "candidate": of.candidate, "references": of.references}
        for name, of in zip(names, items, strict=True)
    )
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def read_json_file(path: Path) -> object:
    """Read a published JSON file.

    Raises:
        DataError: If it is missing or not JSON.
    """
    try:
        return parse_json(read_whole(path))
    except FileNotFoundError as error:
        raise DataError(
            f"no file {path}; --data names its folder, as its authors publish it"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; download it again") from error
