"""The layout of a paper's table of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Numbers of one group of questions, in one column each or in one cell together."""

    heading: str
    """What stands over the column or columns."""
    above: str = ""
    """What stands over the headings of several columns without metrics of their own."""
    group: tuple[str, str] | None = None
    """Section of the breakdown and the group in it; ``None`` for all questions."""
    name: str = ""
    """The task or group that they are of; empty for that of the table."""
    metrics: Sequence[tuple[str, str]] = ()
    """Metrics with what stands over them; empty for that of the block."""
    is_joined: bool = False
    """Whether they stand in one cell, a slash between them."""
    has_deviation: bool = False
    """Whether the first has its deviation over judge runs behind it, where there are several."""
    is_optional: bool = False
    """Whether it is left out where no captioner has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table with a row for each captioner."""

    source: str
    """Which paper's table it is."""
    names: Sequence[str]
    """Tasks and groups that it may be of: the first that the captioners have."""
    columns: Sequence[Column]
    blocks: Sequence[tuple[str, str]] = ()
    """Metrics that each have rows of their own, with what stands before these; empty where every
    captioner has one row."""
    note: str = ""
    """What a reader must know before setting other rows of the paper beside these."""
    pieces: Sequence[int] = ()
    """Columns of each piece where the paper breaks the table; empty where it is in one piece."""
    decimals: int = 2
    published_judge: str = ""
    """The judge behind the paper's own rows, which the benchmark's README has."""

    def columns_of_page(self) -> list[Column]:
        """Return the columns of the paper's rows in the benchmark's README."""
        return [column for column in self.columns if not column.is_optional]
