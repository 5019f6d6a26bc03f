"""Tables of the page that are there without its script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NOTHING: Final = "–"
"""Stands where there is no number."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its header."""

    text: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a row and a column."""

    text: str
    kind: str = ""
    """Class of style: ``better``, ``worse``, ``tied``, ``soft`` or ``main``."""
    questions: str = ""
    """The questions that it counts, as JSON: section, group, kind of verdict, captioner's place."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page; rows may have fewer cells than there are columns."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    """What must be known of it, a sentence each."""


def cells(*texts: str) -> list[Cell]:
    """Plain cells."""
    return [Cell(text) for text in texts]


def share(n: int, of: int) -> str:
    """A number and its share of all.

    >>> share(3, 1200), share(0, 0)
    ('3 (0.2%)', '0')
    """
    return f"{n:,} ({n / of:.1%})" if of else f"{n:,}"


def plural(n: int, what: str) -> str:
    """A number of things.

    >>> plural(1, "video"), plural(1200, "video")
    ('1 video', '1,200 videos')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"
