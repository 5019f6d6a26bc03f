"""Questions on which two captioners' verdicts differ, both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

_SAME: Final = 1e-9
"""Two grades that differ by less are one."""


@dataclass(frozen=True, slots=True)
class Flips:
    """Questions by their verdicts on two captioners."""

    n_gained: int
    """Right for the other and wrong for the first; where judges give grades, higher."""
    n_lost: int
    """Right for the first and wrong for the other; where judges give grades, lower."""
    n_same: int
    """Right for both or wrong for both; where judges give grades, equal."""
    is_graded: bool
    """Whether judges give grades and no verdict that says right or wrong."""


def flips_of(first: Verdicts, other: Verdicts) -> Flips | None:
    """Compare the verdicts on every question, those of several judge runs together.

    A question is right where more than half of the judge runs that have a verdict say so; a grade
    is the mean over judge runs.

    Args:
        first: Verdicts on the same captions and questions as the other's.
        other: Of the captioner that is compared with the first.

    Returns:
        ``None`` where the judge says what there is to ask, or its verdicts are labels and the
        benchmark does not say which of them are right.
    """
    benchmark = first.benchmark
    if not benchmark.counts_ahead or not (benchmark.right or _has_grades(first)):
        return None
    signs: Counter[int] = Counter()
    for task, of_other in zip(first.tasks, other.tasks, strict=True):
        for a, b in zip(task.captions, of_other.captions, strict=True):
            grades = zip(_grades(benchmark, a), _grades(benchmark, b), strict=True)
            signs.update(
                0 if abs(y - x) < _SAME else 1 if y > x else -1
                for x, y in grades
                if x is not None and y is not None
            )
    return Flips(signs[1], signs[-1], signs[0], is_graded=not benchmark.right)


def _has_grades(verdicts: Verdicts) -> bool:
    """Whether the headline reads numbers."""
    return all(
        value is None or isinstance(value, int | float)
        for task in verdicts.tasks
        for caption in task.captions
        for run in caption.values[verdicts.benchmark.headline]
        for value in run
    )


def _grades(benchmark: Benchmark[Any, Any], caption: CaptionRecord) -> Iterator[float | None]:
    """1 for each question that is right and 0 for others, or its grade; ``None`` is unscored."""
    n_values = benchmark.metrics[benchmark.headline].n_values
    runs = caption.values[benchmark.headline]
    right = benchmark.right
    if right and n_values == 1 and len(runs) == 1:
        return (None if value is None else float(value in right) for value in runs[0])
    return (
        _grade([value for run in runs for value in run[place : place + n_values]], right)
        for place in range(0, len(runs[0]), n_values)
    )


def _grade(values: Sequence[Any], right: frozenset[object]) -> float | None:
    scored = [value for value in values if value is not None]
    if not scored:
        return None
    if right:
        return float(2 * sum(value in right for value in scored) > len(scored))
    return fmean(scored)
