"""The tables of the papers with one's own captioners in them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.analysis.verdicts.likeness import differences_of
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable
from lmms_eval_captions.lmms_eval_tasks.signature import QUESTIONS
from lmms_eval_captions.lmms_eval_tasks.table_formats import Part, Table
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a table."""

    captioner: str
    block: str
    heading: str
    """Of its column or columns."""
    name: str
    """The task or group that it is of."""
    metric: str
    label: str
    """What the paper calls the metric."""
    value: float
    """``nan`` where the captioner has none."""
    deviation: float | None
    """Over judge runs, where the paper prints it and there are several."""
    higher_is_better: bool


@dataclass(frozen=True, slots=True)
class Filled:
    """A paper's table with the numbers of some captioners."""

    table: PaperTable
    name: str
    """The task or group that it is of."""
    columns: Sequence[Column]
    """Those that are shown."""
    rows: Sequence[tuple[str, str, Sequence[Sequence[Number]]]]
    """Block and captioner of each row, and the numbers of each column."""


def fill_tables(captioners: Sequence[Captioner], names: Sequence[str] = ()) -> list[Filled]:
    """The table of each benchmark that a captioner has results of.

    Numbers are those that the runs printed, over all that each was asked.

    Args:
        captioners: One row for each.
        names: Tasks and groups that are asked for; empty for one table for each benchmark.

    Raises:
        SettingsError: If a name that is asked for has no table.
        DataError: If there is none.
    """
    there = dict.fromkeys(name for captioner in captioners for name in captioner.runs)
    filled: list[Filled] = []
    known: dict[str, Benchmark[Any, Any]] = {}
    for benchmark in all_benchmarks().values():
        table = benchmark.paper_table
        if table is None:
            continue
        known.update(dict.fromkeys(table.names, benchmark))
        of_table = [name for name in table.names if name in (names or there)]
        filled += [
            _fill(benchmark, table, name, captioners)
            for name in (of_table if names else of_table[:1])
        ]
    unknown = [name for name in names if name not in known or name not in there]
    if unknown:
        raise SettingsError(
            "--tasks: expected tasks or groups with a table in a paper, any of "
            f"{', '.join(name for name in there if name in known) or 'none'}, got {unknown[0]!r}"
        )
    if not filled:
        raise DataError(f"no paper has a table of any of {', '.join(there)}")
    return filled


def part_of(filled: Filled, captioners: Sequence[Captioner]) -> Part:
    """The table as it is printed, with each row's signature."""
    signatures = {
        captioner.name: captioner.runs[filled.name].tasks[filled.name].signature
        for captioner in captioners
        if filled.name in captioner.runs
    }
    known = [signature for signature in signatures.values() if signature is not None]
    other = [
        *differences_of(known),
        *(["questions"] if len({one.fields.get(QUESTIONS) for one in known}) > 1 else []),
    ]
    warning = f"WARNING: rows differ in {', '.join(other)}: do not set them side by side."
    return Part(
        f"{filled.table.source}: {filled.name}",
        [warning] if other else [],
        list(_tables(filled)),
        [
            *([f"{filled.table.note}."] if filled.table.note else []),
            *(f"{name}: {signature}" for name, signature in signatures.items() if signature),
        ],
    )


def as_csv(filled: Sequence[Filled]) -> str:
    """A line for each number."""
    text = io.StringIO()
    columns = ["table", "captioner", "task", "heading", "metric", "label", "value", "deviation"]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_documents(filled))
    return text.getvalue()


def as_json(filled: Sequence[Filled]) -> str:
    """A list of the numbers."""
    return json.dumps(list(_documents(filled)), indent=1, ensure_ascii=False) + "\n"


def _documents(filled: Sequence[Filled]) -> Iterator[dict[str, object]]:
    for one in filled:
        for _, _, cells in one.rows:
            for number in (number for cell in cells for number in cell):
                yield {
                    "table": one.table.source, "captioner": number.captioner, "task": number.name,
                    "heading": number.heading, "metric": number.metric, "label": number.label,
                    "value": None if isnan(number.value) else number.value,
                    "deviation": number.deviation,
                }  # fmt: skip


def _fill(
    benchmark: Benchmark[Any, Any],
    table: PaperTable,
    name: str,
    captioners: Sequence[Captioner],
) -> Filled:
    columns = [
        column
        for column in table.columns
        if _is_of(column, name, table)
        and not (
            column.is_optional
            and not any((column.name or name) in captioner.runs for captioner in captioners)
        )
    ]
    rows = [
        (label, captioner.name, [_numbers(benchmark, name, column, captioner, metric, label)
                                 for column in columns])
        for metric, label in (table.blocks or [("", "")])
        for captioner in captioners
        if name in captioner.runs or any(column.name in captioner.runs for column in columns)
    ]  # fmt: skip
    return Filled(table, name, columns, rows)


def _is_of(column: Column, name: str, table: PaperTable) -> bool:
    """Whether a column is shown: of one task of a group, that task's alone."""
    return (
        not column.name
        or column.name == name
        or name == table.names[0]
        or (column.name not in table.names)
    )


def _numbers(
    benchmark: Benchmark[Any, Any],
    name: str,
    column: Column,
    captioner: Captioner,
    metric: str,
    block: str,
) -> list[Number]:
    metrics = column.metrics or [(metric, block)]
    numbers = []
    for place, (of_column, label) in enumerate(metrics):
        of_task = column.name or name
        value, deviation = _found(captioner, of_task, column.group or ALL, of_column)
        numbers.append(
            Number(
                captioner.name, block, column.heading, of_task, of_column, label, value,
                deviation if column.has_deviation and place == 0 else None,
                of_column not in benchmark.metrics or benchmark.metrics[of_column].higher_is_better,
            )
        )  # fmt: skip
    return numbers


def _found(
    captioner: Captioner, name: str, group: tuple[str, str], metric: str
) -> tuple[float, float | None]:
    """A number of the run's results, and its deviation over judge runs."""
    run = captioner.runs.get(name)
    if run is None:
        return nan, None
    value = run.tasks[name].scores.get(metric, nan)
    figures: object = run.breakdown(name)
    for key in group:
        figures = figures.get(key) if isinstance(figures, dict) else None
    known = figures if isinstance(figures, dict) else {}
    of_group, deviation = (
        float(figure) if isinstance(figure := known.get(key), int | float) else None
        for key in (metric, f"{metric}_std")
    )
    if group != ALL:
        value = nan if of_group is None else of_group
    return value, deviation


def _tables(filled: Filled) -> Iterator[Table]:
    """The table, in as many pieces as the paper's where it has all of its columns."""
    pieces = filled.table.pieces
    if sum(pieces) != len(filled.columns):
        pieces = [len(filled.columns)]
    start = 0
    for n_columns in pieces:
        yield _table(filled, start, start + n_columns)
        start += n_columns


def _table(filled: Filled, start: int, end: int) -> Table:
    """The table with some of its columns."""
    decimals, columns = filled.table.decimals, filled.columns[start:end]
    names = ["", "Model"] if filled.table.blocks else ["Model"]
    header, above = list(names), [("", len(names))]
    for column in columns:
        labels = [label for _, label in column.metrics] or [column.heading]
        header += [" / ".join(labels)] if column.is_joined else labels
        over = column.heading if column.metrics else column.above
        n_cells = 1 if column.is_joined else len(labels)
        if above[-1][0] == over and over:
            over, n_before = above.pop()
            n_cells += n_before
        above.append((over, n_cells))
    rows, numbers = [], []
    for block, captioner, cells in filled.rows:
        row = [block, captioner] if filled.table.blocks else [captioner]
        of_row: list[Number | None] = [None] * len(row)
        for column, cell in zip(columns, cells[start:end], strict=True):
            shown = [_shown(number, decimals) for number in cell]
            row += [" / ".join(shown)] if column.is_joined else shown
            of_row += [None] if column.is_joined else cell
        rows.append(row)
        numbers.append(of_row)
    return Table(
        header, rows, n_left=len(names), above=above if any(name for name, _ in above) else (),
        best=frozenset(_best(numbers, decimals)),
    )  # fmt: skip


def _shown(number: Number, decimals: int) -> str:
    if isnan(number.value):
        return "-"
    behind = "" if number.deviation is None else f" (±{number.deviation:.{decimals}f})"
    return f"{number.value:.{decimals}f}{behind}"


def _best(rows: Sequence[Sequence[Number | None]], decimals: int) -> Iterator[tuple[int, int]]:
    """The best of each column in each block, all that are printed alike, where there are two."""
    for column in range(len(rows[0]) if rows else 0):
        blocks: dict[str, list[tuple[int, float]]] = {}
        for r, row in enumerate(rows):
            number = row[column]
            if number is not None and not isnan(number.value):
                sign = 1 if number.higher_is_better else -1
                value = sign * round(number.value, decimals)
                blocks.setdefault(number.block, []).append((r, value))
        for of_block in blocks.values():
            best = max(value for _, value in of_block)
            if len(of_block) > 1:
                yield from ((r, column) for r, value in of_block if value == best)
