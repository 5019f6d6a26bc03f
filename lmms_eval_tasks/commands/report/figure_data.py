"""What figures are drawn of: the numbers of the page, metric by metric."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_text import shown
from lmms_eval_captions.lmms_eval_tasks.commands.report.lengths import LENGTHS
from lmms_eval_captions.lmms_eval_tasks.commands.report.pairs import Paired
from lmms_eval_captions.lmms_eval_tasks.commands.report.rows import value_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section
from lmms_eval_captions.lmms_eval_tasks.commands.report.sources import View
from lmms_eval_captions.lmms_eval_tasks.measured import Measured


@dataclass(frozen=True, slots=True)
class Scale:
    """A metric as an axis."""

    metric: str
    highest: float
    higher_is_better: bool

    @property
    def label(self) -> str:
        """Its name, and which way is better where that is unusual."""
        way = "" if self.higher_is_better else " (lower is better)"
        return shown(self.metric, 110) + way


def values_of(section: Section, metric: str) -> list[list[Measured | None]]:
    """For each captioner the metric in each group; ``None`` where it has no value."""
    return [
        [
            found
            if (found := groups.get(group, {}).get(metric)) is not None and found.value is not None
            else None
            for group in section.groups
        ]
        for groups in section.figures
    ]


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A row of a forest plot."""

    group: str
    difference: float
    low: float | None
    high: float | None
    outcome: str


def dots_of(view: View, what: str, metric: str) -> list[list[tuple[float, float]]]:
    """For each captioner the length of each caption, and its own score.

    Args:
        view: A task or group.
        what: Of :data:`LENGTHS`.
        metric: Of the benchmark.
    """
    return [
        [
            (float(length), value)
            for task in (() if verdicts is None else verdicts.tasks)
            for caption in task.captions
            if (length := LENGTHS[what](caption)) is not None
            and (value := value_of(view.benchmark, metric, caption)) is not None
        ]
        for verdicts in view.verdicts
    ]


def rows_of_pair(paired: Paired, metric: str) -> list[ShownDifference]:
    """The rows of a forest plot.

    Args:
        paired: Two captioners.
        metric: Of the benchmark.
    """
    return [
        ShownDifference(
            group="all questions" if row.group is None else row.group[1],
            difference=contrast.difference.difference,
            low=contrast.difference.low,
            high=contrast.difference.high,
            outcome=contrast.outcome,
        )
        for row, contrast in paired.rows
        if row.metric == metric and isfinite(contrast.difference.difference)
    ]
