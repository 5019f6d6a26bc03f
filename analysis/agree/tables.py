"""Findings as a report of tables, the conclusions last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Literal

from lmms_eval_captions.analysis.agree.conclusions import shown_interval
from lmms_eval_captions.analysis.agree.findings import (
    Agreement,
    Confusion,
    Findings,
    JudgeFindings,
    Leniency,
    PairFindings,
    Ranking,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.table_formats import (
    RENDERERS,
    Part,
    Table,
    in_markdown,
    printable,
)
from lmms_eval_captions.metrics.clusters import Slope
from lmms_eval_captions.metrics.paired import Difference

Form = Literal["text", "markdown", "latex"]


def report(findings: Sequence[Findings], form: Form) -> str:
    """Everything that was found out; of each benchmark last a line for each judge."""
    blocks = []
    for found in findings:
        lines = (_line(printable(conclusion), form) for conclusion in found.conclusions)
        blocks.append(f"{RENDERERS[form](list(_parts(found)))}\n{''.join(lines)}")
    return "\n".join(blocks)


def _line(conclusion: str, form: Form) -> str:
    """A conclusion as one line, however long, which programs find by the judge's name."""
    if form == "markdown":
        return f"- {in_markdown(conclusion)}\n"
    return f"{'% ' if form == 'latex' else ''}{conclusion}\n"


def _parts(found: Findings) -> Iterator[Part]:
    pairs: list[tuple[str, Agreement]] = []
    for pair in found.pairs:
        pairs += [(f"{pair.reference} / {pair.other}", each) for each in pair.agreements]
    pairs += [(f"{first} / {second}", each) for first, second, each in found.others]
    pairs += [("all judges together", each) for each in found.together]
    for judge in found.judges:
        pairs += [(f"{judge.name}: its {judge.n_runs} runs", each) for each in judge.own_runs]
    yield Part(
        f"{found.benchmark}: {', '.join(found.tasks)}",
        [f"Captions of {', '.join(found.captioners)}. Intervals are of 95 %, over videos."],
        [_judges(found.judges), *_agreements(pairs)],
        ["Calls and dollars are those of whole runs; the price is that of paying for every reply."],
    )
    for pair in found.pairs:
        yield _of_pair(pair)


def _judges(judges: Sequence[JudgeFindings]) -> Table:
    rows = [
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
    header = ("judge", "captions", "runs", "calls", "unpaid replies", "USD", "per 1,000 verdicts")
    return Table(header, rows)


def _agreements(pairs: Sequence[tuple[str, Agreement]]) -> Iterator[Table]:
    """Of labels, and of numbers."""
    labels = [(who, each) for who, each in pairs if each.ac1 is not None]
    if labels:
        rows = [
            (
                who,
                f"{each.n_units:,}",
                "-" if each.same is None else f"{100 * each.same:.1f} %",
                shown_interval(each.kappa),
                shown_interval(each.ac1),
                shown_interval(each.alpha),
            )
            for who, each in labels
        ]
        header = ("verdicts", "n", "same", "Cohen's kappa", "Gwet's AC1", "Krippendorff's alpha")
        yield Table(header, rows, title="Agreement")
    numbers = [(who, each) for who, each in pairs if each.ac1 is None]
    if numbers:
        of_numbers = [
            (
                who,
                each.measure,
                f"{each.n_units:,}",
                shown_interval(each.alpha),
                shown_interval(each.correlation),
            )
            for who, each in numbers
        ]
        columns = ("numbers", "", "n", "Krippendorff's alpha", "Pearson's r")
        yield Table(columns, of_numbers, n_left=2, title="Agreement")


def _of_pair(pair: PairFindings) -> Part:
    tables = list(_leniency(pair))
    if pair.confusion is not None:
        tables.append(_confusion(pair.confusion, pair))
    if pair.ranking is not None:
        tables.append(_ranking(pair.ranking, pair))
    return Part(f"{pair.other} beside {pair.reference}", (), tables, list(_remarks(pair)))


def _remarks(pair: PairFindings) -> Iterator[str]:
    n_captioners = len(pair.captioners)
    yield (
        f"{pair.n_captions:,} captions of {pair.n_videos:,} videos by {n_captioners} "
        f"captioner{'s' if n_captioners > 1 else ''}"
    )
    if pair.left_out:
        left_out = "; ".join(f"{n:,} {what}" for what, n in pair.left_out.items())
        yield f"left out: {left_out}"
    if any(row.p_holm is not None for row in pair.leniency):
        yield "the p of groups is Holm's, over the groups of a table"
    if pair.n_groups_left_out:
        yield f"{pair.n_groups_left_out:,} smaller groups are not looked at"
    if pair.slope is not None:
        yield _slope(pair.slope, pair)
    if pair.ranking is not None:
        yield f"Kendall's tau-b of the captioners' scores: {pair.ranking.tau_b:.2f}"
        for swap in pair.ranking.swaps:
            yield (
                f"{swap.captioners[0]} less {swap.captioners[1]}: {_difference(swap.reference)} "
                f"under {pair.reference}, {_difference(swap.other)} under {pair.other}"
            )


def _leniency(pair: PairFindings) -> Iterator[Table]:
    """A table for all captions, and one for each section of groups."""
    for section in dict.fromkeys(row.section for row in pair.leniency):
        rows = [row for row in pair.leniency if row.section == section]
        metrics = {row.metric for row in rows}
        is_all = section == ALL[0]
        title = "Who is more lenient" if is_all else f"By {section}"
        if len(metrics) == 1:
            title = f"{title}: {rows[0].metric}"
        yield Table(
            ("", "n", "agreement", pair.reference, pair.other, "difference", "p"),
            [_leniency_row(row, is_several=len(metrics) > 1) for row in rows],
            title=title,
        )


def _leniency_row(row: Leniency, *, is_several: bool) -> tuple[str, ...]:
    is_all = row.section == ALL[0]
    name = row.metric if is_all else row.group
    if is_several and not is_all:
        name = f"{name} {row.metric}"
    p_value = row.difference.p_value if is_all else row.p_holm
    return (
        name,
        "-" if row.n_units is None else f"{row.n_units:,}",
        shown_interval(row.agreement),
        f"{row.reference:.2f}",
        f"{row.other:.2f}",
        _difference(row.difference),
        "-" if p_value is None else _p_value(p_value),
    )


def _confusion(confusion: Confusion, pair: PairFindings) -> Table:
    rows = [
        (label, *(f"{n:,}" for n in counts))
        for label, counts in zip(confusion.labels, confusion.counts, strict=True)
    ]
    title = f"Verdicts of {pair.reference} (rows) and {pair.other} (columns)"
    return Table(("", *confusion.labels), rows, title=title)


def _ranking(ranking: Ranking, pair: PairFindings) -> Table:
    header = ("rank", pair.reference, ranking.metric, pair.other, ranking.metric)
    rows = [
        (str(place), first, f"{score:.2f}", second, f"{other:.2f}")
        for place, ((first, score), (second, other)) in enumerate(
            zip(ranking.reference, ranking.other, strict=True), 1
        )
    ]
    return Table(header, rows, n_left=2, title="Captioners under both judges")


def _difference(found: Difference) -> str:
    if found.low is None or found.high is None:
        return f"{found.difference:+.2f}"
    return f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _slope(slope: Slope, pair: PairFindings) -> str:
    if isnan(slope.slope):
        return "all captions have the same number of words"
    ends = "" if slope.low is None else f" [{slope.low:+.2f}, {slope.high:+.2f}]"
    return (
        f"for 100 words more in a caption, {pair.other} gives {slope.slope:+.2f}{ends} points "
        f"more than {pair.reference}"
    )


def _dollars(usd: float | None) -> str:
    return "-" if usd is None else f"{usd:,.2f}"
