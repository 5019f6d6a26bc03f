"""A task's numbers by people beside those by the judge, and the score that labels correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_eval_captions.analysis.label.matching import Domain, values_of
from lmms_eval_captions.analysis.label.pairs import Pair
from lmms_eval_captions.analysis.verdicts.parts import Group, parts_of_captions
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.intervals import Interval, interval
from lmms_eval_captions.metrics.paired import Difference, paired_interval
from lmms_eval_captions.metrics.parts import values_of_runs
from lmms_eval_captions.metrics.ppi import Corrected, Pairs, ppi_mean

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
    pairs = domain.pairs
    if group is not None:
        pairs = [pair for pair in pairs if pair.group(group[0]) == group[1]]
    people = (_people(domain, pair, metric) for pair in pairs)
    n_labels = sum(some is not None for some in people)
    found = Compared(
        metric=metric, group=group, n_labels=n_labels, judge_all=_judge_all(domain, metric, group),
        labels_alone=None, corrected=None, judge=nan, people=nan, difference=None,
    )  # fmt: skip
    if not n_labels:
        return replace(found, note="no label")
    length = other_factors(domain.pairs[0].benchmark, metric, domain.captions)
    if length is None:
        return replace(found, note="not given: the captions' tokens are not known")
    terms = [arrays_of(domain, metric, pairs)]
    n_silent = sum(bool(domain.labelled(pair)) for pair in pairs) - n_labels
    if n_silent:
        found = replace(
            found,
            note=f"{n_silent} of {n_silent + n_labels} labelled pairs lack it: the others stand "
            "for all, which skews it where people gave it to some answers more than to others",
        )
    return with_people(found, terms, domain.pairs[0].benchmark.metrics[metric], length)


def with_people(
    found: Compared, terms: Sequence[Pairs], metric: Metric, length: float = 1.0
) -> Compared:
    """What is found of a metric once people's labels are looked at.

    Args:
        found: What the judge says.
        terms: Its pairs; of a mean over several tasks those of each, all of which have labels.
        metric: Which one.
        length: What else it multiplies its ratio with, 1 for nothing.
    """
    scale, bounds = metric.scale * length, metric.bounds
    judge, people, difference = _same_pairs(terms, scale)
    found = replace(found, judge=judge, people=people)
    if length != 1:
        note = "not corrected: it is a ratio to the captions' length; correct acc, and divide"
        return replace(found, note=note)
    return replace(
        found,
        difference=difference,
        labels_alone=ppi_mean(*terms, scale=scale, bounds=bounds, lam=0.0),
        corrected=ppi_mean(*terms, scale=scale, bounds=bounds),
    )


def arrays_of(domain: Domain, metric: str, pairs: Sequence[Pair]) -> Pairs:
    """A task's pairs for a metric, its videos and strata numbered as they come.

    Args:
        domain: A task of a captioner with labels.
        metric: One of the benchmark's.
        pairs: Those of the task that count, at least one.
    """
    judge = [
        _mean([_parts(pair, metric, values) for values in pair.runs(metric)]) for pair in pairs
    ]
    people = [_people(domain, pair, metric) for pair in pairs]
    return Pairs(
        judge=np.array(judge),
        people=np.array([some or (0.0, 0.0) for some in people]),
        is_labelled=np.array([some is not None for some in people]),
        videos=places_of([pair.record.video_id for pair in pairs]),
        strata=places_of([pair.stratum(domain.by) for pair in pairs]),
        weights=_weights(pairs, metric),
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


def other_factors(
    benchmark: Benchmark[Any, Any], metric: str, captions: Sequence[CaptionRecord]
) -> float | None:
    """What a metric multiplies its ratio over questions with: 1 for most, ``None`` if not known."""
    ratios = benchmark.metrics[metric].ratios
    first = next(caption for caption in captions if caption.values[metric])
    if ratios is not None and len(ratios([first.values[metric][0]], [first])[0]) == 1:
        return 1.0
    found = parts_of_captions(benchmark, metric, [captions])
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
    return interval(found.parts, scale=known.scale, bounds=known.bounds)


def _same_pairs(terms: Sequence[Pairs], scale: float) -> tuple[float, float, Difference]:
    """The judge's number, people's, and the difference people - judge on the labelled pairs."""
    n_videos = 1 + max(int(pairs.videos.max()) for pairs in terms)
    both = [_sides(pairs, n_videos) for pairs in terms]
    judge, people = (np.stack(side, axis=1)[None, :, :, None] for side in zip(*both, strict=True))
    numbers = [float(values_of_runs(side, scale=scale)[0]) for side in (judge, people)]
    return numbers[0], numbers[1], paired_interval(people, judge, scale=scale)


def _sides(pairs: Pairs, n_videos: int) -> tuple[Floats, Floats]:
    """What videos add by the judge and by people on labelled pairs, shape (n_videos, 2) each."""
    sizes = np.bincount(pairs.strata, pairs.weights)
    labelled = np.where(pairs.is_labelled, pairs.weights, 0.0)
    drawn = np.bincount(pairs.strata, labelled, minlength=len(sizes))
    shares = labelled * (sizes / np.where(drawn > 0, drawn, np.inf))[pairs.strata]
    judge, people = (
        np.stack(
            [np.bincount(pairs.videos, shares * side, minlength=n_videos) for side in columns.T],
            axis=-1,
            dtype=np.float64,
        )
        for columns in (pairs.judge, pairs.people)
    )
    return judge, people


def places_of(names: Sequence[str]) -> NDArray[np.intp]:
    """Each name's place among those that there are, in the order in which they first come."""
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
