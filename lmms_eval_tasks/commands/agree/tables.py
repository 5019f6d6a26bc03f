"""Findings as tables, for a terminal or a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.commands.agree.conclusions import shown_interval
from lmms_eval_captions.lmms_eval_tasks.commands.agree.findings import (
    Agreement,
    Findings,
    JudgeFindings,
    Leniency,
    PairFindings,
    Ranking,
)
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.clustered_slope import Slope
from lmms_eval_captions.metrics.paired_interval import Difference

Form = Literal["text", "markdown"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a title."""

    title: str
    rows: Sequence[Sequence[str]]
    """The first is the header."""
    note: str = ""


def report(findings: Sequence[Findings], form: Form) -> str:
    """Everything that was found out, the conclusions last."""
    lines: list[str] = []
    for found in findings:
        lines.extend(_heading(found, form))
        for table in _tables(found):
            lines.extend(_shown(table, form))
        lines.append("")
        is_text = form == "text"
        lines.extend(f"{'' if is_text else '- '}{line}" for line in found.conclusions)
        lines.append("")
    return "\n".join(lines).rstrip()


def _heading(found: Findings, form: Form) -> list[str]:
    title = f"{found.benchmark}: {', '.join(found.tasks)}"
    captioners = f"Captions of {', '.join(found.captioners)}. Intervals: 95 %, over videos."
    return [title if form == "text" else f"## {title}", "", captioners]


def _shown(table: Table, form: Form) -> Iterator[str]:
    yield ""
    yield table.title if form == "text" else f"### {table.title}"
    yield ""
    if form == "text":
        yield from (f"  {line}" for line in text_table(table.rows, n_left=1))
    else:
        head, *rows = (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table.rows)
        yield from (head, f"|{' --- |' * len(table.rows[0])}", *rows)
    if table.note:
        yield ""
        yield table.note


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _tables(found: Findings) -> Iterator[Table]:
    yield _judges(found.judges)
    pairs: list[tuple[str, Agreement]] = []
    for pair in found.pairs:
        pairs += [(f"{pair.reference} / {pair.other}", each) for each in pair.agreements]
    pairs += [(f"{first} / {second}", each) for first, second, each in found.others]
    pairs += [("all judges together", each) for each in found.together]
    for judge in found.judges:
        pairs += [(f"{judge.name}: its {judge.n_runs} runs", each) for each in judge.own_runs]
    if pairs:
        yield _agreements(pairs)
    for pair in found.pairs:
        yield from _of_pair(pair)


def _judges(judges: Sequence[JudgeFindings]) -> Table:
    rows = [
        ("judge", "captions", "runs", "calls", "unpaid replies", "USD", "USD per 1,000 verdicts")
    ]
    rows += [
        (
            judge.name,
            f"{judge.n_captions:,}",
            str(judge.n_runs),
            f"{judge.price.n_calls:,}",
            f"{judge.price.n_unpaid:,}",
            _dollars(judge.price.usd),
            _dollars(judge.price.usd_per_1000_verdicts),
        )
        for judge in judges
    ]
    return Table(
        "Judges",
        rows,
        "Of whole runs, all tasks. Unpaid replies were there; prices are those of paying for all.",
    )


def _agreements(pairs: Sequence[tuple[str, Agreement]]) -> Table:
    rows = [("who", "what", "n", "unscored", "same", "kappa", "AC1", "alpha", "Pearson's r")]
    rows += [
        (
            who,
            each.measure,
            f"{each.n_units:,}",
            f"{each.n_unscored:,}",
            "-" if each.same is None else f"{100 * each.same:.1f} %",
            shown_interval(each.kappa),
            shown_interval(each.ac1),
            shown_interval(each.alpha),
            shown_interval(each.correlation),
        )
        for who, each in pairs
    ]
    return Table("Agreement", rows)


def _of_pair(pair: PairFindings) -> Iterator[Table]:
    names = f"{pair.other} beside {pair.reference}"
    counted = (
        f"{pair.n_captions:,} captions of {pair.n_videos:,} videos by {len(pair.captioners)} "
        f"captioner{'s' if len(pair.captioners) > 1 else ''}"
    )
    left_out = "; ".join(f"{n:,} {what}" for what, n in pair.left_out.items())
    note = f"{counted}{f'. Left out: {left_out}' if left_out else ''}."
    rows: list[tuple[str, ...]] = [
        ("", "n", "agreement", pair.reference, pair.other, "difference", "p")
    ]
    rows += [_leniency_row(row, pair) for row in pair.leniency]
    if any(row.p_holm is not None for row in pair.leniency):
        note += " The p of groups is Holm's, over all groups of a metric."
    if pair.n_groups_left_out:
        note += f" {pair.n_groups_left_out:,} smaller groups are not looked at."
    if pair.slope is not None:
        note += f" {_slope(pair.slope, pair)}"
    yield Table(f"Who is more lenient: {names}", rows, note)
    if pair.confusion is not None:
        labels = pair.confusion.labels
        rows_of_table = [(f"{pair.reference} \\ {pair.other}", *labels)]
        rows_of_table += [
            (label, *(f"{n:,}" for n in counts))
            for label, counts in zip(labels, pair.confusion.counts, strict=True)
        ]
        yield Table(f"Verdicts: {names}", rows_of_table)
    if pair.ranking is not None:
        yield _ranking(pair.ranking, pair)


def _leniency_row(row: Leniency, pair: PairFindings) -> tuple[str, ...]:
    is_several = len({each.metric for each in pair.leniency if each.section != ALL[0]}) > 1
    name = row.metric if row.section == ALL[0] else f"{row.section}: {row.group}"
    if row.section != ALL[0] and is_several:
        name = f"{name} {row.metric}"
    p_value = row.difference.p_value if row.section == ALL[0] else row.p_holm
    return (
        name,
        "-" if row.n_units is None else f"{row.n_units:,}",
        shown_interval(row.agreement),
        f"{row.reference:.2f}",
        f"{row.other:.2f}",
        _difference(row.difference),
        "-" if p_value is None else _p_value(p_value),
    )


def _difference(found: Difference) -> str:
    if found.low is None or found.high is None:
        return f"{found.difference:+.2f}"
    return f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _slope(slope: Slope, pair: PairFindings) -> str:
    if isnan(slope.slope):
        return "All captions have the same number of words."
    ends = "" if slope.low is None else f" [{slope.low:+.2f}, {slope.high:+.2f}]"
    return (
        f"For 100 words more in a caption, {pair.other} gives {slope.slope:+.2f}{ends} points "
        f"more than {pair.reference}."
    )


def _ranking(ranking: Ranking, pair: PairFindings) -> Table:
    rows: list[tuple[str, ...]] = [
        ("rank", pair.reference, ranking.metric, pair.other, ranking.metric)
    ]
    rows += [
        (str(place), first, f"{score:.2f}", second, f"{other:.2f}")
        for place, ((first, score), (second, other)) in enumerate(
            zip(ranking.reference, ranking.other, strict=True), 1
        )
    ]
    swaps = [
        f"{' and '.join(swap.captioners)}: {_difference(swap.reference)} under {pair.reference}, "
        f"{_difference(swap.other)} under {pair.other}"
        for swap in ranking.swaps
    ]
    note = f"Kendall's tau-b {ranking.tau_b:.2f}."
    if swaps:
        note += f" Swapped: {'; '.join(swaps)}."
    return Table("Captioners under both judges", rows, note)


def _dollars(usd: float | None) -> str:
    return "-" if usd is None else f"{usd:,.2f}"
