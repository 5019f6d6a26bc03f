"""A metric over groups of questions: the numbers of the breakdown files, as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.report.tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    plural,
)
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.breakdown_table import N_QUESTIONS
from lmms_eval_captions.lmms_eval_tasks.measured import BESIDE, Measured
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults

TASKS: Final = "tasks"
"""Section in which each task of a group is one group of questions."""
MOST_GROUPS: Final = 40
"""Groups of a section that are shown, the first ones of the breakdown file."""
_FEWEST: Final = 3
"""Groups that a radar has at least."""
_MOST: Final = 30

Figures = Mapping[str, Measured]
"""Metric to its number."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the breakdown."""

    name: str
    groups: Sequence[str]
    figures: Sequence[Mapping[str, Figures]]
    """For each captioner, group to the metrics that have a value there."""
    n_questions: Sequence[Mapping[str, int]]
    """For each captioner, group to the questions of it."""
    n_left_out: int
    """Groups that are not shown."""

    @property
    def is_radar(self) -> bool:
        """Whether a radar shows it well."""
        return _FEWEST <= len(self.groups) <= _MOST


def overall_of(view: View) -> list[Figures]:
    """The metrics of each captioner over all questions."""
    return [{} if run is None else measured_of(view, run, view.name) for run in view.runs]


def measured_of(view: View, run: RunResults, name: str) -> Figures:
    """The metrics of a task or group: the breakdown's, else the results'.

    Args:
        view: Of the same benchmark.
        run: The run.
        name: One of its tasks and groups.
    """
    known = run.tasks[name].measured
    own = {metric: known[metric] for metric in view.benchmark.metrics if metric in known}
    figures = _breakdown(run, name, []).get(ALL[0], {}).get(ALL[1])
    return {**own, **dict(_measured(figures))} if figures else own


def sections_of(view: View, missing: list[str]) -> list[Section]:
    """The sections of a task's or a group's breakdown; of a group also its tasks.

    Args:
        view: The task or group.
        missing: What cannot be read is said here.
    """
    breakdowns = [{} if run is None else _breakdown(run, view.name, missing) for run in view.runs]
    sections = [_tasks(view)] if len(view.tasks) > 1 else []
    names = dict.fromkeys(name for one in breakdowns for name in one if name != ALL[0])
    for name in names:
        section = _section(name, [one.get(name, {}) for one in breakdowns])
        # One group of all questions says what the whole says.
        if len(section.groups) > 1:
            sections.append(section)
    return sections


def tables_of(view: View, sections: Sequence[Section], names: Sequence[str]) -> list[Table]:
    """The same numbers as tables, a row for each group and captioner."""
    metrics = list(view.benchmark.metrics)
    overall = Section(ALL[0], [ALL[1]], [{ALL[1]: figures} for figures in overall_of(view)], [], 0)
    has_score = any(overall.figures[place][ALL[1]] for place in range(len(names)))
    shown = (overall, *sections) if has_score else sections
    return [_table(section, metrics, names) for section in shown]


def figure(measured: Measured | None) -> list[float | None] | None:
    """Value and ends of the interval, as the page's script reads them."""
    if measured is None or measured.value is None:
        return None
    return [measured.value, measured.low, measured.high]


def _table(section: Section, metrics: Sequence[str], names: Sequence[str]) -> Table:
    several = len(names) > 1
    shown = [
        metric
        for metric in metrics
        if any(metric in figures for of_groups in section.figures for figures in of_groups.values())
    ]
    has_questions = any(section.n_questions)
    columns = [
        Column(section.name),
        *([Column("captioner")] if several else []),
        *(Column(f"{metric} [95%]", is_number=True) for metric in shown),
        *([Column("questions", is_number=True)] if has_questions else []),
    ]
    rows = []
    for group in section.groups:
        for place, name in enumerate(names):
            figures = section.figures[place].get(group)
            if figures is None:
                continue
            row = [Cell(group), *([Cell(name)] if several else [])]
            row += [Cell(_text(figures.get(metric))) for metric in shown]
            if has_questions:
                n = section.n_questions[place].get(group)
                row.append(Cell(NOTHING if n is None else f"{n:,}"))
            rows.append(row)
    left_out = [f"{plural(section.n_left_out, 'more group')} in the breakdown file."]
    return Table(section.name, columns, rows, left_out if section.n_left_out else [])


def _text(measured: Measured | None) -> str:
    return NOTHING if measured is None else str(measured)


def _tasks(view: View) -> Section:
    """Each task of a group, by its own results."""
    figures: list[dict[str, Figures]] = []
    for run in view.runs:
        there = [task for task in view.tasks if run is not None and task in run.tasks]
        figures.append({task: measured_of(view, run, task) for task in there if run is not None})
    return Section(TASKS, view.tasks, figures, [], 0)


def _breakdown(run: RunResults, name: str, missing: list[str]) -> Mapping[str, Any]:
    """The sections of a breakdown file, none where there is none."""
    try:
        document = run.breakdown(name) or {}
    except DataError as error:
        missing.append(str(error))
        return {}
    return {
        section: groups
        for section, groups in document.items()
        if isinstance(groups, dict) and groups and all(map(_is_figures, groups.values()))
    }


def _is_figures(value: object) -> bool:
    return isinstance(value, dict) and N_QUESTIONS in value


def _section(name: str, of_captioners: Sequence[Mapping[str, Any]]) -> Section:
    all_groups = dict.fromkeys(group for groups in of_captioners for group in groups)
    groups = list(all_groups)[:MOST_GROUPS]
    figures = [
        {group: dict(_measured(of[group])) for group in groups if group in of}
        for of in of_captioners
    ]
    n_questions = [
        {group: int(of[group][N_QUESTIONS]) for group in groups if group in of}
        for of in of_captioners
    ]
    return Section(name, groups, figures, n_questions, len(all_groups) - len(groups))


def _measured(figures: Mapping[str, Any]) -> Iterator[tuple[str, Measured]]:
    """The metrics of a group of a breakdown file."""
    for name, value in figures.items():
        if not name.endswith(BESIDE) and isinstance(value, int | float) and isfinite(value):
            yield name, Measured.read({"value": value, **_beside(name, figures)})


def _beside(metric: str, figures: Mapping[str, Any]) -> dict[str, object]:
    """What stands beside a metric in a flat table, by the names of a judging document."""
    return {
        end.removeprefix("_"): figures[f"{metric}{end}"]
        for end in BESIDE
        if f"{metric}{end}" in figures
    }
