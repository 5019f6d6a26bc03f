"""A report of titles, sentences and tables: as text, Markdown and LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

WIDTH: Final = 100
"""Columns of a text at most."""
_GAP: Final = 2
_LATEX: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$",
}  # fmt: skip
_MINUS: Final = re.compile(r"(?<![\w.)}-])-(?=\d)")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells with a heading, as every format shows them."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_left: int = 1
    """Columns of words, from the left."""
    title: str = ""
    above: Sequence[tuple[str, int]] = ()
    """Headings that stand over several columns, each with their number."""
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of cells that are set in bold where that can be."""


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a report: a title, sentences, tables, and remarks behind them."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()


def as_text(parts: Sequence[Part]) -> str:
    """Parts as lines of at most 100 columns; a table that is wider continues below itself."""
    return _joined(map(_text_of_part, map(_printable, parts)))


def as_markdown(parts: Sequence[Part]) -> str:
    """Parts as Markdown."""
    return _joined(map(_markdown_of_part, map(_printable, parts)))


def as_latex(parts: Sequence[Part]) -> str:
    r"""Parts as LaTeX for the package booktabs; sentences are comments but for a table's caption.

    >>> print(escaped("a_b: 50% -1.5"))
    a\_b: 50\% $-$1.5
    """
    return _joined(map(_latex_of_part, map(_printable, parts)))


RENDERERS: Final[Mapping[str, Callable[[Sequence[Part]], str]]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
}


def printable(text: str) -> str:
    r"""A text in one line, without what moves a terminal's cursor or ends a comment.

    Names of folders, and what datasets hold, are others' words.

    >>> printable("a\nb\x1b[2J")
    'a b?[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def escaped(text: str) -> str:
    """A text as LaTeX prints it."""
    return _MINUS.sub("$-$", "".join(_LATEX.get(char, char) for char in text))


def _printable(part: Part) -> Part:
    """A part whose texts are :func:`printable`."""
    return Part(
        printable(part.title),
        [printable(sentence) for sentence in part.sentences],
        [
            replace(
                table,
                header=[printable(cell) for cell in table.header],
                rows=[[printable(cell) for cell in row] for row in table.rows],
                title=printable(table.title),
            )
            for table in part.tables
        ],
        [printable(remark) for remark in part.remarks],
    )


def _joined(blocks: Iterator[list[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _text_of_part(part: Part) -> list[str]:
    lines = textwrap.wrap(part.title, WIDTH, break_on_hyphens=False)
    for sentence in part.sentences:
        lines += textwrap.wrap(sentence, WIDTH, break_on_hyphens=False)
    for table in part.tables:
        lines += ["", *textwrap.wrap(table.title, WIDTH, break_on_hyphens=False)]
        lines += _text_of_table(table)
    if part.remarks:
        lines.append("")
    for remark in part.remarks:
        # A signature has a bar between its fields, and no other place to be broken at.
        words = remark.replace("|", " | ")
        lines += textwrap.wrap(
            words, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    return lines


def _text_of_table(table: Table) -> list[str]:
    """The table, its columns in several pieces where they have no room beside each other."""
    rows = [list(table.header), *map(list, table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    over = _over(table)
    for start, (name, n) in over.items():
        # A heading over one column must fit; over several, it may reach into the next.
        widths[start] = max(widths[start], len(name) - (n - 1) * (min(widths) + _GAP))
    first = sum(width + _GAP for width in widths[: table.n_left])
    pieces: list[list[int]] = [[]]
    used = first
    for column in range(table.n_left, len(widths)):
        if pieces[-1] and used + widths[column] > WIDTH:
            pieces.append([])
            used = first
        pieces[-1].append(column)
        used += widths[column] + _GAP
    lines: list[str] = []
    for piece in pieces:
        columns = [*range(table.n_left), *piece]
        lines += [""] if lines else []
        lines += [_line_over(over, columns, widths)] if over else []
        lines += text_table(
            [[row[c] for c in columns] for row in rows],
            n_left=table.n_left,
            widths=[widths[c] for c in columns],
        )
    return lines


def _over(table: Table) -> dict[int, tuple[str, int]]:
    """First column of each heading that stands over several, with it and their number."""
    found, start = {}, 0
    for name, n in table.above:
        if name:
            found[start] = name, n
        start += n
    return found


def _line_over(
    over: Mapping[int, tuple[str, int]], columns: Sequence[int], widths: Sequence[int]
) -> str:
    """The headings over these columns, each from where its first column here begins."""
    starts: dict[int, int] = {}
    at = 0
    for column in columns:
        start = next((s for s, (_, n) in over.items() if s <= column < s + n), None)
        if start is not None:
            starts.setdefault(start, at)
        at += widths[column] + _GAP
    line = ""
    ends = [*list(starts.values())[1:], WIDTH + _GAP]
    for (start, begin), end in zip(starts.items(), ends, strict=True):
        name, room = over[start][0], end - _GAP - begin
        cut = name if len(name) <= room else f"{name[: room - 3]}..."
        line = f"{line.ljust(begin)}{cut}"
    return line


def _markdown_of_part(part: Part) -> list[str]:
    lines = [f"### {in_markdown(part.title)}", ""]
    for sentence in part.sentences:
        lines += [in_markdown(sentence), ""]
    for table in part.tables:
        lines += [f"**{in_markdown(table.title)}**", ""] if table.title else []
        lines += [*_markdown_of_table(table), ""]
    lines += [f"- {in_markdown(remark)}" for remark in part.remarks]
    return lines if part.remarks else lines[:-1]


def _markdown_of_table(table: Table) -> Iterator[str]:
    over = [name for name, n in table.above for _ in range(n)] or [""] * len(table.header)
    names = (" ".join(filter(None, pair)) for pair in zip(over, table.header, strict=True))
    yield _markdown_row([in_markdown(name) for name in names])
    yield _markdown_row([":---" if c < table.n_left else "---:" for c in range(len(table.header))])
    for r, row in enumerate(table.rows):
        yield _markdown_row(
            [
                f"**{in_markdown(cell)}**" if (r, c) in table.best else in_markdown(cell)
                for c, cell in enumerate(row)
            ]
        )


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def in_markdown(text: str) -> str:
    r"""A text that Markdown shows as it is.

    >>> in_markdown("a_b|c*")
    'a\\_b\\|c\\*'
    """
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def _latex_of_part(part: Part) -> list[str]:
    lines = [f"% {line}" for line in (part.title, *part.sentences)]
    for table in part.tables:
        lines += _latex_of_table(table, table.title or part.title)
    return [*lines, *(f"% {remark}" for remark in part.remarks)]


def _latex_of_table(table: Table, caption: str) -> Iterator[str]:
    n_columns = len(table.header)
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{escaped(caption)}}}"
    yield rf"\begin{{tabular}}{{{'l' * table.n_left}{'r' * (n_columns - table.n_left)}}}"
    yield r"\toprule"
    if table.above:
        yield (
            " & ".join(
                rf"\multicolumn{{{n}}}{{c}}{{{escaped(name)}}}" if n > 1 else escaped(name)
                for name, n in table.above
            )
            + r" \\"
        )
    yield " & ".join(map(escaped, table.header)) + r" \\"
    yield r"\midrule"
    for r, row in enumerate(table.rows):
        yield (
            " & ".join(
                rf"\textbf{{{escaped(cell)}}}" if (r, c) in table.best else escaped(cell)
                for c, cell in enumerate(row)
            )
            + r" \\"
        )
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"
