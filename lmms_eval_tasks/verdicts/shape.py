"""Whether what a file says of a caption is what this version writes: users may edit files."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

_NUMBERS: Final = frozenset({int, float, bool})
_NAMES: Final = frozenset({str, type(None)})


def check_shapes(benchmark: Benchmark[Any, Any], captions: Sequence[CaptionRecord]) -> None:
    """Check values, groups and questions of a task's captions that were read from a file.

    Args:
        benchmark: The captions' own.
        captions: With the values of every metric.

    Raises:
        TypeError: If they are not of their types, or do not belong together; the text says which.
    """
    for caption in captions:
        _check(benchmark, caption)
    for name, metric in benchmark.metrics.items():
        if not metric.labels and len(_kinds(captions, name)) > 1:
            raise TypeError(f"expected words, numbers or rows of as many counts for {name}")


def _kinds(captions: Sequence[CaptionRecord], metric: str) -> set[object]:
    """What values are: words, numbers, or rows of how many counts."""
    values = (v for caption in captions for run in caption.values[metric] for v in run)
    return {
        len(value)
        if isinstance(value, list)
        else ("words" if isinstance(value, str) else "numbers")
        for value in values
        if value is not None
    }


def _check(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> None:
    n_questions = [
        _check_runs(record, name, benchmark.metrics[name])
        for name in benchmark.metrics
        if benchmark.source_of_values(name) == name
    ]
    if any(numbers != n_questions[0] for numbers in n_questions):
        raise TypeError(_of(record, "expected as many verdicts for every metric"))
    if not isinstance(record.groups, dict):
        raise TypeError(_of(record, f"expected groups, got {record.groups!r:.40}"))
    for section, runs in record.groups.items():
        are_lists = isinstance(runs, list) and all(isinstance(names, list) for names in runs)
        if not are_lists or [len(names) for names in runs] != n_questions[0]:
            raise TypeError(_of(record, f"expected a group of {section!r:.40} for every verdict"))
        if not all(_NAMES.issuperset(map(type, names)) for names in runs):
            raise TypeError(_of(record, f"expected names of groups of {section!r:.40}"))
    if not isinstance(record.asked, list | tuple) or {*map(type, record.asked)} - {str}:
        raise TypeError(_of(record, "expected the questions that were asked"))
    if not isinstance(record.n_words, int | None) or not isinstance(record.caption_digest, str):
        raise TypeError(_of(record, "expected n_words and caption_digest"))


def _check_runs(record: CaptionRecord, name: str, metric: Metric) -> list[int]:
    """Check what a metric reads; how many questions it is of in each judge run.

    Raises:
        TypeError: If that is not the metric's.
    """
    runs = record.values[name]
    if not isinstance(runs, list) or not all(isinstance(run, list) for run in runs):
        raise TypeError(_of(record, f"expected the verdicts of each judge run for {name}"))
    for run in runs:
        known = _are_labels(run, metric.labels) if metric.labels else _are_plain(run)
        if not known or len(run) % metric.n_values:
            raise TypeError(_of(record, f"expected verdicts for {name}, got {run!r:.60}"))
    return [len(run) // metric.n_values for run in runs]


def _are_labels(values: Sequence[object], labels: Sequence[str]) -> bool:
    """Whether all are labels or unscored; what cannot be hashed is neither."""
    return all(isinstance(value, str | None) for value in values) and {*labels, None} >= {*values}


def _are_plain(values: Sequence[object]) -> bool:
    """Whether all are numbers, rows of counts, or words of a benchmark without labels."""
    types = {*map(type, values)}
    if types <= {list, type(None)}:
        return all(_are_finite(row) for row in values if isinstance(row, list))
    if types <= {str, type(None)}:
        return True
    return _are_finite([value for value in values if value is not None])


def _are_finite(values: Sequence[object]) -> bool:
    return all(type(value) in _NUMBERS and isfinite(value) for value in values)  # type: ignore[arg-type] # a number


def _of(record: CaptionRecord, words: str) -> str:
    return f"{record.video_id!r:.80}: {words}"
