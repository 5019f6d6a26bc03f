"""How far people agree with one another, and with the judge, on one task of one captioner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from lmms_eval_captions.analysis.label.matching import Domain, consensus, values_of
from lmms_eval_captions.metrics.agreement import Coefficient, agreement_interval
from lmms_eval_captions.metrics.clusters import Rating, ratings_of
from lmms_eval_captions.metrics.intervals import Interval

_OF_LABELS: tuple[Coefficient, ...] = ("ac1", "nominal")
_WITH_JUDGE: tuple[Coefficient, ...] = ("kappa", "ac1")
_OF_NUMBERS: tuple[Coefficient, ...] = ("interval",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of raters on the pairs that all or some of them rated."""

    who: str
    n_pairs: int
    """Pairs that at least two of them rated."""
    coefficients: dict[str, Interval]


def agreements_of(domain: Domain) -> list[Agreement]:
    """Agreement among the annotators, of each with the judge, and of all with the judge."""
    names = domain.annotators
    pairs = [pair for pair in domain.pairs if domain.labelled(pair)]
    headline = domain.pairs[0].benchmark.headline
    people: list[list[Rating | None]] = []
    judge: list[Rating | None] = []
    for pair in pairs:
        said = {
            label.annotator: values_of(label, pair, headline) for label in domain.labelled(pair)
        }
        people.append([_rating(said.get(name)) for name in names])
        judge.append(_rating(consensus(pair.runs(headline))))
    videos = [pair.record.video_id for pair in pairs]
    return list(_agreements(names, people, judge, videos))


def _agreements(
    names: Sequence[str],
    people: Sequence[Sequence[Rating | None]],
    judge: Sequence[Rating | None],
    videos: Sequence[str],
) -> Iterator[Agreement]:
    is_number = any(isinstance(rating, float) for rating in judge)
    if len(names) > 1:
        kinds = _OF_NUMBERS if is_number else _OF_LABELS
        yield _agreement("annotators among one another", people, videos, kinds)
    kinds = _OF_NUMBERS if is_number else _WITH_JUDGE
    for place, name in enumerate(names):
        rows = [(row[place], said) for row, said in zip(people, judge, strict=True)]
        yield _agreement(f"{name} with the judge", rows, videos, kinds)
    if len(names) > 1:
        each = [
            (rating, said, video)
            for row, said, video in zip(people, judge, videos, strict=True)
            for rating in row
        ]
        rows = [(rating, said) for rating, said, _ in each]
        yield _agreement("all with the judge", rows, [video for *_, video in each], kinds)


def _agreement(
    who: str,
    rows: Sequence[Sequence[Rating | None]],
    videos: Sequence[str],
    kinds: Sequence[Coefficient],
) -> Agreement:
    ratings = ratings_of(rows)
    places = np.unique(np.array(videos), return_inverse=True)[1]
    return Agreement(
        who=who,
        n_pairs=sum(sum(rating is not None for rating in row) > 1 for row in rows),
        coefficients={
            kind: agreement_interval(ratings, places, coefficient=kind) for kind in kinds
        },
    )


def _rating(values: Sequence[object] | None) -> Rating | None:
    """What the headline reads of a pair as one rating: a verdict, or the mean of numbers."""
    if values is None:
        return None
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return fmean(float(str(value)) for value in values)
