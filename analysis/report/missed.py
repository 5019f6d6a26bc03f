"""What captions miss most, and what they say wrongly, by group of questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from lmms_eval_captions.analysis.report.rows import Kind, kinds_of
from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.report.tables import (
    NOTHING,
    Cell,
    Column,
    Table,
    share,
)
from lmms_eval_captions.analysis.verdicts.verdicts import Verdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

_MOST: Final = 20
"""Groups of a section that are shown, those that are missed most often."""
Counts = dict[str, Counter[Kind]]
"""Group to how often its questions had which kind of verdict, all judge runs together."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """A table by what it ranks groups."""

    kind: Kind
    title: str
    note: str


def missed_tables(view: View, names: Sequence[str]) -> list[Table]:
    """For each section, groups by how often the caption does not hold, or contradicts, the answer.

    Args:
        view: A task or group.
        names: The captioners'.

    Returns:
        None where the judge gives numbers and no verdicts.
    """
    benchmark = view.benchmark
    kinds = kinds_of(benchmark)
    tables = []
    for section in _sections(view):
        counts = [{} if of is None else _counts(benchmark, of, section) for of in view.verdicts]
        tables += [
            _table(section, ranking, counts, names)
            for ranking in _rankings(benchmark)
            if ranking.kind in kinds.values()
        ]
    return [table for table in tables if table.rows]


def _rankings(benchmark: Benchmark[Any, Any]) -> list[_Ranking]:
    missed = (
        "Questions whose answer the caption does not hold."
        if benchmark.wrong
        else "Questions that the caption does not answer rightly: this judge does not tell what "
        "is not there from what is wrong."
    )
    return [
        _Ranking("missed", "Not covered", missed),
        _Ranking("wrong", "Wrong (hallucinations)", "Questions that the caption answers wrongly."),
    ]


def _sections(view: View) -> list[str]:
    """The sections with more than one group, in the benchmark's order."""
    groups: dict[str, set[str]] = {section: set() for section in view.benchmark.sections}
    for verdicts in view.verdicts:
        for task in verdicts.tasks if verdicts is not None else ():
            for caption in task.captions:
                for section, runs in caption.groups.items():
                    names = {name for run in runs for name in run if name is not None}
                    groups.setdefault(section, set()).update(names)
    return [section for section, names in groups.items() if len(names) > 1]


def _counts(benchmark: Benchmark[Any, Any], verdicts: Verdicts, section: str) -> Counts:
    kinds = kinds_of(benchmark)
    n_values = benchmark.metrics[benchmark.headline].n_values
    counts: Counts = {}
    for task in verdicts.tasks:
        for caption in task.captions:
            runs = caption.values.get(benchmark.headline, ())
            for values, groups in zip(runs, caption.groups.get(section, ()), strict=False):
                for value, group in zip(values[::n_values], groups, strict=False):
                    if group is not None and isinstance(value, str):
                        counts.setdefault(group, Counter())[kinds[value]] += 1
    return counts


def _table(
    section: str, ranking: _Ranking, counts: Sequence[Counts], names: Sequence[str]
) -> Table:
    groups = dict.fromkeys(group for of in counts for group in of)
    total = {group: sum((of.get(group, Counter()) for of in counts), Counter()) for group in groups}
    n_of = {group: counter[ranking.kind] for group, counter in total.items()}
    worst = sorted((group for group in groups if n_of[group]), key=lambda group: -n_of[group])
    columns = [
        Column(section),
        *(Column(f"{name}: of its verdicts", is_number=True) for name in names),
    ]
    rows = []
    for group in worst[:_MOST]:
        row = [Cell(group)]
        for captioner, of in enumerate(counts):
            found = of.get(group, Counter())
            n = found[ranking.kind]
            text = share(n, found.total()) if found else NOTHING
            meant = json.dumps([section, group, ranking.kind, captioner]) if n else ""
            row.append(Cell(text, questions=meant))
        rows.append(row)
    n_more = len(worst) - len(rows)
    notes = [ranking.note, *([f"{n_more:,} more groups have any."] if n_more else [])]
    return Table(f"{ranking.title}, by {section}", columns, rows, notes)
