"""Bars, forest plots and dots for a paper, out of the numbers of the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_data import (
    Scale,
    ShownDifference,
    values_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_style import (
    HIGHEST,
    INK,
    POINTS,
    SMALL,
    SOFT,
    add_legend,
    axes_within,
    empty_figure,
    legend_height,
    look_of,
    round_above,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_text import shown, width_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section
from lmms_eval_captions.lmms_eval_tasks.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL: Final = 92.0
"""Points that the name of a group beside its bars takes at most."""
_BAR, _BETWEEN, _THINNEST = 0.13, 0.09, 0.1
"""Inches: a bar, the room between groups, and the bar that a number has room at."""
_BOTTOM: Final = 0.42
"""Inches for the scale and its name."""


def draw_bars(section: Section, scale: Scale, names: Sequence[str]) -> Figure:
    """Bars with whiskers, a group under another."""
    rows = values_of(section, scale.metric)
    ends = [end for row in rows for m in row if m is not None for end in (_value(m), m.high or 0.0)]
    top = round_above(max(ends, default=0.0), scale.highest)
    n_groups, n_bars = len(section.groups), len(names)
    pitch = min(_BAR * n_bars + _BETWEEN, HIGHEST / n_groups)
    thick = (pitch - min(_BETWEEN, pitch / 4)) / n_bars / pitch
    legend = legend_height(names)
    figure = empty_figure(n_groups * pitch + _BOTTOM + legend)
    axes = _beside_names(figure, section.groups, legend, 0.36)
    axes.set_xlim(0, top)
    handles = []
    for place, row in enumerate(rows):
        look = look_of(place)
        places = [
            (group + (place - (n_bars - 1) / 2) * thick, m)
            for group, m in enumerate(row)
            if m is not None
        ]
        bars = axes.barh(
            [y for y, _ in places], [_value(m) for _, m in places], 0.9 * thick, color=look.colour,
            alpha=0.75, hatch=look.hatch, edgecolor="white", linewidth=0,
        )  # fmt: skip
        bars.set_label(names[place])
        handles.append(bars)
        for y, m in places:
            _whisker(axes, y, m.low, m.high, INK)
            if thick * pitch >= _THINNEST:
                end = _value(m) if m.high is None else max(_value(m), m.high)
                _beside(axes, end, y, f"{_value(m):.2f}")
    axes.set_xlabel(scale.label)
    add_legend(figure, handles, names)
    return figure


_OUTCOMES: Final = {
    "better": ("#009E73", "^", "#009E73"),
    "worse": ("#D55E00", "v", "#D55E00"),
    "tied": (SOFT, "o", SOFT),
    "unknown": (SOFT, "o", "white"),
}
"""Colour, marker and what fills it."""


def draw_differences(rows: Sequence[ShownDifference], label: str) -> Figure:
    """A forest plot of paired differences; ties are grey."""
    pitch = min(0.2, HIGHEST / len(rows))
    figure = empty_figure(len(rows) * pitch + _BOTTOM + 0.06)
    axes = _beside_names(figure, [row.group for row in rows], 0.06, 0.46)
    axes.axvline(0, color=INK, linewidth=0.6)
    for y, row in enumerate(rows):
        colour, marker, fill = _OUTCOMES[row.outcome]
        _whisker(axes, y, row.low, row.high, colour)
        axes.plot(
            [row.difference], [y], marker=marker, markersize=4.5, markeredgecolor=colour,
            markerfacecolor=fill, linestyle="none", clip_on=False,
        )  # fmt: skip
    reach = max(
        abs(end) for row in rows for end in (row.difference, row.low, row.high) if end is not None
    )
    reach = round_above(reach, 10 * reach or 1.0)
    axes.set_xlim(-reach, reach)
    for y, row in enumerate(rows):
        _beside(axes, reach, y, f"{row.difference:+.2f}")
    axes.set_xlabel(label)
    return figure


def draw_lengths(
    dots: Sequence[Sequence[tuple[float, float]]], what: str, scale: Scale, names: Sequence[str]
) -> Figure:
    """A dot for each caption: its length, and its own score.

    Args:
        dots: Of each captioner.
        what: Measure of the length.
        scale: The metric.
        names: The captioners'.
    """
    legend = legend_height(names)
    figure = empty_figure(2.2 + legend)
    axes = axes_within(figure, left=0.48, right=0.1, bottom=_BOTTOM, top=legend + 0.04)
    size = 2.0 if sum(map(len, dots)) > 1000 else 3.0
    handles = []
    for place, of_captioner in enumerate(dots):
        look = look_of(place)
        handles += axes.plot(
            [x for x, _ in of_captioner], [y for _, y in of_captioner], linestyle="none",
            marker=look.marker, color=look.colour, markersize=size, alpha=0.5, markeredgewidth=0,
            clip_on=False,
        )  # fmt: skip
    longest = max((x for of_captioner in dots for x, _ in of_captioner), default=0.0)
    largest = max((y for of_captioner in dots for _, y in of_captioner), default=0.0)
    axes.set_xlim(0, longest * 1.03 or 1.0)
    axes.set_ylim(0, round_above(largest, scale.highest))
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"{what} of a caption")
    axes.set_ylabel(scale.label)
    add_legend(figure, handles, names)
    return figure


def _beside_names(figure: Figure, groups: Sequence[str], top: float, right: float) -> Axes:
    """Axes with a name on the left of each row, the first on top."""
    labels = [shown(group, _LABEL) for group in groups]
    left = max(map(width_of, labels)) / POINTS + 0.1
    axes: Axes = axes_within(figure, left=left, right=right, bottom=_BOTTOM, top=top)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_yticks(range(len(groups)), labels)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.set_axisbelow(True)
    axes.locator_params(axis="x", nbins=4)
    return axes


def _whisker(axes: Axes, y: float, low: float | None, high: float | None, colour: str) -> None:
    if low is not None and high is not None:
        axes.plot(
            [low, high], [y, y], color=colour, linewidth=0.9, marker="|", markersize=3,
            clip_on=False,
        )  # fmt: skip


def _beside(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(
        text, (x, y), xytext=(3, 0), textcoords="offset points", va="center", ha="left",
        fontsize=SMALL, annotation_clip=False,
    )  # fmt: skip


def _value(measured: Measured) -> float:
    return nan if measured.value is None else measured.value
