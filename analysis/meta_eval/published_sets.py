"""Metrics beside the ratings of published sets other than MSVD-Eval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Final

import numpy as np

from lmms_eval_captions.analysis.meta_eval.foil import PAPER, FoilPair
from lmms_eval_captions.analysis.meta_eval.rated_captions import RatedSet
from lmms_eval_captions.analysis.meta_eval.report import (
    SEED,
    Accuracy,
    Agreement,
    Ceiling,
    PairReport,
    Report,
)
from lmms_eval_captions.analysis.meta_eval.score_file import align, read_scores
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.classic_metrics import CLASSIC, classic_scores
from lmms_eval_captions.metrics.agreement import pairwise_accuracy
from lmms_eval_captions.metrics.correlation import Variant, clustered_tau
from lmms_eval_captions.metrics.intervals import interval

_RATING: Final = "human"
Column = tuple[str, Sequence[float | None], str]
"""A metric, its value of each caption, and what must be known of it."""


def meta_eval_ratings(
    rated: RatedSet, *, classic: bool, score_files: Sequence[Path], n_resamples: int
) -> Report:
    """Correlate metrics with the ratings of a published set.

    Args:
        rated: The set.
        classic: Whether to compute BLEU, ROUGE-L, METEOR and CIDEr (needs Java).
        score_files: Files of a user's own scores, by the captions' places in the set, from 0 on.
        n_resamples: Draws of the intervals.

    Raises:
        DataError: If a score file cannot be used.
    """
    names = [str(place) for place in range(len(rated.items))]
    notes: list[str] = []
    columns = [
        *_own_columns(score_files, names),
        *_classic_columns(
            [item.candidate for item in rated.items],
            [item.references for item in rated.items],
            notes,
            wanted=classic,
        ),
    ]
    rows = [_agreement(rated, column, n_resamples=n_resamples) for column in columns]
    ratings = [item.ratings for item in rated.items]
    ceiling = Ceiling.of(_RATING, ratings, are_known=rated.knows_annotators)
    return Report(
        title=f"{rated.title}: {len(rated.items):,} candidates",
        counting=rated.counting,
        n_ratings=sum(not isnan(rating) for row in ratings for rating in row),
        n_resamples=n_resamples,
        rows=tuple(rows),
        ceilings=(ceiling,),
        notes=tuple(notes),
    )


def meta_eval_foil(
    pairs: Sequence[FoilPair], *, n_references: int, classic: bool, score_files: Sequence[Path]
) -> PairReport:
    """How often metrics prefer the right caption of a pair.

    Args:
        pairs: The pairs.
        n_references: 1 or 4, which the paper's column is of.
        classic: As :func:`meta_eval_ratings`.
        score_files: Files of a user's own scores, by the captions' names: ``0-right``, ``0-wrong``.

    Raises:
        DataError: If a score file cannot be used.
    """
    names = [f"{place}-{side}" for place in range(len(pairs)) for side in ("right", "wrong")]
    texts = [text for pair in pairs for text in (pair.right, pair.wrong)]
    references = [pair.references for pair in pairs for _ in range(2)]
    notes: list[str] = []
    columns = [
        *_own_columns(score_files, names),
        *_classic_columns(texts, references, notes, wanted=classic),
    ]
    images = [pair.image for pair in pairs]
    paper = PAPER[n_references]
    rows = [_accuracy(column, images, paper.get(column[0], "")) for column in columns]
    return PairReport(len(pairs), n_references, tuple(rows), tuple(notes))


def _own_columns(paths: Sequence[Path], names: Sequence[str]) -> Iterator[Column]:
    for path in paths:
        for metric, scores in read_scores(path).items():
            values, n_others = align(scores, [[name] for name in names])
            n_missing = values.count(None)
            if n_missing == len(values):
                raise DataError(
                    f"{path}: expected scores of captions called {names[0]!r}, {names[1]!r}, ... "
                    f"(--items writes them); column {metric!r} has {', '.join(list(scores)[:3])}"
                )
            parts = [f"{n_missing:,} captions have no value"] if n_missing else []
            parts += [f"{n_others:,} values are of no caption"] if n_others else []
            yield metric, values, "; ".join(parts)


def _classic_columns(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    notes: list[str],
    *,
    wanted: bool,
) -> Iterator[Column]:
    """The classic metrics; where they cannot be computed, empty ones, and a note that says why."""
    if not wanted:
        return
    try:
        scores: Mapping[str, Sequence[float | None]] = classic_scores(candidates, references)
        why = ""
    except DataError as error:
        notes.append(str(error))
        scores, why = {metric: [None] * len(candidates) for metric in CLASSIC}, "see below"
    yield from ((metric, scores[metric], why) for metric in CLASSIC)


def _agreement(rated: RatedSet, column: Column, *, n_resamples: int) -> Agreement:
    metric, values, note = column
    paper = rated.paper.get(metric, "")
    round_: Callable[[float], float] = (
        float if rated.decimals is None else lambda value: round(value, rated.decimals)
    )
    kept = [
        (round_(value), item)
        for value, item in zip(values, rated.items, strict=True)
        if value is not None
    ]
    if not kept:
        return Agreement(
            metric, _RATING, 0, nan, (nan, nan), nan, (nan, nan), paper, note or "no value"
        )

    def taus(variant: Variant) -> tuple[float, float, float]:
        found = clustered_tau(
            [value for value, _ in kept],
            [item.ratings for _, item in kept],
            [item.source for _, item in kept],
            variant=variant,
            by_annotator=rated.by_annotator,
            rng=np.random.default_rng(SEED),
            n_resamples=n_resamples,
        )
        return found[0] * 100, found[1] * 100, found[2] * 100

    (tau_b, *interval_b), (tau_c, *interval_c) = taus("b"), taus("c")
    return Agreement(
        metric,
        _RATING,
        len(kept),
        tau_b=tau_b,
        interval_b=(interval_b[0], interval_b[1]),
        tau_c=tau_c,
        interval_c=(interval_c[0], interval_c[1]),
        paper=paper,
        note=note or ("all values are equal" if isnan(tau_b) else ""),
    )


def _accuracy(column: Column, images: Sequence[str], paper: str) -> Accuracy:
    metric, values, note = column
    kept = [
        (right, wrong, image)
        for right, wrong, image in zip(values[::2], values[1::2], images, strict=True)
        if right is not None and wrong is not None
    ]
    if not kept:
        return Accuracy(metric, 0, nan, (nan, nan), 0, paper, note or "no value")
    accuracy = pairwise_accuracy([right for right, _, _ in kept], [wrong for _, wrong, _ in kept])
    of_images: dict[str, tuple[int, int]] = {}
    for right, wrong, image in kept:
        n_right, n = of_images.get(image, (0, 0))
        of_images[image] = (n_right + (right > wrong), n + 1)
    parts = np.array(list(of_images.values()), dtype=np.float64)[None, :, None, None, :]
    found = interval(parts, scale=100.0, bounds=(0.0, 100.0))
    n_ties = sum(right == wrong for right, wrong, _ in kept)
    low = nan if found.low is None else found.low
    high = nan if found.high is None else found.high
    return Accuracy(metric, len(kept), 100 * accuracy, (low, high), n_ties, paper, note)
