"""Agreement of people with one another and with the judge, on one task of one captioner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np

from lmms_eval_captions.analysis.label.matching import Domain
from lmms_eval_captions.metrics.agreement import (
    Coefficient,
    Rating,
    agreement_interval,
    ratings_of,
)

_OF_LABELS: Final[tuple[Coefficient, ...]] = ("ac1", "nominal")
_WITH_JUDGE: Final[tuple[Coefficient, ...]] = ("kappa", "ac1")
_OF_NUMBERS: Final[tuple[Coefficient, ...]] = ("interval",)


def agreements_of(domain: Domain) -> Iterator[dict[str, Any]]:
    """Yield the agreement among annotators, of each with the judge, and of all with the judge.

    ``n_pairs`` counts the pairs that at least two of the raters rated.
    """
    headline = domain.table.benchmark.headline
    ratings = domain.labels.assign(rating=list(map(_rating, domain.said(headline))))
    ratings = ratings.drop_duplicates(["pair", "annotator"], keep="last")
    table = ratings.pivot(index="pair", columns="annotator", values="rating").astype(object)
    table = table.where(table.notna(), None)
    pairs = domain.pairs.loc[table.index]
    # What the judge said in most of its runs; of equally frequent verdicts, the first.
    judge = [
        _rating(Counter(runs).most_common(1)[0][0])
        for runs in pairs[domain.table.head["values"][headline]]
    ]
    is_number = any(isinstance(rating, float) for rating in judge)
    videos = pairs["video"].tolist()
    people = table.to_numpy().tolist()
    if table.shape[1] > 1:
        kinds = _OF_NUMBERS if is_number else _OF_LABELS
        yield _agreement("annotators among one another", people, videos, kinds)
    kinds = _OF_NUMBERS if is_number else _WITH_JUDGE
    for name in table:
        rows = list(zip(table[name], judge, strict=True))
        yield _agreement(f"{name} with the judge", rows, videos, kinds)
    if table.shape[1] > 1:
        rows = [(r, said) for of, said in zip(people, judge, strict=True) for r in of]
        videos = [video for video in videos for _ in table]
        yield _agreement("all with the judge", rows, videos, kinds)


def _agreement(
    who: str,
    rows: Sequence[Sequence[Rating | None]],
    videos: Sequence[str],
    kinds: Sequence[Coefficient],
) -> dict[str, Any]:
    ratings = ratings_of(rows)
    clusters = np.unique(videos, return_inverse=True)[1]
    return {
        "who": who,
        "n_pairs": int(((ratings.codes >= 0).sum(axis=1) > 1).sum()),
        "coefficients": {
            kind: agreement_interval(ratings, clusters, coefficient=kind) for kind in kinds
        },
    }


def _rating(values: Sequence[Any] | None) -> Rating | None:
    """Return what the headline reads of a pair as one rating: a verdict, or a mean of numbers."""
    if values is None:
        return None
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return fmean(map(float, values))
