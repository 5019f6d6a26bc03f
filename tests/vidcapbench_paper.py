"""The tables of VidCapBench's paper, read from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import SHARED

PAPER = SHARED / "papers" / "000_278cce88e5c9a5a7.txt"
HALF = 0.05
"""Half a unit of the last printed digit."""

_CELL = re.compile(
    r"(\d+\.\d)\s*(?:\(±plus-or-minus\\pm± \d\.\d\)\s*)?"
    r"/\s*(\d+\.\d)\s*/\s*(\d+\.\d)\s*/\s*(\d+\.\d)(?!\d)"
)


@dataclass(frozen=True)
class Cell:
    """One printed ``Acc / Pre / Cov / Con``."""

    acc: float
    pre: float
    cov: float
    con: float

    def tokens(self) -> tuple[float, float]:
        """Least and largest mean number of tokens that give this ``con``."""
        return (
            100 * (self.acc - HALF) / (self.con + HALF),
            100 * (self.acc + HALF) / (self.con - HALF),
        )


def text() -> str:
    """The paper's text; tests that need it skip without."""
    if not PAPER.is_file():
        pytest.skip(f"no text of the paper at {PAPER}")
    return Path(PAPER).read_text(encoding="utf-8")


def rows(n_cells: int) -> list[tuple[str, list[Cell]]]:
    """Every row with so many cells: its first words, and its cells."""
    found = []
    for line in text().splitlines():
        # What stands after the last cell (VDC's columns) is no cell of four.
        cells = [Cell(*map(float, match.groups())) for match in _CELL.finditer(line)]
        if len(cells) == n_cells:
            found.append((line[:28], cells))
    return found


def formats() -> list[tuple[str, Cell, float]]:
    """Table 5: model and format, its numbers, its tokens."""
    pattern = re.compile(
        r"^(.*(?:MiraData|DREAM-1K|Vript|Hunyuan)) (\d+\.\d) (\d+\.\d) (\d+\.\d)\s+(\d+\.\d)"
        r" (\d+\.\d)$",
        re.MULTILINE,
    )
    return [
        (match[1], Cell(*map(float, match.groups()[1:5])), float(match[6]))
        for match in pattern.finditer(text())
    ]
