"""A task's numbers by people beside those by the judge, and the score that labels correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, nan
from typing import TYPE_CHECKING

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.commands.label.matching import Domain, values_of
from lmms_eval_captions.lmms_eval_tasks.commands.label.pairs import Pair
from lmms_eval_captions.lmms_eval_tasks.verdicts.parts import Group, parts_of_captions
from lmms_eval_captions.metrics.interval import Interval, interval
from lmms_eval_captions.metrics.paired_interval import Difference, paired_interval
from lmms_eval_captions.metrics.ppi_mean import Corrected, Pairs, ppi_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Contribution = tuple[float, float]
"""What a pair adds to a metric's numerator and denominator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A metric of one task and captioner by people and by the judge."""

    metric: str
    group: Group | None
    """Of the breakdown; ``None`` for all questions."""
    n_labels: int
    judge_all: Interval | None
    """By the judge on all pairs."""
    labels_alone: Corrected | None
    corrected: Corrected | None
    """Both ``None`` where the metric is not a ratio of sums over pairs."""
    judge: float
    """By the judge on the labelled pairs alone, weighted as their sample asks for."""
    people: float
    """By people on the same."""
    difference: Difference | None
    """People less judge, on the same pairs."""
    note: str = ""


def compare(domain: Domain, metric: str, group: Group | None = None) -> Compared:
    """A metric by people and by the judge.

    Args:
        domain: A task of a captioner with labels.
        metric: One of the benchmark's.
        group: Questions of this group alone.
    """
    pairs = [p for p in domain.pairs if group is None or p.group(group[0]) == group[1]]
    people = [_people(domain, pair, metric) for pair in pairs]
    n_labels = sum(some is not None for some in people)
    found = Compared(
        metric=metric, group=group, n_labels=n_labels, judge_all=_judge_all(domain, metric, group),
        labels_alone=None, corrected=None, judge=nan, people=nan, difference=None,
    )  # fmt: skip
    if not n_labels:
        return replace(found, note="no label")
    judge = [
        _mean([_parts(pair, metric, values) for values in pair.runs(metric)]) for pair in pairs
    ]
    length = _other_factors(domain, metric)
    if length is None:
        return replace(found, note="not given: the captions' tokens are not known")
    known = domain.pairs[0].benchmark.metrics[metric]
    arrays = Pairs(
        judge=np.array(judge),
        people=np.array([some or (0.0, 0.0) for some in people]),
        is_labelled=np.array([some is not None for some in people]),
        videos=_places([pair.record.video_id for pair in pairs]),
        strata=_places([pair.stratum(domain.by) for pair in pairs]),
        weights=_weights(pairs, metric),
    )
    scale, bounds = known.scale * length, (0.0, known.highest)
    same = _same_pairs(arrays, scale)
    found = replace(found, judge=same[0], people=same[1], difference=same[2])
    if length != 1:
        return replace(
            found,
            difference=None,
            note="not corrected: it is a ratio to the captions' length; correct acc, and divide",
        )
    return replace(
        found,
        labels_alone=ppi_mean(arrays, scale=scale, bounds=bounds, lam=0.0),
        corrected=ppi_mean(arrays, scale=scale, bounds=bounds),
    )


def _people(domain: Domain, pair: Pair, metric: str) -> Contribution | None:
    """What people's labels of a pair add, mean over annotators; ``None`` without any."""
    said = (values_of(label, pair, metric) for label in domain.labelled(pair))
    parts = [_parts(pair, metric, values) for values in said if values is not None]
    return _mean(parts) if parts else None


def _parts(pair: Pair, metric: str, values: Sequence[object]) -> Contribution:
    """What these values of a pair would add by themselves."""
    ratios = pair.benchmark.metrics[metric].ratios
    if ratios is None:
        return nan, nan
    return ratios([values], [pair.record])[0][0]


def _mean(parts: Sequence[Contribution]) -> Contribution:
    if len(parts) == 1:
        return parts[0]
    return fsum(t for t, _ in parts) / len(parts), fsum(b for _, b in parts) / len(parts)


def _weights(pairs: Sequence[Pair], metric: str) -> Floats:
    """How much a pair counts: what its video adds, over what its questions would add alone.

    1 where a metric pools the questions of all videos; one over the number of a video's questions
    where it is a mean over videos of their own means.
    """
    of_videos: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        of_videos.setdefault(pair.record.video_id, []).append(place)
    weights = np.ones(len(pairs))
    ratios = pairs[0].benchmark.metrics[metric].ratios
    for places in of_videos.values():
        values = [pairs[place].runs(metric)[0] for place in places]
        record = pairs[places[0]].record
        if ratios is None:
            continue
        alone = fsum(ratios([some], [record])[0][0][1] for some in values)
        together = ratios([[each for some in values for each in some]], [record])[0][0][1]
        if alone:
            weights[places] = together / alone
    return weights


def _other_factors(domain: Domain, metric: str) -> float | None:
    """What a metric multiplies its ratio over questions with: 1 for most, ``None`` if not known."""
    benchmark, first = domain.pairs[0].benchmark, domain.pairs[0]
    ratios = benchmark.metrics[metric].ratios
    if ratios is not None and len(ratios([first.runs(metric)[0]], [first.record])[0]) == 1:
        return 1.0
    found = parts_of_captions(benchmark, metric, [domain.captions])
    if found is None:
        return None
    sums = found.parts[0].sum(axis=0)[0]
    return float(np.prod(sums[1:, 0] / sums[1:, 1]))


def _judge_all(domain: Domain, metric: str, group: Group | None) -> Interval | None:
    benchmark = domain.pairs[0].benchmark
    known = benchmark.metrics[metric]
    found = parts_of_captions(benchmark, metric, [domain.captions], group)
    if found is None:
        return None
    return interval(found.parts, scale=known.scale, bounds=(0.0, known.highest))


def _same_pairs(pairs: Pairs, scale: float) -> tuple[float, float, Difference]:
    """The judge's number, people's, and the difference people - judge on the labelled pairs."""
    sizes = np.bincount(pairs.strata, pairs.weights)
    labelled = np.where(pairs.is_labelled, pairs.weights, 0.0)
    drawn = np.bincount(pairs.strata, labelled, minlength=len(sizes))
    shares = labelled * (sizes / np.where(drawn > 0, drawn, np.inf))[pairs.strata]
    judge, people = (_of_videos(side, shares, pairs.videos) for side in (pairs.judge, pairs.people))
    difference = paired_interval(people, judge, scale=scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = [scale * s[0] / s[1] for s in (p.sum(axis=(0, 1, 2, 3)) for p in (judge, people))]
    return float(numbers[0]), float(numbers[1]), difference


def _of_videos(side: Floats, shares: Floats, videos: NDArray[np.intp]) -> Floats:
    """What videos add, shape (1, n_videos, 1, 1, 2)."""
    columns = [np.bincount(videos, shares * column).astype(np.float64) for column in side.T]
    sums: Floats = np.stack(columns, axis=-1)
    return sums[None, :, None, None, :]


def _places(names: Sequence[str]) -> NDArray[np.intp]:
    known: Mapping[str, int] = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.intp)


def design_notes(domain: Domain) -> list[str]:
    """How the sample was drawn, and what of it a reader must know."""
    n_labels = len(domain.labels)
    if domain.by:
        names = Counter(pair.stratum(domain.by) for pair in domain.pairs)
        how = f"stratified by {'+'.join(domain.by)} ({len(names)} strata, weighed by their sizes)"
    else:
        how = "drawn at random"
    return [f"{n_labels} of {len(domain.pairs):,} judged pairs are labelled, {how}"]
