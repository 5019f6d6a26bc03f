"""A breakdown as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.measured import BESIDE, CI_HIGH, CI_LOW, CI_NOTE, Figure
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

Figures = Mapping[str, Figure]
"""What a breakdown holds of a group."""
Sections = Mapping[str, Mapping[str, Figures]]

N_QUESTIONS: Final = "n_questions"
N_UNSCORED: Final = "n_unscored"
_COUNTS: Final = {N_QUESTIONS: "questions", N_UNSCORED: "unscored"}
_MOST_ROWS: Final = 40
"""Groups of a section that are shown; the file holds all."""
_NAME_WIDTH: Final = 33
_ONE_DIGIT: Final = 10.0
"""Ends of intervals from here on are shown with one digit behind the point."""


def table_of(breakdown: Sections) -> str:
    """A breakdown as text, a line for each group, metrics with their intervals.

    >>> figures = {"ar": 50.0, "ar_ci_low": 41.25, "ar_ci_high": 58.0, "ir": None}
    >>> counts = {"n_questions": 2, "n_unscored": 0}
    >>> print(table_of({"overall": {"all": {**figures, **counts}}}))
    overall                  ar  ir  questions  unscored
      all    50.00 [41.2, 58.0]   -          2         0
    [low, high]: 95% interval over videos
    """
    return "\n".join(_lines(breakdown))


def count(figures: Figures, name: str) -> int:
    """One of the counts of a group."""
    n = figures[name]
    return n if isinstance(n, int) else 0


def _lines(breakdown: Sections) -> Iterator[str]:
    shown = {
        section: dict(list(groups.items())[:_MOST_ROWS])
        for section, groups in breakdown.items()
        if groups
    }
    tables = {section: _rows(section, groups) for section, groups in shown.items()}
    every = list(chain.from_iterable(tables.values()))
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    widths[:1] = [min(_NAME_WIDTH, width) for width in widths[:1]]
    for section, rows in tables.items():
        yield from text_table(rows, n_left=1, widths=widths)
        more = len(breakdown[section]) - len(shown[section])
        if more:
            yield f"  and {more:,} more"
    yield from _footer([figures for groups in shown.values() for figures in groups.values()])


def _rows(section: str, groups: Mapping[str, Figures]) -> list[list[str]]:
    """A section's header and lines."""
    first = next(iter(groups.values()))
    metrics = [name for name in first if name not in _COUNTS and not name.endswith(BESIDE)]
    columns = [
        [f"  {name}" for name in groups],
        *(_column(metric, list(groups.values())) for metric in metrics),
        *([f"{count(figures, name):,}" for figures in groups.values()] for name in _COUNTS),
    ]
    return [[section, *metrics, *_COUNTS.values()], *map(list, zip(*columns, strict=True))]


def _column(metric: str, groups: list[Figures]) -> list[str]:
    """A metric with its interval, of each group."""
    highs = [_number(figures, f"{metric}_{CI_HIGH}") or 0.0 for figures in groups]
    digits = 1 if max(highs) >= _ONE_DIGIT else 2
    return [_cell(metric, figures, digits) for figures in groups]


def _cell(metric: str, figures: Figures, digits: int) -> str:
    value = _number(figures, metric)
    if value is None:
        return "-"
    low, high = (_number(figures, f"{metric}_{end}") for end in (CI_LOW, CI_HIGH))
    if low is None or high is None:
        return f"{value:.2f}"
    guess = "*" if _note(metric, figures) else ""
    return f"{value:.2f} [{low:.{digits}f}, {high:.{digits}f}]{guess}"


def _footer(groups: list[Figures]) -> Iterator[str]:
    """What the marks of the table mean, those that are in it."""
    has_ends, has_none, is_guess = False, False, False
    for figures in groups:
        for name in figures:
            if name.endswith(f"_{CI_LOW}"):
                metric = name.removesuffix(f"_{CI_LOW}")
                noted = bool(_note(metric, figures))
                has_ends |= figures[name] is not None
                is_guess |= figures[name] is not None and noted
                has_none |= figures[name] is None and noted
    if has_ends or has_none:
        yield "; ".join([
            "[low, high]: 95% interval over videos",
            *(["none where fewer than 2 count or all are alike"] if has_none else []),
            *(["*: of few videos, a rough guess"] if is_guess else []),
        ])  # fmt: skip


def _number(figures: Figures, name: str) -> float | None:
    value = figures.get(name)
    return value if isinstance(value, int | float) else None


def _note(metric: str, figures: Figures) -> Figure:
    return figures.get(f"{metric}_{CI_NOTE}")
