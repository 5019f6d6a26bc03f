"""The papers' tables with the user's captioners in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import numpy as np

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.results_folder import member
from lmms_eval_captions.analysis.tables import NONE, Part, in_latex, listed, number, table
from lmms_eval_captions.analysis.task_table import differences
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.protocols.gveval import ACCR, Setting
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import GROUPS, CapQuiz
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import MsvdEval
from lmms_eval_captions.lmms_eval_tasks.results.intervals import CI_HIGH, CI_LOW
from lmms_eval_captions.lmms_eval_tasks.signature import QUESTIONS
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import GROUP_OF, VCapsBench
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import Vdc
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import CATEGORIES, VidCapBench
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS

if TYPE_CHECKING:
    import pandas as pd

_SLASH: Final = " / "
_VDC: Final = (("vdc_acc", "Acc"), ("vdc_score", "Score"))
_VIDCAPBENCH: Final = (("acc", "Acc"), ("pre", "Pre"), ("cov", "Cov"), ("con", "Con"))
_CAPQUIZ: Final = (("capf1", "F1"), ("capp", "P"), ("capr", "R"))
_GVEVAL: Final = (*zip(ACCR, ("Acc", "Comp", "Conc", "Rel"), strict=True), ("avg", "Avg"))
_SETTINGS: Final[tuple[str, ...]] = get_args(Setting)


class Column(NamedTuple):
    """Numbers of one group of questions, in one column each or in one cell together."""

    heading: str
    """Heading of the column or columns."""
    metrics: Sequence[tuple[str, str]] = ()
    """Metrics with their headings; empty for the metric of the block."""
    above: str = ""
    """Heading over several columns without metrics of their own."""
    group: tuple[str, str] | None = None
    """Section of the breakdown and the group in it; ``None`` for all questions."""
    name: str = ""
    """Task or group of the numbers; empty for that of the table."""
    is_joined: bool = False
    """True if they are in one cell, separated by slashes."""
    has_deviation: bool = False
    """True if the first is followed by its deviation over judge runs, if there are several."""
    is_optional: bool = False
    """True if the column is left out when no captioner has it."""


class PaperTable(NamedTuple):
    """A table with a row for each captioner."""

    source: str
    """Paper and number of the table."""
    names: Sequence[str]
    """Tasks and groups that it may show: the first that the captioners have."""
    columns: Sequence[Column]
    blocks: Sequence[tuple[str, str]] = ()
    """Metrics that have rows of their own, with the text in front; empty if every captioner has
    one row."""
    note: str = ""
    """Advice to readers who compare with other rows of the paper."""
    pieces: Sequence[int] = ()
    """Columns of each piece if the paper breaks the table; empty if it is in one piece."""
    decimals: int = 2
    published_judge: str = ""
    """Judge behind the paper's own rows, which the benchmark's README has."""


PAPER_TABLES: Final[Mapping[type[Benchmark[Any, Any]], PaperTable]] = MappingProxyType(
    {
        Vdc: PaperTable(
            source="AuroraCap, Table 7",
            published_judge="Llama-3.1-8B-Instruct",
            names=("vdc_score", *(f"vdc_{aspect}" for aspect in ASPECTS)),
            columns=[
                Column(aspect.replace("_", " ").title(), _VDC, name=f"vdc_{aspect}", is_joined=True)
                for aspect in ASPECTS
            ],
            note="By its authors' public word Llama-3.1-8B-Instruct judged the paper's Table 7, "
            "and not GPT-4o: only rows of that judge belong beside it, see the page of VDC",
        ),
        VidCapBench: PaperTable(
            source="VidCapBench, Table 3",
            published_judge="gpt-4o-2024-08-06",
            names=("vidcapbench_ae", "vidcapbench", "vidcapbench_he"),
            columns=[
                Column("Overall", _VIDCAPBENCH, is_joined=True, has_deviation=True),
                *(
                    Column(name.title(), _VIDCAPBENCH, group=("dimensions", name), is_joined=True)
                    for name in CATEGORIES
                ),
                Column(
                    "VDC Overall", _VDC, name="vdc_score", is_joined=True, has_deviation=True,
                    is_optional=True,
                ),
            ],
            decimals=1,
        ),
        VCapsBench: PaperTable(
            source="VCapsBench, Table 1",
            names=("vcapsbench",),
            columns=[
                *(
                    Column(name.title(), above=group, group=("categories", name))
                    for name, group in GROUP_OF.items()
                ),
                Column("ALL"),
            ],
            pieces=(11, 11),
            blocks=(("ar", "AR"), ("ir", "IR"), ("cr", "CR")),
        ),
        CapQuiz: PaperTable(
            source="CapQuiz, Table 3",
            published_judge="gpt-4.1-2025-04-14",
            names=("capquiz", "capquiz_detailed"),
            columns=[
                Column("Overall", _CAPQUIZ),
                *(Column(name, _CAPQUIZ, group=("groups", name)) for name in GROUPS),
            ],
        ),
        # The paper prints only the agreement of these scores with people.
        MsvdEval: PaperTable(
            source="MSVD-Eval, scores of G-VEval (a layout of ours)",
            names=("msvd_eval", *(f"msvd_eval_{setting}" for setting in _SETTINGS)),
            columns=[
                Column(
                    setting.replace("_", "-"), _GVEVAL, name=f"msvd_eval_{setting}",
                    is_optional=True,
                )
                for setting in _SETTINGS
            ],
        ),
    }
)  # fmt: skip
"""Table of each benchmark that has one, for ``compare --paper``."""


class Options(NamedTuple):
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


def fill_tables(captioners: Sequence[Captioner], names: Sequence[str] = ()) -> list[Filled]:
    """Return the table of each benchmark, or of each name, with a row per captioner.

    Numbers are those that the runs printed, over all that each was asked.

    Raises:
        SettingsError: If a name has no table.
        DataError: If there is none.
    """
    present = dict.fromkeys(name for captioner in captioners for name in captioner.runs)
    filled: list[Filled] = []
    known: set[str] = set()
    for benchmark in all_benchmarks().values():
        layout = PAPER_TABLES.get(type(benchmark))
        if layout is not None:
            known.update(layout.names)
            own = [name for name in layout.names if name in (names or present)]
            chosen = own if names else own[:1]
            filled += [_fill(benchmark, layout, name, captioners) for name in chosen]
    unknown = [name for name in names if name not in known or name not in present]
    if unknown:
        raise SettingsError(
            "--tasks: expected tasks or groups with a table in a paper, any of "
            f"{', '.join(name for name in present if name in known) or 'none'}, got {unknown[0]!r}"
        )
    if not filled:
        raise DataError(f"no paper has a table of any of {', '.join(present)}")
    return filled


def part_of(filled: Filled, captioners: Sequence[Captioner], options: Options) -> Part:
    """Return the table as a report.

    Raises:
        SettingsError: If the offline stand-in judged, and that is not forced.
    """
    name = filled.name
    owners = [captioner for captioner in captioners if name in captioner.runs]
    signatures = {c.name: s for c in owners if (s := c.results(name).signature) is not None}
    fields = [signature.fields for signature in signatures.values()]
    judges = list(dict.fromkeys(of.get("judge", "") for of in fields))
    stand_ins = [judge for judge in judges if is_offline(judge)]
    if stand_ins and not options.force:
        raise SettingsError(
            f"--paper: {name} was judged by {stand_ins[0]}, the offline stand-in for smoke tests; "
            "judge with a model, or print the table with --force"
        )
    other = list(differences(list(signatures.values())))
    if len({of.get(QUESTIONS) for of in fields}) > 1:
        other.append("questions")
    warning = f"WARNING: rows differ in {', '.join(other)}: do not compare them."
    n_videos = len(set().union(*(owner.verdicts(name).videos() for owner in owners)))
    limits = list(dict.fromkeys(of["limit"] for of in fields if "limit" in of))
    title = (
        f"{filled.table.source}, {name}. Judge: {listed(judges)}; {n_videos:,} videos"
        f"{f', a sample: the first {listed(limits)} documents (--limit)' if limits else ''}"
        f"{'; smoke test, no scores' if stand_ins else ''}"
    )
    made = list(_tables(filled, options, title))
    notes = [f"{owner}: {signature}" for owner, signature in signatures.items()]
    if filled.table.note:
        notes.insert(0, f"{filled.table.note}.")
    plain, latex = [("", frame) for frame, _ in made], "\n\n".join(text for _, text in made)
    return Part(title, [warning] if other else [], plain, notes, latex)


def documents(filled: Sequence[Filled]) -> pd.DataFrame:
    """Return a row per number."""
    import pandas as pd

    shown = ["captioner", "task", "heading", "metric", "label", "value", "low", "high", "deviation"]
    return pd.concat(
        [of.numbers[shown].assign(table=of.table.source)[["table", *shown]] for of in filled],
        ignore_index=True,
    )


def _fill(
    benchmark: Benchmark[Any, Any], layout: PaperTable, name: str, captioners: Sequence[Captioner]
) -> Filled:
    import pandas as pd

    def has(captioner: Captioner, column: Column) -> bool:
        return (column.name or name) in captioner.runs

    def is_shown(column: Column) -> bool:
        is_present = not column.is_optional or any(has(of, column) for of in captioners)
        is_own = column.name in ("", name) or name == layout.names[0]
        return is_present and (is_own or column.name not in layout.names)

    columns = list(filter(is_shown, layout.columns))
    rows = [
        (block, captioner)
        for block in (layout.blocks or [("", "")])
        for captioner in captioners
        if any(has(captioner, column) for column in columns)
    ]
    numbers = [
        {"row": row, "block": block[1], "captioner": captioner.name, "column": place, **number}
        for row, (block, captioner) in enumerate(rows)
        for place, column in enumerate(columns)
        for number in _numbers(benchmark, column.name or name, column, captioner, block)
    ]
    return Filled(benchmark, layout, name, columns, pd.DataFrame(numbers))


def _numbers(
    benchmark: Benchmark[Any, Any],
    task: str,
    column: Column,
    captioner: Captioner,
    block: tuple[str, str],
) -> Iterator[dict[str, object]]:
    """Yield the numbers of a captioner in a column; ``nan`` if it has none."""
    run = captioner.runs.get(task)
    scores = {} if run is None else run.tasks[task].scores
    figures = None if run is None else member(run.breakdown(task), *(column.group or ALL))

    def figure(key: str) -> float:
        value = member(figures, key)
        return float(value) if isinstance(value, int | float) else nan

    for place, (metric, label) in enumerate(column.metrics or [block]):
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


def _tables(filled: Filled, options: Options, caption: str) -> Iterator[tuple[pd.DataFrame, str]]:
    """Yield the table and its LaTeX, in the paper's pieces if it has all of its columns."""
    n, digits, pieces = len(filled.columns), filled.table.decimals, filled.table.pieces
    numbers = filled.numbers
    texts = [_shown(of, digits, options) for of in numbers.itertuples()]
    latex = [
        rf"\textbf{{{in_latex(text)}}}" if is_best else in_latex(text)
        for text, is_best in zip(texts, _is_best(numbers, digits), strict=True)
    ]
    numbers = numbers.assign(text=texts, latex=latex)
    for places in np.split(np.arange(n), np.cumsum(pieces)[:-1] if sum(pieces) == n else []):
        yield _table(filled, numbers[numbers["column"].isin(places)], options, caption)


def _table(
    filled: Filled, numbers: pd.DataFrame, options: Options, caption: str
) -> tuple[pd.DataFrame, str]:
    import pandas as pd

    digits, has_blocks = filled.table.decimals, bool(filled.table.blocks)
    columns = [filled.columns[place] for place in numbers["column"].unique()]
    header = [("", ""), ("", "Model")] if has_blocks else [("", "Model")]
    n_names = len(header)
    for column in columns:
        labels = [label for _, label in column.metrics] or [column.heading]
        over = column.heading if column.metrics else column.above
        header += [(over, _SLASH.join(labels))] if column.is_joined else [(over, x) for x in labels]
    names = numbers.drop_duplicates("row")[["block", "captioner"] if has_blocks else ["captioner"]]
    of_cells = numbers.groupby(["row", "column", "cell"])
    cells = of_cells[["text", "latex"]].agg(_SLASH.join).unstack([1, 2])
    more = [""] * len(names)
    with_mean = options.mean and len(columns) > 1 and all(column.metrics for column in columns)
    if with_mean:
        header.append(("Mean", _SLASH.join(label for _, label in columns[0].metrics)))
        first = numbers[numbers["place"] < len(columns[0].metrics)]
        means = first.groupby(["row", "place"])["value"].agg(lambda of: of.mean(skipna=False))
        more = [_SLASH.join(number(v, digits) for v in of) for of in means.unstack().to_numpy()]
    rows, latex = [], []
    for name, plain, marked, mean in zip(
        names.to_numpy(), cells["text"].to_numpy(), cells["latex"].to_numpy(), more, strict=True
    ):
        ends = [mean] * with_mean
        rows.append([*name, *plain, *ends])
        latex.append([*map(in_latex, name), *marked, *map(in_latex, ends)])
    if options.published and not has_blocks:
        for row in _published(filled, len(header), with_mean=with_mean):
            rows.append(row)
            latex.append(list(map(in_latex, row)))
    heads = [(in_latex(over), in_latex(own)) for over, own in header]
    own_heads = [own for _, own in heads]
    text: str = pd.DataFrame(
        latex, columns=pd.MultiIndex.from_tuples(heads) if any(o for o, _ in heads) else own_heads
    ).to_latex(
        index=False, escape=False, caption=in_latex(caption), multicolumn_format="c",
        column_format="l" * n_names + "r" * (len(header) - n_names),
    )  # fmt: skip
    return table([" ".join(filter(None, of)) for of in header], rows), text.rstrip()


def _shown(of: Any, digits: int, options: Options) -> str:  # noqa: ANN401 - a row
    text = number(of.value, digits)
    if options.intervals and not isnan(of.value + of.low + of.high):
        text = f"{text} [{of.low:.{digits}f}, {of.high:.{digits}f}]"
    return text if isnan(of.value + of.deviation) else f"{text} (±{of.deviation:.{digits}f})"


def _is_best(numbers: pd.DataFrame, digits: int) -> pd.Series[bool]:
    """Mark the numbers that are best in their column and block, as printed, of several."""
    is_alone = numbers.groupby(["row", "column", "cell"])["place"].transform("size") == 1
    own = numbers["sign"] * numbers["value"].map(lambda value: round(value, digits))
    of_column = own.where(is_alone).groupby([numbers[of] for of in ("block", "column", "cell")])
    return is_alone & (own == of_column.transform("max")) & (of_column.transform("count") > 1)


def _published(filled: Filled, n_cells: int, *, with_mean: bool) -> list[list[str]]:
    """Return the paper's rows, as the task's page has them, with the paper's judge."""
    columns = [column for column in filled.table.columns if not column.is_optional]
    page = (filled.benchmark.folder / "README.md").read_text(encoding="utf-8")
    tables = (
        [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
        for lines in re.findall(r"(?:^\|.*\n?)+", page, re.MULTILINE)
    )
    rows = next(
        (
            rows
            for (first, *others), _, *rows in tables
            if first in ("model", "captioner") and len(others) == len(columns)
        ),
        [],
    )
    shown = []
    for model, *cells in rows:
        row = [f"{model} (paper, judge {filled.table.published_judge})"]
        for column, cell in zip(columns, cells, strict=True):
            if column in filled.columns:
                row += [cell] if column.is_joined else cell.split(_SLASH)
        if with_mean:
            numbers = [[float(part.split()[0]) for part in cell.split(_SLASH)] for cell in cells]
            means = (fmean(values) for values in zip(*numbers, strict=False))
            row.append(_SLASH.join(number(mean, filled.table.decimals) for mean in means))
        shown.append([*row, *[NONE] * (n_cells - len(row))])
    return shown
