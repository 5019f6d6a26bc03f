"""Words on a screen of limited width."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Final

WIDTH: Final = 100
"""Columns at most; a path that is longer has a line of its own."""

_HANG: Final = 10
"""Columns by which later lines are indented at most."""


def wrapped(label: str, words: str, width: int = WIDTH) -> list[str]:
    """Words behind their label, broken between words, later lines under the first.

    >>> wrapped("calls", "12 to a, 3 to b", 16)
    ['calls: 12 to a,', '       3 to b']
    """
    head = f"{label}: "
    return textwrap.wrap(
        " ".join(words.split()),
        width,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), _HANG),
        break_on_hyphens=False,
    )


def counted(numbers: Mapping[str, int]) -> str:
    """Causes with their numbers, the most frequent first.

    >>> counted({"timeout": 1, "HTTP 429": 1200})
    '1,200 x HTTP 429, 1 x timeout'
    """
    causes = sorted(numbers.items(), key=lambda cause: -cause[1])
    return ", ".join(f"{n:,} x {cause}" for cause, n in causes)
