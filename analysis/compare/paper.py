"""The papers' tables with the user's captioners in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.compare.paper_tables import PAPER_TABLES, Column, PaperTable
from lmms_eval_captions.analysis.tables import NONE, Part, in_latex, listed, number, table
from lmms_eval_captions.analysis.task_table import differences
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.intervals import CI_HIGH, CI_LOW
from lmms_eval_captions.lmms_eval_tasks.signature import QUESTIONS, Signature
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

if TYPE_CHECKING:
    import pandas as pd

_SLASH: Final = " / "


@dataclass(frozen=True, slots=True)
class Options:
    """Parts of a paper table in addition to the scores."""

    intervals: bool = False
    mean: bool = False
    """A column with the mean over the columns."""
    published: bool = False
    """The paper's own rows."""
    force: bool = False
    """True to show scores by the offline stand-in."""


class Filled(NamedTuple):
    """A paper's table with the numbers of some captioners."""

    benchmark: Benchmark[Any, Any]
    table: PaperTable
    name: str
    columns: Sequence[Column]
    numbers: pd.DataFrame
    """A row per number: where it stands, see :func:`_numbers`, its value, and its interval."""


class _Frame(NamedTuple):
    """A table as it is printed."""

    header: list[tuple[str, str]]
    """Heading over a column, and the column's own."""
    rows: list[list[str]]
    best: set[tuple[int, int]]
    """Cells that are set in bold."""
    n_names: int


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
        layout = PAPER_TABLES.get(type(benchmark))
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
    plain = [
        ("", table([" ".join(filter(None, pair)) for pair in frame.header], frame.rows))
        for frame in frames
    ]
    latex = "\n\n".join(_latex(frame, title) for frame in frames)
    return Part(title, [warning] if other else [], plain, notes, latex)


def documents(filled: Sequence[Filled]) -> pd.DataFrame:
    """Return a row per number."""
    import pandas as pd

    shown = ["captioner", "task", "heading", "metric", "label", "value", "low", "high", "deviation"]
    return pd.concat(
        [of.numbers[shown].assign(table=of.table.source)[["table", *shown]] for of in filled],
        ignore_index=True,
    )


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
    import pandas as pd

    def is_shown(column: Column) -> bool:
        is_there = any((column.name or name) in captioner.runs for captioner in captioners)
        is_own = column.name in ("", name) or name == layout.names[0]
        return (is_there or not column.is_optional) and (is_own or column.name not in layout.names)

    columns = list(filter(is_shown, layout.columns))
    rows = [
        (block, captioner)
        for block in (layout.blocks or [("", "")])
        for captioner in captioners
        if any((column.name or name) in captioner.runs for column in columns)
    ]
    numbers = [
        {"row": row, "block": block[1], "captioner": captioner.name, "column": place, **number}
        for row, (block, captioner) in enumerate(rows)
        for place, column in enumerate(columns)
        for number in _numbers(benchmark, name, column, captioner, column.metrics or [block])
    ]
    return Filled(benchmark, layout, name, columns, pd.DataFrame(numbers))


def _numbers(
    benchmark: Benchmark[Any, Any],
    name: str,
    column: Column,
    captioner: Captioner,
    metrics: Sequence[tuple[str, str]],
) -> Iterator[dict[str, object]]:
    """Yield the numbers of a captioner in a column; ``nan`` if it has none."""
    task = column.name or name
    run = captioner.runs.get(task)
    scores = {} if run is None else run.tasks[task].scores
    figures: Any = {} if run is None else run.breakdown(task) or {}
    for key in column.group or ALL:
        figures = figures.get(key) if isinstance(figures, dict) else None
    found = figures if isinstance(figures, dict) else {}

    def figure(key: str) -> float:
        return float(found[key]) if isinstance(found.get(key), int | float) else nan

    for place, (metric, label) in enumerate(metrics):
        known = benchmark.metrics.get(metric)
        yield {
            "task": task, "heading": column.heading, "metric": metric, "label": label,
            "value": figure(metric) if column.group else scores.get(metric, nan),
            "low": figure(f"{metric}_{CI_LOW}"), "high": figure(f"{metric}_{CI_HIGH}"),
            "deviation": figure(f"{metric}_std") if column.has_deviation and not place else nan,
            "sign": 1 if known is None or known.higher_is_better else -1,
            # Joined numbers are one cell.
            "place": place, "cell": 0 if column.is_joined else place,
        }  # fmt: skip


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
    digits, has_blocks = filled.table.decimals, bool(filled.table.blocks)
    columns = [filled.columns[place] for place in places]
    header = [("", ""), ("", "Model")] if has_blocks else [("", "Model")]
    n_names = len(header)
    for column in columns:
        labels = [label for _, label in column.metrics] or [column.heading]
        over = column.heading if column.metrics else column.above
        header += [(over, _SLASH.join(labels))] if column.is_joined else [(over, x) for x in labels]
    numbers = filled.numbers[filled.numbers["column"].isin(places)]
    numbers = numbers.assign(text=[_shown(of, digits, options) for of in numbers.itertuples()])
    cells = numbers.groupby(["row", "column", "cell"])["text"].agg(_SLASH.join).unstack([1, 2])
    names = numbers.drop_duplicates("row")[["block", "captioner"] if has_blocks else ["captioner"]]
    rows = [[*of, *own] for of, own in zip(names.to_numpy(), cells.to_numpy(), strict=True)]
    best = _best(numbers, list(cells.columns), digits, n_names)
    with_mean = options.mean and len(columns) > 1 and all(column.metrics for column in columns)
    if with_mean:
        header.append(("Mean", _SLASH.join(label for _, label in columns[0].metrics)))
        first = numbers[numbers["place"] < len(columns[0].metrics)]
        of_places = first.groupby(["row", "place"])["value"]
        means = of_places.agg(lambda values: values.mean(skipna=False)).unstack()
        for row, of in zip(rows, means.to_numpy(), strict=True):
            row.append(_SLASH.join(number(mean, digits) for mean in of))
    if options.published and not has_blocks:
        rows += _published(filled, len(rows[0]) if rows else 0, with_mean=with_mean, digits=digits)
    return _Frame(header, rows, best, n_names)


def _shown(of: Any, digits: int, options: Options) -> str:  # noqa: ANN401 - a row
    text = number(of.value, digits)
    if options.intervals and not isnan(of.value + of.low + of.high):
        text = f"{text} [{of.low:.{digits}f}, {of.high:.{digits}f}]"
    return text if isnan(of.value + of.deviation) else f"{text} (±{of.deviation:.{digits}f})"


def _best(
    numbers: pd.DataFrame, cells: Sequence[tuple[int, int]], digits: int, n_names: int
) -> set[tuple[int, int]]:
    """Return the best cells of each column in each block, as they are printed."""
    alone = numbers.groupby(["row", "column", "cell"])["place"].transform("size") == 1
    own = numbers[alone & numbers["value"].notna()]
    own = own.assign(value=own["sign"] * own["value"].map(lambda value: round(value, digits)))
    of_column = own.groupby(["block", "column", "cell"])["value"]
    is_best = (own["value"] == of_column.transform("max")) & (of_column.transform("size") > 1)
    chosen = own[is_best]
    return {
        (row, n_names + cells.index((column, cell)))
        for row, column, cell in zip(chosen["row"], chosen["column"], chosen["cell"], strict=True)
    }


def _published(filled: Filled, n_cells: int, *, with_mean: bool, digits: int) -> list[list[str]]:
    """Return the paper's rows, as the task's page has them, with the paper's judge."""
    columns = filled.table.columns_of_page()
    page = (filled.benchmark.folder / "README.md").read_text(encoding="utf-8")
    rows: list[list[str]] = []
    is_table = False
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in ("model", "captioner"):
            is_table = not rows and len(cells) == 1 + len(columns)
        elif not line.startswith("|"):
            is_table = False
        elif is_table and not set(cells[0]) <= {"-", ":"}:
            rows.append(cells)
    shown = []
    for model, *cells in rows:
        row = [f"{model} (paper, judge {filled.table.published_judge})"]
        for column, cell in zip(columns, cells, strict=True):
            if column in filled.columns:
                row += [cell] if column.is_joined else cell.split(_SLASH)
        if with_mean:
            numbers = [[float(part.split()[0]) for part in cell.split(_SLASH)] for cell in cells]
            means = (fmean(values) for values in zip(*numbers, strict=False))
            row.append(_SLASH.join(f"{mean:.{digits}f}" for mean in means))
        shown.append([*row, *[NONE] * (n_cells - len(row))])
    return shown


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
