"""The papers' tables with the user's captioners in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean
from typing import Any, Final

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.likeness import differences
from lmms_eval_captions.analysis.tables import NONE, Part, in_latex, listed, table
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.measured import CI_HIGH, CI_LOW
from lmms_eval_captions.lmms_eval_tasks.paper_table import Column, PaperTable
from lmms_eval_captions.lmms_eval_tasks.signature import QUESTIONS, Signature
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

_SLASH: Final = " / "


@dataclass(frozen=True, slots=True)
class Options:
    """What a paper table shows in addition to the scores."""

    intervals: bool = False
    mean: bool = False
    """A column with the mean over the columns."""
    published: bool = False
    """The paper's own rows."""
    force: bool = False
    """Whether scores by the offline stand-in are shown."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a table."""

    captioner: str
    column: Column
    task: str
    metric: str
    label: str
    """The paper's name of the metric."""
    value: float
    """``nan`` if the captioner has none."""
    low: float | None
    high: float | None
    deviation: float | None
    """Over judge runs, if the paper prints it and there are several."""
    sign: int
    """1 if higher is better, else -1."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A paper's table with the numbers of some captioners."""

    benchmark: Benchmark[Any, Any]
    table: PaperTable
    name: str
    columns: Sequence[Column]
    rows: Sequence[tuple[str, str, Sequence[Sequence[Number]]]]
    """Block and captioner of each row, and the numbers of each column."""


def fill_tables(captioners: Sequence[Captioner], names: Sequence[str] = ()) -> list[Filled]:
    """Return the table of each benchmark that a captioner has results of.

    Numbers are those that the runs printed, over all that each was asked.

    Args:
        captioners: One row each.
        names: Tasks and groups that the user names; empty for one table per benchmark.

    Raises:
        SettingsError: If a name has no table.
        DataError: If there is none.
    """
    there = dict.fromkeys(name for captioner in captioners for name in captioner.runs)
    filled: list[Filled] = []
    known: set[str] = set()
    for benchmark in all_benchmarks().values():
        layout = benchmark.paper_table
        if layout is None:
            continue
        known.update(layout.names)
        own = [name for name in layout.names if name in (names or there)]
        chosen = own if names else own[:1]
        filled += [_fill(benchmark, layout, name, captioners) for name in chosen]
    unknown = [name for name in names if name not in known or name not in there]
    if unknown:
        raise SettingsError(
            "--tasks: expected tasks or groups with a table in a paper, any of "
            f"{', '.join(name for name in there if name in known) or 'none'}, got {unknown[0]!r}"
        )
    if not filled:
        raise DataError(f"no paper has a table of any of {', '.join(there)}")
    return filled


def part_of(filled: Filled, captioners: Sequence[Captioner], options: Options) -> Part:
    """Return the table as a report.

    Raises:
        SettingsError: If the offline stand-in judged, and that is not forced.
    """
    name = filled.name
    owners = [captioner for captioner in captioners if name in captioner.runs]
    signatures = {c.name: s for c in owners if (s := c.results(name).signature) is not None}
    judges = dict.fromkeys(s.fields.get("judge", "") for s in signatures.values())
    stand_ins = [judge for judge in judges if is_offline(judge)]
    if stand_ins and not options.force:
        raise SettingsError(
            f"--paper: {name} was judged by {stand_ins[0]}, the offline stand-in for smoke tests; "
            "judge with a model, or print the table with --force"
        )
    questions = {s.fields.get(QUESTIONS) for s in signatures.values()}
    other = [
        *differences(list(signatures.values())),
        *(["questions"] if len(questions) > 1 else []),
    ]
    warning = f"WARNING: rows differ in {', '.join(other)}: do not compare them."
    title = f"{filled.table.source}, {name}. {_scope(owners, name, list(judges))}"
    frames = list(_frames(filled, options))
    notes = [
        *([f"{filled.table.note}."] if filled.table.note else []),
        *(f"{owner}: {signature}" for owner, signature in signatures.items()),
    ]
    latex = "\n\n".join(_latex(frame, title) for frame in frames)
    plain = [("", _plain(frame)) for frame in frames]
    return Part(title, [warning] if other else [], plain, notes, latex)


def documents(filled: Sequence[Filled]) -> Iterator[dict[str, object]]:
    """Yield a line per number."""
    for one in filled:
        for number in (n for _, _, cells in one.rows for cell in cells for n in cell):
            yield {
                "table": one.table.source, "captioner": number.captioner, "task": number.task,
                "heading": number.column.heading, "metric": number.metric, "label": number.label,
                "value": number.value, "low": number.low, "high": number.high,
                "deviation": number.deviation,
            }  # fmt: skip


def _scope(owners: Sequence[Captioner], name: str, judges: Sequence[str]) -> str:
    """Describe who judged, on how many videos, and whether that is a sample."""
    videos = {
        video for owner in owners for t in owner.verdicts(name).tables for video in t.rows["video"]
    }
    fields = [(owner.results(name).signature or Signature()).fields for owner in owners]
    limits = dict.fromkeys(of["limit"] for of in fields if "limit" in of)
    sample = f", a sample: the first {listed(list(limits))} documents (--limit)" if limits else ""
    is_smoke_test = any(map(is_offline, judges))
    return (
        f"Judge: {listed(list(judges))}; {len(videos):,} videos{sample}"
        f"{'; smoke test, no scores' if is_smoke_test else ''}"
    )


def _fill(
    benchmark: Benchmark[Any, Any], layout: PaperTable, name: str, captioners: Sequence[Captioner]
) -> Filled:
    def is_shown(column: Column) -> bool:
        is_there = any((column.name or name) in captioner.runs for captioner in captioners)
        is_own = column.name in ("", name) or name == layout.names[0]
        return (is_there or not column.is_optional) and (is_own or column.name not in layout.names)

    columns = list(filter(is_shown, layout.columns))
    rows = [
        (label, captioner.name, [
            _numbers(benchmark, name, column, captioner, column.metrics or [(metric, label)])
            for column in columns
        ])
        for metric, label in (layout.blocks or [("", "")])
        for captioner in captioners
        if any((column.name or name) in captioner.runs for column in columns)
    ]  # fmt: skip
    return Filled(benchmark, layout, name, columns, rows)


def _numbers(
    benchmark: Benchmark[Any, Any],
    name: str,
    column: Column,
    captioner: Captioner,
    metrics: Sequence[tuple[str, str]],
) -> list[Number]:
    task = column.name or name
    run = captioner.runs.get(task)
    scores = {} if run is None else run.tasks[task].scores
    figures: Any = {} if run is None else run.breakdown(task) or {}
    for key in column.group or ALL:
        figures = figures.get(key) if isinstance(figures, dict) else None
    found = figures if isinstance(figures, dict) else {}

    def figure(key: str) -> float | None:
        return float(found[key]) if isinstance(found.get(key), int | float) else None

    numbers = []
    for place, (metric, label) in enumerate(metrics):
        value = figure(metric) if column.group else scores.get(metric)
        deviation = figure(f"{metric}_std") if column.has_deviation and not place else None
        known = benchmark.metrics.get(metric)
        ends = figure(f"{metric}_{CI_LOW}"), figure(f"{metric}_{CI_HIGH}")
        sign = 1 if known is None or known.higher_is_better else -1
        shown = nan if value is None else value
        numbers.append(
            Number(captioner.name, column, task, metric, label, shown, *ends, deviation, sign)
        )
    return numbers


@dataclass(frozen=True, slots=True)
class _Frame:
    """A table as it is printed."""

    header: list[tuple[str, str]]
    """Heading over a column, and the column's own."""
    rows: list[list[str]]
    best: set[tuple[int, int]]
    """Cells that are set in bold."""
    n_names: int


def _frames(filled: Filled, options: Options) -> Iterator[_Frame]:
    """Yield the table, in as many pieces as the paper's if it has all of its columns."""
    pieces = filled.table.pieces
    if sum(pieces) != len(filled.columns):
        pieces = [len(filled.columns)]
    start = 0
    for n_columns in pieces:
        yield _frame(filled, range(start, start + n_columns), options)
        start += n_columns


def _frame(filled: Filled, places: range, options: Options) -> _Frame:
    has_blocks, digits = bool(filled.table.blocks), filled.table.decimals
    columns = [filled.columns[place] for place in places]
    header = [("", ""), ("", "Model")] if has_blocks else [("", "Model")]
    n_names = len(header)
    for column in columns:
        labels = [label for _, label in column.metrics] or [column.heading]
        over = column.heading if column.metrics else column.above
        header += [(over, _SLASH.join(labels))] if column.is_joined else [(over, x) for x in labels]
    with_mean = options.mean and len(columns) > 1 and all(c.metrics for c in columns)
    if with_mean:
        header.append(("Mean", _SLASH.join(label for _, label in columns[0].metrics)))
    rows, values = [], []
    for block, captioner, of_row in filled.rows:
        cells = [of_row[place] for place in places]
        row = [block, captioner] if has_blocks else [captioner]
        of_cells: list[Number | None] = []
        for column, cell in zip(columns, cells, strict=True):
            shown = [_shown(number, digits, intervals=options.intervals) for number in cell]
            row += [_SLASH.join(shown)] if column.is_joined else shown
            of_cells += [None] if column.is_joined and len(cell) > 1 else [*cell]
        if with_mean:
            row.append(_mean(cells, digits))
        rows.append(row)
        values.append((block, of_cells))
    best = _best(values, digits, n_names)
    if options.published and not has_blocks:
        rows += _published(filled, len(rows[0]) if rows else 0, with_mean=with_mean, digits=digits)
    return _Frame(header, rows, best, n_names)


def _shown(number: Number, digits: int, *, intervals: bool) -> str:
    if isnan(number.value):
        return NONE
    text = f"{number.value:.{digits}f}"
    if intervals and number.low is not None and number.high is not None:
        text = f"{text} [{number.low:.{digits}f}, {number.high:.{digits}f}]"
    return text if number.deviation is None else f"{text} (±{number.deviation:.{digits}f})"


def _mean(cells: Sequence[Sequence[Number]], digits: int) -> str:
    """Return the mean over columns, of each of the first column's metrics."""
    means = []
    for place in range(len(cells[0])):
        values = [cell[place].value for cell in cells if place < len(cell)]
        means.append(NONE if any(map(isnan, values)) else f"{fmean(values):.{digits}f}")
    return _SLASH.join(means)


def _best(
    rows: Sequence[tuple[str, Sequence[Number | None]]], digits: int, n_names: int
) -> set[tuple[int, int]]:
    """Return the best cells of each column in each block, as they are printed."""
    best: set[tuple[int, int]] = set()
    for column in range(len(rows[0][1]) if rows else 0):
        for block in dict.fromkeys(name for name, _ in rows):
            found = [
                (place, number.sign * round(number.value, digits))
                for place, (name, cells) in enumerate(rows)
                if name == block and (number := cells[column]) is not None
                and not isnan(number.value)
            ]  # fmt: skip
            top = max((value for _, value in found), default=nan)
            if len(found) > 1:
                best |= {(place, column + n_names) for place, value in found if value == top}
    return best


def _published(filled: Filled, n_cells: int, *, with_mean: bool, digits: int) -> list[list[str]]:
    """Return the paper's rows, as the task's page has them, with the paper's judge."""
    page = filled.benchmark.folder / "README.md"
    rows: list[list[str]] = []
    is_table = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in ("model", "captioner"):
            is_table = not rows and len(cells) == 1 + len(filled.table.columns_of_page())
        elif not line.startswith("|"):
            is_table = False
        elif is_table and not set(cells[0]) <= {"-", ":"}:
            rows.append(cells)
    judge = filled.table.published_judge
    shown = []
    for model, *cells in rows:
        row = [f"{model} (paper, judge {judge})"]
        for column, cell in zip(filled.table.columns_of_page(), cells, strict=True):
            if column in filled.columns:
                parts = cell.split(_SLASH)
                row += [cell] if column.is_joined else parts
        if with_mean:
            numbers = [
                [float(re.split(" ", part)[0]) for part in cell.split(_SLASH)] for cell in cells
            ]
            means = (fmean(values) for values in zip(*numbers, strict=False))
            row.append(_SLASH.join(f"{mean:.{digits}f}" for mean in means))
        shown.append([*row, *[NONE] * (n_cells - len(row))])
    return shown


def _plain(frame: _Frame) -> Any:  # noqa: ANN401 - of pandas
    header = [" ".join(filter(None, pair)) for pair in frame.header]
    return table(header, frame.rows)


def _latex(frame: _Frame, caption: str) -> str:
    import pandas as pd

    cells = [
        [
            rf"\textbf{{{in_latex(cell)}}}" if (r, c) in frame.best else in_latex(cell)
            for c, cell in enumerate(row)
        ]
        for r, row in enumerate(frame.rows)
    ]
    header = [(in_latex(over), in_latex(own)) for over, own in frame.header]
    has_over = any(over for over, _ in header)
    columns = pd.MultiIndex.from_tuples(header) if has_over else [own for _, own in header]
    text: str = pd.DataFrame(cells, columns=columns).to_latex(
        index=False, escape=False, caption=in_latex(caption), multicolumn_format="c",
        column_format="l" * frame.n_names + "r" * (len(header) - frame.n_names),
    )  # fmt: skip
    return text.rstrip()
