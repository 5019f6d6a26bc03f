"""The papers' tables with the user's captioners in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import isnan, nan
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
_SETTINGS: Final[tuple[str, ...]] = get_args(Setting)
_VDC: Final = ("Acc / Score", ("vdc_acc", "vdc_score"))
_VIDCAPBENCH: Final = ("Acc / Pre / Cov / Con", ("acc", "pre", "cov", "con"))
_CAPQUIZ: Final = (("F1", ("capf1",)), ("P", ("capp",)), ("R", ("capr",)))
_GVEVAL: Final = tuple(
    (heading, (metric,))
    for heading, metric in zip(("Acc", "Comp", "Conc", "Rel", "Avg"), (*ACCR, "avg"), strict=True)
)


class Column(NamedTuple):
    """Numbers of one task or group of questions."""

    above: str
    """Heading over the column, and over its neighbours that have the same."""
    heading: str
    """Heading of each metric, separated by slashes, as the numbers are."""
    metrics: Sequence[str] = ()
    """Empty for the metric of the block."""
    name: str = ""
    """Task or group of the numbers; empty for that of the table."""
    group: tuple[str, str] = ALL
    """Section of the breakdown and the group in it."""


class PaperTable(NamedTuple):
    """A table with a row for each captioner. Columns that no captioner has are left out."""

    source: str
    """Paper and number of the table."""
    names: Sequence[str]
    """Tasks and groups that it may show: the first that the captioners have."""
    columns: Sequence[Column]
    blocks: Sequence[tuple[str, str]] = (("", ""),)
    """Metrics that have rows of their own, with the text in front."""
    note: str = ""
    """Advice to readers who compare with other rows of the paper."""
    n_pieces: int = 1
    """Pieces in which the paper prints the columns."""
    decimals: int = 2
    has_deviation: bool = False
    """True if the first metric over all questions has its deviation over several judge runs."""
    published_judge: str = ""
    """Judge behind the paper's own rows, which the benchmark's README has."""


PAPER_TABLES: Final[Mapping[type[Benchmark[Any, Any]], PaperTable]] = {
    Vdc: PaperTable(
        source="AuroraCap, Table 7",
        published_judge="Llama-3.1-8B-Instruct",
        names=("vdc_score", *(f"vdc_{aspect}" for aspect in ASPECTS)),
        columns=[Column(a.replace("_", " ").title(), *_VDC, name=f"vdc_{a}") for a in ASPECTS],
        note="By its authors' public word Llama-3.1-8B-Instruct judged the paper's Table 7, "
        "and not GPT-4o: only rows of that judge belong beside it, see the page of VDC",
    ),
    VidCapBench: PaperTable(
        source="VidCapBench, Table 3",
        published_judge="gpt-4o-2024-08-06",
        names=("vidcapbench_ae", "vidcapbench", "vidcapbench_he"),
        columns=[
            Column("Overall", *_VIDCAPBENCH),
            *(Column(of.title(), *_VIDCAPBENCH, group=("dimensions", of)) for of in CATEGORIES),
            Column("VDC Overall", *_VDC, name="vdc_score"),
        ],
        decimals=1,
        has_deviation=True,
    ),
    VCapsBench: PaperTable(
        source="VCapsBench, Table 1",
        names=("vcapsbench",),
        columns=[
            *(Column(GROUP_OF[of], of.title(), group=("categories", of)) for of in GROUP_OF),
            Column("", "ALL"),
        ],
        blocks=(("AR", "ar"), ("IR", "ir"), ("CR", "cr")),
        n_pieces=2,
    ),
    CapQuiz: PaperTable(
        source="CapQuiz, Table 3",
        published_judge="gpt-4.1-2025-04-14",
        names=("capquiz", "capquiz_detailed"),
        columns=[
            *(Column("Overall", *own) for own in _CAPQUIZ),
            *(Column(of, *own, group=("groups", of)) for of in GROUPS for own in _CAPQUIZ),
        ],
    ),
    # The paper prints only the agreement of these scores with people.
    MsvdEval: PaperTable(
        source="MSVD-Eval, scores of G-VEval (a layout of ours)",
        names=("msvd_eval", *(f"msvd_eval_{setting}" for setting in _SETTINGS)),
        columns=[
            Column(setting.replace("_", "-"), *own, name=f"msvd_eval_{setting}")
            for setting in _SETTINGS
            for own in _GVEVAL
        ],
    ),
}
"""Table of each benchmark that has one, for ``compare --paper``."""


class Options(NamedTuple):
    """Parts of a paper table in addition to the scores.

    ``published`` are the paper's own rows; ``force`` shows scores by the offline stand-in.
    """

    intervals: bool = False
    mean: bool = False
    published: bool = False
    force: bool = False


class Filled(NamedTuple):
    """A paper's table with the numbers of some captioners."""

    benchmark: Benchmark[Any, Any]
    layout: PaperTable
    name: str
    columns: Sequence[Column]
    """Columns that any captioner has numbers for."""
    numbers: pd.DataFrame
    """A row per number: where it stands, its value, and its interval; ``nan`` if there is none."""


def fill_tables(captioners: Sequence[Captioner], names: Sequence[str] = ()) -> list[Filled]:
    """Return the table of each benchmark, or of each name, with a row per captioner.

    Numbers are those that the runs printed, over all that each was asked.

    Raises:
        SettingsError: If a name has no table.
        DataError: If there is none.
    """
    tables = {
        name: (benchmark, layout)
        for benchmark in all_benchmarks().values()
        if (layout := PAPER_TABLES.get(type(benchmark))) is not None
        for name in layout.names
    }
    present = dict.fromkeys(name for captioner in captioners for name in captioner.runs)
    unknown = [name for name in names if name not in tables or name not in present]
    if unknown:
        raise SettingsError(
            "--tasks: expected tasks or groups with a table in a paper, any of "
            f"{', '.join(name for name in present if name in tables) or 'none'}, got {unknown[0]!r}"
        )
    shown = [name for name in tables if name in (names or present)]
    if not shown:
        raise DataError(f"no paper has a table of any of {', '.join(present)}")
    if not names:
        first_of = {tables[name][1].source: name for name in reversed(shown)}
        shown = [name for name in shown if name in first_of.values()]
    return [_fill(*tables[name], name, captioners) for name in shown]


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
        f"{filled.layout.source}, {name}. Judge: {listed(judges)}; {n_videos:,} videos"
        f"{f', a sample: the first {listed(limits)} documents (--limit)' if limits else ''}"
        f"{'; smoke test, no scores' if stand_ins else ''}"
    )
    notes = [f"{filled.layout.note}."] * bool(filled.layout.note)
    notes += [f"{owner}: {signature}" for owner, signature in signatures.items()]
    pieces = list(_pieces(filled, options))
    plain = [
        ("", table([" ".join(h).strip() for h in of.columns], of.to_numpy())) for of, _ in pieces
    ]
    latex = "\n\n".join(_latex(*piece, title) for piece in pieces)
    return Part(title, [warning] if other else [], plain, notes, latex)


def documents(filled: Sequence[Filled]) -> pd.DataFrame:
    """Return a row per number."""
    import pandas as pd

    shown = ["captioner", "task", "heading", "metric", "label", "value", "low", "high", "deviation"]
    numbers = pd.concat([of.numbers.assign(table=of.layout.source) for of in filled])
    return numbers[["table", *shown]]


def _fill(
    benchmark: Benchmark[Any, Any], layout: PaperTable, name: str, captioners: Sequence[Captioner]
) -> Filled:
    import pandas as pd

    columns = [
        column
        for column in layout.columns
        if any((column.name or name) in owner.runs for owner in captioners)
        and (column.name not in layout.names or name in (column.name, layout.names[0]))
    ]
    owners = [c for c in captioners if any((column.name or name) in c.runs for column in columns)]
    numbers: list[dict[str, object]] = []
    for row, ((block, metric), owner) in enumerate(product(layout.blocks, owners)):
        for place, column in enumerate(columns):
            place_of = {"row": row, "column": place, "block": block, "captioner": owner.name}
            of_block = column._replace(above=column.heading, heading=block, metrics=(metric,))
            own = column if column.metrics else of_block
            of_metrics = _numbers(benchmark, layout, owner, column.name or name, own)
            numbers += [{**place_of, **of_metric} for of_metric in of_metrics]
    return Filled(benchmark, layout, name, columns, pd.DataFrame(numbers))


def _numbers(
    benchmark: Benchmark[Any, Any], layout: PaperTable, owner: Captioner, task: str, column: Column
) -> Iterator[dict[str, object]]:
    """Yield the numbers of a captioner in a column."""
    run = owner.runs.get(task)
    figures = None if run is None else member(run.breakdown(task), *column.group)
    scores = run.tasks[task].scores if run is not None and column.group == ALL else figures

    def figure(figures: object, key: str) -> float:
        value = member(figures, key)
        return float(value) if isinstance(value, int | float) else nan

    labels = column.heading.split(_SLASH)
    for place, (label, metric) in enumerate(zip(labels, column.metrics, strict=True)):
        known, value = benchmark.metrics.get(metric), figure(scores, metric)
        sign = 1 if known is None or known.higher_is_better else -1
        has_deviation = layout.has_deviation and column.group == ALL and not place
        yield {
            "task": task, "heading": column.above, "metric": metric, "label": label,
            "value": value, "low": figure(figures, f"{metric}_{CI_LOW}"),
            "high": figure(figures, f"{metric}_{CI_HIGH}"),
            "deviation": figure(figures, f"{metric}_std") if has_deviation else nan,
            # Numbers that stand alone are compared as they are printed.
            "merit": sign * round(value, layout.decimals) if len(labels) == 1 else nan,
        }  # fmt: skip


def _pieces(filled: Filled, options: Options) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield the texts of each piece of the table, and a frame that is true where they are best."""
    import pandas as pd

    layout, numbers = filled.layout, filled.numbers
    shown = [_shown(of, layout.decimals, options) for of in numbers.itertuples()]
    merits = numbers.groupby(["block", "column"])["merit"]
    is_best = (numbers["merit"] == merits.transform("max")) & (merits.transform("count") > 1)
    cells = numbers.assign(text=shown, is_best=is_best).groupby(["row", "column"])
    cells = cells.agg({"text": _SLASH.join, "is_best": "any"}).unstack()
    names = numbers.drop_duplicates("row").set_index("row")
    n_metrics = numbers["metric"].nunique()
    # Groups of one task overlap, and have no mean.
    with_mean = options.mean and all(column.name for column in filled.columns)
    with_mean &= numbers["task"].nunique() > 1
    for places in np.array_split(np.arange(len(filled.columns)), layout.n_pieces):
        heads = pd.MultiIndex.from_tuples([filled.columns[place][:2] for place in places])
        texts, is_best = (cells[of][places].set_axis(heads, axis=1) for of in ("text", "is_best"))
        texts.insert(0, ("", "Model"), names["captioner"])
        if len(layout.blocks) > 1:
            texts.insert(0, ("", ""), names["block"])
        if with_mean:
            means = [_mean(of, n_metrics, layout) for _, of in numbers.groupby("row")["value"]]
            texts["Mean", _SLASH.join(numbers["label"].unique())] = means
        for row, values in _published(filled) if options.published else ():
            mean = [_mean(list(map(float, values)), n_metrics, layout)] if with_mean else []
            texts.loc[len(texts)] = [*row, *mean]
        yield texts, is_best.reindex(index=texts.index, columns=texts.columns, fill_value=False)


def _latex(texts: pd.DataFrame, is_best: pd.DataFrame, caption: str) -> str:
    cells = texts.map(in_latex)
    cells = cells.mask(is_best, r"\textbf{" + cells + "}")
    cells.columns = texts.columns.map(lambda heads: tuple(map(in_latex, heads)))
    n_names = list(texts).index(("", "Model")) + 1
    text: str = cells.to_latex(
        index=False, escape=False, caption=in_latex(caption), multicolumn_format="c",
        column_format="l" * n_names + "r" * (texts.shape[1] - n_names),
    )  # fmt: skip
    return text.rstrip()


def _shown(of: Any, digits: int, options: Options) -> str:  # noqa: ANN401 - a row
    text = number(of.value, digits)
    if options.intervals and not isnan(of.value + of.low + of.high):
        text = f"{text} [{of.low:.{digits}f}, {of.high:.{digits}f}]"
    return text if isnan(of.value + of.deviation) else f"{text} (±{of.deviation:.{digits}f})"


def _mean(values: Sequence[float], n_metrics: int, layout: PaperTable) -> str:
    """Return the mean of each metric over tasks."""
    means = np.reshape(values, (-1, n_metrics)).mean(axis=0)
    return _SLASH.join(number(mean, layout.decimals) for mean in means)


def _published(filled: Filled) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the cells and all numbers of the paper's rows, as the task's page has them."""
    layout = filled.layout
    own = [column for column in layout.columns if column.name in ("", *layout.names)]
    page = (filled.benchmark.folder / "README.md").read_text(encoding="utf-8")
    for lines in re.findall(r"(?:^\|.*\n?)+", page, re.MULTILINE):
        (first, *_), _, *rows = [line.strip("| ").split("|", 1) for line in lines.splitlines()]
        if first.strip() not in ("model", "captioner"):
            continue
        for model, cells in rows:
            values = re.split(r"\s*[|/]\s*", cells.strip())
            if len(values) != sum(len(column.metrics) for column in own):
                break
            rest = iter(values)
            cell_of = {column: _SLASH.join(islice(rest, len(column.metrics))) for column in own}
            shown = [cell_of.get(column, NONE) for column in filled.columns]
            yield [f"{model.strip()} (paper, judge {layout.published_judge})", *shown], values
        else:
            return
