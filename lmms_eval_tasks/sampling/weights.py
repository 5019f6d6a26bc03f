"""What was asked of a caption, and its verdicts weighed by what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import fsum, nan, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item, Values

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric, Videos
    from lmms_eval_captions.lmms_eval_tasks.ratios import Parts, Ratios


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Of one caption, as its record's ``sample`` holds it."""

    weights: Sequence[float]
    """Shape (n_questions,): how many questions each stands for; 0 where it was not asked, 1 where
    it stands for itself alone."""
    strata: Sequence[int]
    """Shape (n_questions,): the stratum that it was drawn in, -1 for none."""
    rank: int
    """The process whose strata these are."""
    lam: float = 0.0
    """Trust in the cheap judge, in [0, 1]."""
    cheap: Mapping[str, Values] = field(default_factory=dict)
    """Metric to what it reads of the cheap judge's verdicts on all questions, in one judge run;
    empty without one."""

    @property
    def n_asked(self) -> int:
        """Questions that were asked."""
        return sum(weight > 0 for weight in self.weights)

    @property
    def is_whole(self) -> bool:
        """Whether every question stands for itself, as without a sample, and nothing is kept."""
        return not self.cheap and all(weight == 1 for weight in self.weights)

    def to_item(self) -> Item:
        """As records hold it."""
        return asdict(self)

    @classmethod
    def of(cls, record: CaptionRecord) -> Sample | None:
        """That of a record, ``None`` where every question was asked.

        Raises:
            TypeError: If it is not what :meth:`to_item` makes.
        """
        return cls(**cast("dict[str, Any]", record.sample)) if record.sample else None

    def of_metric(self, name: str) -> Sample:
        """The same, with what this metric reads alone."""
        return replace(
            self, cheap={metric: v for metric, v in self.cheap.items() if metric == name}
        )


_NOTHING: Final = (0.0, 0.0)
_FEW_ASKED: Final = 50
"""Questions of a group below which the cheap judge's verdicts on the others do not count."""
_NO_RATIO: Final = "it is no ratio of sums, and cannot be computed of a sample of the questions"
_NOBODY: Final = CaptionRecord(
    task="", video_id="", judge="", runs=0, protocol=0, extras={}, n_questions=0, n_unscored=0
)
"""Stands for a caption where verdicts alone are read."""


class Weighed(NamedTuple):
    """What one question adds to a metric in one judge run."""

    top: float
    """By the judge's verdict, times what it stands for."""
    bottom: float
    cheap_top: float
    """By the cheap judge's, as far as it counts."""
    cheap_bottom: float
    weight: float
    """How many questions it stands for, 0 where it was not asked."""
    is_unscored: bool
    """Whether it was asked and has no verdict."""


def weighed(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord], *, always: bool = False
) -> tuple[Benchmark[Any, Any], Sequence[CaptionRecord]]:
    """A benchmark whose metrics read weighed values, and records that hold them.

    Args:
        benchmark: The records' own.
        records: Captions of one task, or of tasks that are pooled, with what some of the metrics
            read.
        always: Whether values are weighed where no record is a sample, too.

    Returns:
        Both as they are where no record is a sample, but for ``always``.
    """
    if not always and not any(record.sample for record in records):
        return benchmark, records
    metrics = {
        name: weighed_metric(
            metric,
            (
                question
                for record in records
                for values in record.values.get(name, ())
                for question in _questions(metric, values)
            ),
        )
        for name, metric in benchmark.metrics.items()
    }
    made = [_weighed_record(benchmark, record) for record in records]
    return benchmark.variant(metrics=metrics), made


def counts_in(runs: Sequence[Sequence[Sequence[object]]], n_values: int) -> tuple[int, int]:
    """Questions that were asked in a judge run, the most of any, and unscored ones over all runs.

    Args:
        runs: What a metric reads, shape (n_runs, n_captions, n_values of all questions).
        n_values: Of each question.
    """
    n_asked = max(
        sum(_is_asked(value) for values in run for value in values[::n_values]) for run in runs
    )
    every = (value for run in runs for values in run for value in values[::n_values])
    return n_asked, sum(map(_is_unscored, every))


def is_mean(metric: Metric, some: Iterable[Sequence[object]]) -> bool:
    """Whether a metric is a mean over videos of means over their questions, not one over all.

    Args:
        metric: One that is a ratio of sums.
        some: What it reads of single questions; the first with a verdict that counts tells.
    """
    ratios = _of_verdicts(metric)
    for values in some:
        (one,), (two,) = ratios([values, [*values, *values]])
        if one[1]:
            return one[1] == two[1]
    return False


def examples_of(metric: Metric) -> list[list[object]]:
    """What a metric may read of a question: each of its labels, or a number."""
    return [[label] * metric.n_values for label in metric.labels or (1.0,)]


def contributions(metric: Metric, values: Sequence[object]) -> list[tuple[float, float]]:
    """What each question by itself adds to a metric's numerator and denominator.

    Args:
        metric: One that is a ratio of sums; where others read the captions, the first counts.
        values: What it reads of all questions of a caption in one judge run.
    """
    return [parts[0] for parts in _of_verdicts(metric)(_questions(metric, values))]


def _questions(metric: Metric, values: Sequence[object]) -> list[Sequence[object]]:
    n = metric.n_values
    return [values[at : at + n] for at in range(0, len(values), n)]


def _of_verdicts(metric: Metric) -> Callable[[Videos], list[Parts]]:
    """A metric's ratio over verdicts, without those that read the captions."""
    ratios = metric.ratios
    if ratios is None:
        raise TypeError("expected a metric that is a ratio of sums")
    return lambda videos: [parts[:1] for parts in ratios(videos, [_NOBODY] * len(videos))]


def weighed_metric(metric: Metric, some: Iterable[Sequence[object]]) -> Metric:
    """Return the metric that reads weighed values.

    Args:
        metric: The metric of plain values.
        some: What it reads of single questions, see :func:`is_mean`.
    """
    if metric.ratios is None:
        return replace(metric, unavailable=lambda _records: _NO_RATIO, n_values=1, labels=())
    ratios = partial(_ratios, metric, is_mean(metric, some))
    return replace(
        metric, ratios=ratios, score=partial(_score, ratios, metric.scale), n_values=1, labels=()
    )


def _ratios(
    metric: Metric,
    has_means: bool,
    videos: Sequence[Sequence[Weighed]],
    records: Sequence[CaptionRecord],
) -> list[Parts]:
    """What each caption adds, from weighed values; other ratios are those of the captions."""
    n_asked = sum(one.weight > 0 for video in videos for one in video)
    # Of few, the interval would hardly see more than the cheap judge's verdicts.
    trust = 1.0 if n_asked >= _FEW_ASKED else 0.0
    first = [_pair(video, trust=trust, has_means=has_means) for video in videos]
    if not metric.reads_fields or metric.ratios is None:
        return [[pair] for pair in first]
    # All captions count there, asked about or not, and not only those that have a first part.
    others = metric.ratios([()] * len(records), records)
    first += [_NOTHING] * (len(records) - len(first))
    return [[pair, *parts[1:]] for pair, parts in zip(first, others, strict=True)]


def _pair(video: Sequence[Weighed], *, trust: float, has_means: bool) -> tuple[float, float]:
    """What a caption's questions add, all of them or those of a group.

    Args:
        video: The questions.
        trust: 1 where the cheap judge's verdicts count, else 0.
        has_means: Whether it is their mean that counts, of those with a verdict.
    """
    tops, bottoms = fsum(one.top for one in video), fsum(one.bottom for one in video)
    factor, n = 1.0, 1
    if has_means and video:
        n = len(video)
        asked = fsum(one.weight for one in video)
        scored = fsum(one.weight for one in video if not one.is_unscored)
        factor = asked / scored if scored else 1.0
    return (
        (factor * tops + trust * fsum(one.cheap_top for one in video)) / n,
        (factor * bottoms + trust * fsum(one.cheap_bottom for one in video)) / n,
    )


def _score(ratios: Ratios, scale: float, videos: Videos, records: Sequence[CaptionRecord]) -> float:
    parts = ratios(videos, records)
    if not parts:
        return nan
    sums = [
        (fsum(pair[0] for pair in of), fsum(pair[1] for pair in of))
        for of in zip(*parts, strict=True)
    ]
    # Weighed denominators may be below 0 where a cheap judge stands for nearly all.
    return scale * prod(top / bottom for top, bottom in sums) if _are_above_0(sums) else nan


def _are_above_0(sums: Sequence[tuple[float, float]]) -> bool:
    return all(bottom > 0 for _, bottom in sums)


def _weighed_record(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> CaptionRecord:
    sample = Sample.of(record)
    values = {
        name: [weighed_run(benchmark.metrics[name], name, run, sample) for run in runs]
        for name, runs in record.values.items()
    }
    return replace(record, values=values, sample={})


def weighed_run(
    metric: Metric, name: str, values: Sequence[object], sample: Sample | None
) -> list[Weighed]:
    """Return what each question of a caption adds to a metric in one judge run."""
    if metric.ratios is None:
        return []
    pairs = contributions(metric, values)
    weights = [1.0] * len(pairs) if sample is None else sample.weights
    trust, cheap = 0.0, [_NOTHING] * len(pairs)
    if sample is not None and name in sample.cheap:
        trust, cheap = sample.lam, contributions(metric, sample.cheap[name][0])
    return [
        Weighed(
            weight * top,
            weight * bottom,
            trust * (1 - weight) * cheap_top,
            trust * (1 - weight) * cheap_bottom,
            weight,
            weight > 0 and all(value is None for value in question),
        )
        for weight, (top, bottom), (cheap_top, cheap_bottom), question in zip(
            weights, pairs, cheap, _questions(metric, values), strict=True
        )
    ]


def _is_asked(value: object) -> bool:
    return not isinstance(value, Weighed) or value.weight > 0


def _is_unscored(value: object) -> bool:
    return value.is_unscored if isinstance(value, Weighed) else value is None
