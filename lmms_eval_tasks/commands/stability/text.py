"""The stability of a task or a group as tables, for a screen or for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final, Literal

from lmms_eval_captions.lmms_eval_tasks.commands.stability.document import Document
from lmms_eval_captions.lmms_eval_tasks.commands.stability.notes import judges_of
from lmms_eval_captions.lmms_eval_tasks.commands.stability.shares import Row, Share
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

Table = list[tuple[str, ...]]
"""Rows of cells, the header first; the first column holds words."""
_NONE: Final = "-"
_COARSE: Final = 100.0
"""Highest value of metrics that are shown with two digits behind the point, not with four."""


def lines_of(document: Document, form: Literal["text", "markdown"]) -> Iterator[str]:
    """The lines of a task or a group."""
    is_text = form == "text"
    opinions = document.opinions
    n_videos = len({video for _, video, _, _ in opinions.asked})
    head = (
        f"{opinions.name}: {len(opinions.asked):,} questions about {n_videos:,} videos, "
        f"{opinions.n_runs} judge runs, judged by {', '.join(judges_of(opinions))}"
    )
    yield head if is_text else f"### {head}"
    for title, table in _tables(document):
        yield ""
        yield title
        if not is_text:
            yield ""
        yield from text_table(table, n_left=1) if is_text else markdown_table(table)
    if document.notes:
        yield ""
    for note in document.notes:
        yield f"note: {note}" if is_text else f"- {note}"


def markdown_table(table: Sequence[Sequence[str]]) -> Iterator[str]:
    r"""A table in Markdown; the first column is aligned left, the others right.

    >>> print(*markdown_table([("a", "b"), ("x|y", "1")]), sep=chr(10))
    | a | b |
    |:--|--:|
    | x\|y | 1 |
    """
    for place, row in enumerate(table):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
        if place == 0:
            yield f"|:--{'|--:' * (len(row) - 1)}|"


def _tables(document: Document) -> Iterator[tuple[str, Table]]:
    n_runs = document.opinions.n_runs
    yield (
        f"Questions with the same verdict in all {n_runs} judge runs, %, with 95 % intervals "
        "clustered by video:",
        _overall(document),
    )
    if len(document.rows.rows) > 1:
        yield "The same by group:", _groups(document)
    if sum(document.times):
        yield "For how many captioners a question has it (VidCapBench, Table 8):", _times(document)
    if document.selected:
        yield "Scores over all questions and over the stable ones (Table 2):", _scores(document)
    if document.noises:
        yield (
            "Noise floor: two captioners equally good to this judge differ by less in 95 % of "
            "cases (same videos):",
            _noise(document),
        )


def _overall(document: Document) -> Table:
    row = document.rows.rows[0]
    shares = list(zip(document.opinions.captioners, row.captioners, strict=True))
    if len(shares) > 1:
        shares.append((f"all {len(shares)} captioners", row.together))
    return [
        ("captions of", "same", "95 % interval", "questions", "not known"),
        *(
            (
                name,
                _percent(share),
                _ends(share),
                f"{share.n_known:,}",
                f"{row.n_questions - share.n_known:,}",
            )
            for name, share in shares
        ),
    ]


def _groups(document: Document) -> Table:
    captioners = document.opinions.captioners
    is_one = len(captioners) == 1
    columns = captioners if is_one else (*captioners, "all")
    table: Table = [
        ("", *columns, "95 % interval" if is_one else "95 % interval of all", "questions")
    ]
    section = ""
    for row in document.rows.rows[1:]:
        if row.section != section:
            section = row.section
            table.append((section, *[""] * (len(table[0]) - 1)))
        table.append(_group(row, is_one=is_one))
        if document.rows.n_others.get(section) and _is_last(document, row):
            words = f"  and {document.rows.n_others[section]:,} more"
            table.append((words, *[""] * (len(table[0]) - 1)))
    return table


def _is_last(document: Document, row: Row) -> bool:
    return [other for other in document.rows.rows if other.section == row.section][-1] is row


def _group(row: Row, *, is_one: bool) -> tuple[str, ...]:
    shares = row.captioners if is_one else (*row.captioners, row.together)
    return (f"  {row.name}", *map(_percent, shares), _ends(shares[-1]), f"{row.n_questions:,}")


def _times(document: Document) -> Table:
    total = sum(document.times)
    n_captioners = len(document.opinions.captioners)
    return [
        ("Consistent Times", "# Samples", "Proportion"),
        *(
            (str(n_captioners - place), f"{n:,}", f"{100 * n / total:.0f}%")
            for place, n in enumerate(document.times)
        ),
        ("Total", f"{total:,}", "100%"),
    ]


def _scores(document: Document) -> Table:
    metrics = list(dict.fromkeys(score.metric for score in document.selected))
    table: Table = [("", "questions", *metrics)]
    for captioner in document.opinions.captioners:
        of_one = [score for score in document.selected if score.captioner == captioner]
        full = (_number(document, score.metric, score.full) for score in of_one)
        stable = (_number(document, score.metric, score.stable) for score in of_one)
        table += [(captioner, "full", *full), ("", "stable", *stable)]
    return table


def _noise(document: Document) -> Table:
    runs = document.noises[0].floors
    return [
        ("", *(f"{n} run{'' if n == 1 else 's'}" for n in runs), "largest seen"),
        *(
            (
                noise.metric,
                *(_number(document, noise.metric, floor) for floor in noise.floors.values()),
                _NONE
                if document.opinions.n_runs < 2
                else _number(document, noise.metric, noise.largest_seen),
            )
            for noise in document.noises
        ),
    ]


def _number(document: Document, metric: str, value: float) -> str:
    """A value of a metric."""
    n_places = 2 if document.opinions.benchmark.metrics[metric].highest >= _COARSE else 4
    return _NONE if isnan(value) else f"{value:.{n_places}f}"


def _percent(share: Share) -> str:
    return _NONE if isnan(share.interval.value) else f"{share.interval.value:.1f}"


def _ends(share: Share) -> str:
    low, high = share.interval.low, share.interval.high
    return _NONE if low is None or high is None else f"{low:.1f} to {high:.1f}"
