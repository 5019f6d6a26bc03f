"""Metrics with their 95% intervals over videos, and the contribution of each caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import isfinite, isnan, lcm
from statistics import fmean
from typing import Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import weighted
from lmms_eval_captions.metrics.intervals import interval
from lmms_eval_captions.metrics.parts import RatioParts, influences_of_videos, values_of_runs

CI_LOW: Final = "ci_low"
CI_HIGH: Final = "ci_high"
CI_NOTE: Final = "ci_note"
_JUDGE_SHARE: Final = "judge_share"
_DEVIATION: Final = "std"

Figure = float | int | str | None
Runs = Sequence[Sequence[Sequence[Any]]]
"""Values that a metric reads, shape (n_runs, n_captions, n_values); empty for a caption that is
missing in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric of a task or a group with its interval."""

    value: float | None = None
    """Mean over judge runs; ``None`` if it has no value."""
    standard_error: float | None = None
    """Over videos, in the metric's unit."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95% interval in the metric's unit; ``None`` if there is none."""
    note: str = ""
    """Why there is no interval, or a warning; else empty."""
    deviation: float | None = None
    """Standard deviation over judge runs; ``None`` with one run."""
    judge_share: float | None = None
    """Share of the interval's variance that is due to the judge; ``None`` with one run."""

    @classmethod
    def none(cls, why: str) -> Measured:
        """Return a metric without an interval."""
        return cls(note=f"no interval: {why}")

    @classmethod
    def read(cls, figures: Mapping[str, object]) -> Measured:
        """Read a metric of a judging document."""
        numbers = {
            name: float(figure) if isinstance(figure, int | float) and isfinite(figure) else None
            for name, figure in figures.items()
        }
        return cls(
            value=numbers.get("value"),
            standard_error=numbers.get("standard_error"),
            low=numbers.get(CI_LOW),
            high=numbers.get(CI_HIGH),
            note=str(figures.get(CI_NOTE) or ""),
            deviation=numbers.get(_DEVIATION),
            judge_share=numbers.get(_JUDGE_SHARE),
        )

    def beside(self, metric: str = "", *, has_runs: bool) -> dict[str, Figure]:
        """Return the figures that files hold next to the value and the standard error."""
        figures = {
            **({_DEVIATION: self.deviation} if has_runs else {}),
            CI_LOW: self.low,
            CI_HIGH: self.high,
            **({_JUDGE_SHARE: self.judge_share} if has_runs else {}),
            **({CI_NOTE: self.note} if self.note else {}),
        }
        return {f"{metric}_{name}" if metric else name: value for name, value in figures.items()}

    def __str__(self) -> str:
        """The value, with its 95% interval if it has one: ``54.17 [50.00, 58.50]``."""
        if self.value is None:
            return "nan"
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def judge_part(self) -> str:
        """Spread over judge runs, for a table, such as ``0.31 (12%)``; empty with one run."""
        if self.deviation is None:
            return ""
        share = "" if self.judge_share is None else f" ({self.judge_share:.0%})"
        return f"{self.deviation:.2f}{share}"

    @property
    def judge_words(self) -> str:
        """Spread over judge runs, in words; empty with one run."""
        words = [] if self.deviation is None else [f"standard deviation {self.deviation:.2f}"]
        if self.judge_share is not None:
            words.append(f"{self.judge_share:.0%} of the interval's variance is the judge's")
        return "; ".join(words)


def by_run(metric: str, records: Sequence[CaptionRecord]) -> Runs:
    """Return the values that a metric reads of all captions in each judge run."""
    return list(zip_longest(*(record.values[metric] for record in records), fillvalue=()))


def scores_of(metric: Metric, runs: Runs, records: Sequence[CaptionRecord]) -> list[float]:
    """Return a metric in each judge run.

    A metric that reads fields gets the values of all records, others those that are not empty.
    """
    return [
        metric.score(captions if metric.reads_fields else list(filter(None, captions)), records)
        for captions in runs
    ]


def measured_over(
    benchmark: Benchmark[Any, Any], name: str, sets: Sequence[Sequence[CaptionRecord]]
) -> Measured:
    """Return the plain mean of a metric over tasks, such as that of ``vdc_score``.

    Captions of one video are one cluster. ``sets`` are the captions of each task, none empty.
    """
    benchmark, sets = weighted(benchmark, sets)
    metric = benchmark.metrics[name]
    videos = dict.fromkeys(record.video_id for records in sets for record in records)
    found = [parts_by_video(metric, by_run(name, of), of, list(videos)) for of in sets]
    terms = [term for term in found if term is not None]
    return measured([(metric, mean_of_terms(terms) if len(terms) == len(sets) else None)])[0]


def mean_of_terms(terms: Sequence[RatioParts]) -> RatioParts:
    """Return the parts of the mean over terms; those of fewer judge runs count repeatedly."""
    n_runs = lcm(*map(len, terms))
    return np.concatenate([np.repeat(term, n_runs // len(term), axis=0) for term in terms], axis=2)


def parts_by_video(
    metric: Metric,
    runs: Runs,
    records: Sequence[CaptionRecord],
    videos: Sequence[str] | None = None,
) -> RatioParts | None:
    """Return what each of the videos (default: the captions') adds to a metric, if it has parts."""
    of_captions = _parts_by_caption(metric, runs, records)
    if of_captions is None:
        return None
    ids = [record.video_id for record in records]
    index_of = {video: index for index, video in enumerate(dict.fromkeys(videos or ids))}
    of_videos = np.zeros((len(index_of), len(of_captions), *of_captions.shape[2:]))
    np.add.at(of_videos, [index_of[video] for video in ids], of_captions.swapaxes(0, 1))
    return np.asarray(of_videos.swapaxes(0, 1))


def _parts_by_caption(
    metric: Metric, runs: Runs, records: Sequence[CaptionRecord]
) -> RatioParts | None:
    if metric.ratios is None or metric.unavailable(records) is not None:
        return None
    # One run without values for captions that were never judged.
    parts = [metric.ratios(captions, records) for captions in runs or [[()] * len(records)]]
    return np.asarray(parts, np.float64)[:, :, None]


def measured(metrics: Sequence[tuple[Metric, RatioParts | None]]) -> list[Measured]:
    """Return metrics with their intervals, from what each video adds."""
    # Metrics over equally many videos share the draws of the bootstrap, the last of which are kept.
    n_videos = [0 if p is None else int(p.any(axis=(0, 2, 3, 4)).sum()) for _, p in metrics]
    order = sorted(range(len(metrics)), key=n_videos.__getitem__)
    by_index = {index: _measured(*metrics[index]) for index in order}
    return [figure for _, figure in sorted(by_index.items())]


def _measured(metric: Metric, parts: RatioParts | None) -> Measured:
    if metric.ratios is None:
        return Measured.none("what its captions add to the metric is not known (Metric.ratios)")
    if parts is None:
        return Measured.none("the metric has no value here")
    ends = interval(parts, scale=metric.scale, bounds=metric.bounds)
    runs = values_of_runs(parts, scale=metric.scale)
    valued = runs[np.isfinite(runs)]
    return Measured(
        value=ends.value if isfinite(ends.value) else None,
        standard_error=ends.standard_error,
        low=ends.low,
        high=ends.high,
        note=ends.note,
        deviation=float(valued.std()) if len(runs) > 1 and len(valued) else None,
        judge_share=ends.judge_share,
    )


def contributions(
    benchmark: Benchmark[Any, Any], name: str, records: Sequence[CaptionRecord]
) -> list[float | None] | None:
    """Return the contribution of each caption to a metric, mean over judge runs.

    Contributions are in the metric's unit, and linearised for a ratio of sums. Their mean is the
    metric, and their standard deviation over the root of their number is its standard error. A
    caption that does not count has ``None``; so have all if the metric has no value.
    """
    benchmark, (records,) = weighted(benchmark, [records])
    metric, runs = benchmark.metrics[name], by_run(name, records)
    parts = _parts_by_caption(metric, runs, records)
    scores = [] if parts is None else scores_of(metric, runs, records)
    if parts is None or not scores or any(map(isnan, scores)):
        return None
    influences = influences_of_videos(parts, scale=metric.scale)
    if np.isnan(influences).any():
        return None
    # A caption that nothing is asked about may count by its length.
    counts = [
        bool(of_caption.any())
        or any(value is not None for values in record.values[name] for value in values)
        for of_caption, record in zip(parts.swapaxes(0, 1), records, strict=True)
    ]
    score, n = fmean(scores), sum(counts)
    return [
        score + n * fmean(of_runs) if is_counted else None
        for is_counted, of_runs in zip(counts, influences.T.tolist(), strict=True)
    ]
