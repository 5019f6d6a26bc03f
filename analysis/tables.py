"""Reports of sentences and tables: as text, Markdown and LaTeX."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import partial
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.results.text_table import in_markdown

if TYPE_CHECKING:
    import pandas as pd

NONE: Final = "-"
_NUMBER: Final = re.compile(r"[-+<±$.,\d]|$")
_GAP: Final = "  "


class Part(NamedTuple):
    """Part of a report: a title, sentences, tables of cells with their titles, and notes."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[tuple[str, pd.DataFrame]] = ()
    notes: Sequence[str] = ()
    latex: str = ""
    """Tables as LaTeX, if they need more than :meth:`pandas.DataFrame.to_latex` writes."""


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    """Return formatted cells with their header; names may repeat.

    Cells are texts, counts, numbers, and records with intervals; ``None`` is a dash.
    """
    import pandas as pd

    cells = [list(map(_cell, row)) for row in rows]
    return pd.DataFrame(cells, columns=list(header), dtype=object)


def _cell(value: Any) -> str:  # noqa: ANN401 - see table
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if value is None or isinstance(value, float):
        return number(value)
    return with_interval(value, sign="+" if hasattr(value, "difference") else "")


def render(parts: Sequence[Part], form: str = "text") -> str:
    """Format parts as ``text`` for the terminal's width, as ``markdown``, or as ``latex``.

    LaTeX is for the package booktabs; sentences and notes are comments.
    """
    lines_of = {"text": _text, "markdown": _markdown, "latex": _latex}[form]
    return "\n\n".join("\n".join(lines_of(part)) for part in parts) + "\n"


def as_json(document: object) -> str:
    """Return JSON without ``NaN``: a number without a value is ``null``."""
    return json.dumps(plain(document), indent=1, ensure_ascii=False) + "\n"


def printable(text: str) -> str:
    r"""Return a text in one line, without characters that move a terminal's cursor.

    >>> printable("a\nb\x1b[2J")
    'a b?[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def number(value: float | None, digits: int = 2) -> str:
    """Format a number, or a dash if there is none."""
    return NONE if value is None or isnan(value) else f"{value:.{digits}f}"


def with_interval(found: Any, digits: int = 2, sign: str = "") -> str:  # noqa: ANN401
    """Format the ``value`` or ``difference`` of a record with its ends ``low`` and ``high``."""
    if found is None:
        return NONE
    value = found.difference if hasattr(found, "difference") else found.value
    return interval_text(value, found.low, found.high, digits, sign)


def interval_text(
    value: float, low: float | None, high: float | None, digits: int = 2, sign: str = ""
) -> str:
    """Format a value with the ends of its interval; ``sign`` is ``+`` to show that of any number.

    >>> interval_text(1.25, -0.5, 3.0, sign="+"), interval_text(1.25, None, None)
    ('+1.25 [-0.50, +3.00]', '1.25')
    """
    if isnan(value):
        return NONE
    form = f"{sign}.{digits}f"
    ends = "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{ends}"


def p_text(value: float | None) -> str:
    """Format a p-value, or a dash if there is none."""
    return "<0.001" if value is not None and value < 0.001 else number(value, 3)


def p_words(value: float) -> str:
    """Format a p-value within a sentence."""
    return f"p = {p_text(value)}".replace("= <", "<")


def plural(n: int, what: str) -> str:
    """Format a number of things.

    >>> plural(1, "video"), plural(1200, "video")
    ('1 video', '1,200 videos')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Join names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def shortened(name: str, most: int = 34) -> str:
    """Cut a name in its middle."""
    half = (most - 3) // 2
    return name if len(name) <= most else f"{name[:half]}...{name[-half:]}"


def _text(part: Part) -> Iterator[str]:
    width = shutil.get_terminal_size((100, 24)).columns
    wrap = partial(textwrap.wrap, width=width, break_on_hyphens=False)
    for sentence in (part.title, *part.sentences):
        yield from wrap(printable(sentence))
    for title, frame in part.tables:
        yield from ("", *wrap(printable(title)), *_text_of_table(frame, width))
    if part.notes:
        yield ""
    for note in part.notes:
        # Signatures have no blank to break at.
        yield from wrap(printable(note).replace("|", " | "), subsequent_indent="  ")


def _text_of_table(frame: pd.DataFrame, width: int) -> Iterator[str]:
    """Yield the lines of a table; one that is too wide continues below, with its first column."""
    columns = []
    for cells, is_number in _columns(frame):
        n = max(map(len, cells))
        columns.append([cell.rjust(n) if is_number else cell.ljust(n) for cell in cells])
    pieces = [columns[:1]]
    for column in columns[1:]:
        used = sum(len(of[0]) + len(_GAP) for of in pieces[-1])
        if len(pieces[-1]) > 1 and used + len(column[0]) > width:
            pieces.append(columns[:1])
        pieces[-1].append(column)
    for place, piece in enumerate(pieces):
        yield from [""] * bool(place)
        yield from (_GAP.join(cells).rstrip() for cells in zip(*piece, strict=True))


def _markdown(part: Part) -> Iterator[str]:
    yield f"### {in_markdown(printable(part.title))}"
    for sentence in part.sentences:
        yield from ("", in_markdown(printable(sentence)))
    for title, frame in part.tables:
        yield from ("", f"**{in_markdown(printable(title))}**", "") if title else ("",)
        columns = [
            [in_markdown(cells[0]), "---:" if is_number else ":---", *map(in_markdown, cells[1:])]
            for cells, is_number in _columns(frame)
        ]
        yield from (f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True))
    if part.notes:
        yield ""
    yield from (f"- {in_markdown(printable(note))}" for note in part.notes)


def _latex(part: Part) -> Iterator[str]:
    yield from (f"% {printable(line)}" for line in (part.title, *part.sentences))
    if part.latex:
        yield part.latex
    for title, frame in part.tables if not part.latex else ():
        columns = _columns(frame)
        rows = zip(*(cells[1:] for cells, _ in columns), strict=True)
        yield table([cells[0] for cells, _ in columns], list(rows)).to_latex(
            index=False, escape=True, position="htbp",
            column_format="".join("r" if is_number else "l" for _, is_number in columns),
            caption=in_latex(printable(title or part.title)),
        ).rstrip()  # fmt: skip
    yield from (f"% {printable(note)}" for note in part.notes)


def _columns(frame: pd.DataFrame) -> list[tuple[list[str], bool]]:
    """Return the cells of each column below its name, and if they are numbers, aligned right."""
    rows = [list(map(str, frame.columns)), *frame.astype(str).to_numpy().tolist()]
    columns = [[printable(cell) for cell in cells] for cells in zip(*rows, strict=True)]
    return [
        (cells, place > 0 and all(_NUMBER.match(cell) for cell in cells[1:]))
        for place, cells in enumerate(columns)
    ]


def in_latex(text: str) -> str:
    r"""Return a text that LaTeX prints as it is.

    >>> in_latex("a_b: 50%")
    'a\\_b: 50\\%'
    """
    text = re.sub(r"\\", r"\\textbackslash ", text)
    return re.sub(r"([&%$#_{}])", r"\\\1", text).replace("±", r"$\pm$")


def plain(value: Any) -> Any:  # noqa: ANN401 - of JSON's types
    """Return a value of JSON's types: texts fit UTF-8, a number without a value is ``None``."""
    if isinstance(value, Mapping):
        return {whole(str(name)): plain(of) for name, of in value.items()}
    if isinstance(value, list | tuple):
        return [plain(of) for of in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, str):
        return whole(value)
    return None if isinstance(value, float) and not isfinite(value) else value
