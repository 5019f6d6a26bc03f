"""A metric of each captioner, and how each differs from the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Any, Final, Literal

from lmms_eval_captions.analysis.verdicts.parts import Group, parts_of
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Metric
from lmms_eval_captions.metrics.intervals import Interval, interval
from lmms_eval_captions.metrics.paired import Difference, holm, paired_interval

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.parts import RatioParts

Outcome = Literal["better", "worse", "tied", "unknown"]

ALPHA: Final = 0.05
"""Adjusted p-values below it are differences; all intervals are of 95 %."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A captioner less the first, on the same videos."""

    difference: Difference
    p_value: float | None
    """Adjusted for all comparisons that are shown together, see :func:`adjusted`."""
    outcome: Outcome
    """Whether the captioner is better than the first; ``tied`` where that cannot be told, and
    ``unknown`` where there is no interval."""


@dataclass(frozen=True, slots=True)
class Row:
    """A metric over all questions, or over a group of them."""

    metric: str
    group: Group | None
    """Section and group; ``None`` for all questions."""
    values: Sequence[Interval]
    """One for each captioner."""
    contrasts: Sequence[Contrast]
    """One for each captioner but the first."""


def row_of(several: Sequence[Verdicts], metric: str, group: Group | None = None) -> Row | None:
    """A metric of each captioner, not yet adjusted for other comparisons.

    Args:
        several: Verdicts on the same captions and questions, the first captioner's first.
        metric: One of the benchmark's.
        group: Questions of this group alone.

    Returns:
        ``None`` where it cannot be computed for one of them, or of no video.
    """
    known = several[0].benchmark.metrics[metric]
    of_all = [parts_of(verdicts, metric, group) for verdicts in several]
    parts = [of_one.parts for of_one in of_all if of_one is not None]
    if len(parts) < len(of_all) or not all(array.any() for array in parts):
        return None
    values = [interval(array, scale=known.scale, bounds=known.bounds) for array in parts]
    found = [difference_of(array, parts[0], known) for array in parts[1:]]
    contrasts = [
        Contrast(difference, difference.p_value, _outcome(difference, difference.p_value, known))
        for difference in found
    ]
    return Row(metric, group, values, contrasts)


def difference_of(a: RatioParts, b: RatioParts, metric: Metric) -> Difference:
    """A metric of one captioner less that of another; its interval holds only what there can be."""
    found = paired_interval(a, b, scale=metric.scale)
    if found.low is None or found.high is None:
        return found
    span = metric.span
    return replace(found, low=max(found.low, -span), high=min(found.high, span))


def adjusted(benchmark: Benchmark[Any, Any], rows: Iterable[Row]) -> list[Row]:
    """Rows with p-values by Holm's correction: all comparisons of a metric are one family.

    Args:
        benchmark: The rows' own.
        rows: Those that are shown together, the rows of a metric one after another.
    """
    corrected: list[Row] = []
    for metric, of_metric in groupby(rows, key=lambda row: row.metric):
        family = list(of_metric)
        p_values = iter(holm([c.difference.p_value for row in family for c in row.contrasts]))
        known = benchmark.metrics[metric]
        for row in family:
            contrasts = [
                replace(c, p_value=p, outcome=_outcome(c.difference, p, known))
                for c, p in ((c, next(p_values)) for c in row.contrasts)
            ]
            corrected.append(replace(row, contrasts=contrasts))
    return corrected


def rows_of(
    several: Sequence[Verdicts], groups: Sequence[Group | None], *, metrics: Sequence[str]
) -> list[Row]:
    """The rows of some metrics in some groups, adjusted for one another."""
    return _rows(several[0].benchmark, metrics, groups, lambda m, g: row_of(several, m, g))


def rows_of_tasks(
    several: Sequence[Verdicts],
    *,
    metrics: Sequence[str],
    groups: Mapping[Group, str] | None = None,
) -> list[Row]:
    """The rows of each task of a group, adjusted for one another.

    Args:
        several: Verdicts on the same captions and questions, the first captioner's first.
        metrics: Those of the benchmark that are shown.
        groups: What the tasks are called as groups of questions, by default by their names.
    """
    tasks = {
        task.task: [Verdicts(task.task, (verdicts.tasks[place],), False) for verdicts in several]
        for place, task in enumerate(several[0].tasks)
    }
    of_groups = groups or {("tasks", task): task for task in tasks}

    def of_task(metric: str, group: Group | None) -> Row | None:
        row = None if group is None else row_of(tasks[of_groups[group]], metric)
        return None if row is None else replace(row, group=group)

    return _rows(several[0].benchmark, metrics, list(of_groups), of_task)


def _rows(
    benchmark: Benchmark[Any, Any],
    metrics: Sequence[str],
    groups: Sequence[Group | None],
    row: Callable[[str, Group | None], Row | None],
) -> list[Row]:
    found = (row(metric, group) for metric in metrics for group in groups)
    return adjusted(benchmark, [one for one in found if one is not None])


def _outcome(difference: Difference, p_value: float | None, metric: Metric) -> Outcome:
    if p_value is None or isnan(difference.difference):
        return "unknown"
    if p_value >= ALPHA:
        return "tied"
    return "better" if (difference.difference > 0) == metric.higher_is_better else "worse"
