"""Tables as text, for logs and the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[str]], *, n_left: int | None = None) -> list[str]:
    """Return the lines of a table, without blanks at their ends.

    The first ``n_left`` columns (default: all) are aligned left.

    >>> text_table([("task", "calls"), ("vdc", "8")], n_left=1)
    ['task  calls', 'vdc       8']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    n_words = len(widths) if n_left is None else n_left
    return [
        "  ".join(
            cell.ljust(width) if index < n_words else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def in_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)
