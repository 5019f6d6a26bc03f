"""The page's charts as figures for a paper, out of the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, isfinite, nan, pi, sin
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_style import (
    FONT,
    HIGHEST,
    INK,
    POINTS,
    SMALL,
    SOFT,
    WIDTH,
    add_legend,
    axes_within,
    empty_figure,
    legend_height,
    look_of,
    round_above,
    shown,
    width_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section
from lmms_eval_captions.lmms_eval_tasks.measured import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL: Final = 92.0
"""Points that the name of a group beside its bars takes at most."""
_SPOKE: Final = 60.0
"""Points of a name around a radar."""
_FEW_SPOKES: Final = 8
"""Groups up to which names around a radar are level; more stand along their spokes."""
_BAR, _BETWEEN, _THINNEST = 0.13, 0.09, 0.1
"""Inches: a bar, the room between groups, and the bar that a number has room at."""
_BOTTOM: Final = 0.42
"""Inches for the scale and its name."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A metric as an axis."""

    metric: str
    highest: float
    higher_is_better: bool

    @property
    def label(self) -> str:
        """Its name, and which way is better where that is unusual."""
        way = "" if self.higher_is_better else " (lower is better)"
        return shown(self.metric, 110) + way


def values_of(section: Section, metric: str) -> list[list[Measured | None]]:
    """For each captioner the metric in each group; ``None`` where it has no value."""
    return [
        [
            found
            if (found := groups.get(group, {}).get(metric)) is not None and found.value is not None
            else None
            for group in section.groups
        ]
        for groups in section.figures
    ]


def draw_radar(section: Section, scale: Scale, names: Sequence[str]) -> Figure:
    """A spoke for each group, a line for each captioner."""
    rows = [[nan if m is None else _value(m) for m in row] for row in values_of(section, scale.metric)]
    top = round_above(max(_known(rows), default=0.0), scale.highest)
    legend = legend_height(names)
    figure = empty_figure(WIDTH + legend)
    margin = _SPOKE / POINTS + 0.16
    axes = axes_within(
        figure, left=margin, right=margin, bottom=margin, top=margin + legend, polar=True
    )
    angles = [2 * pi * place / len(section.groups) for place in range(len(section.groups))]
    axes.set_theta_offset(pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, top)
    axes.set_yticks([top * part / 4 for part in (1, 2, 3, 4)], [""] * 3 + [f"{top:g}"])
    axes.set_rlabel_position(180 / len(angles))
    axes.set_xticks(angles, [""] * len(angles))
    axes.spines["polar"].set_color("#cccccc")
    lines = []
    for place, row in enumerate(rows):
        look = look_of(place)
        lines += axes.plot(
            [*angles, angles[0]], [*row, row[0]], color=look.colour, linestyle=look.line,
            marker=look.marker, markersize=3, clip_on=False,
        )  # fmt: skip
    middle = WIDTH / 2
    radius = (WIDTH - 2 * margin) / 2 + 0.09
    height = figure.get_size_inches()[1]
    for group, angle in zip(section.groups, angles, strict=True):
        x, y = WIDTH / 2 + radius * sin(angle), middle + radius * cos(angle)
        _spoke_name(figure, (x / WIDTH, y / height), group, angle, len(angles))
    figure.text(0.01, 0.01, f"{scale.label}, 0 to {top:g}", va="bottom", ha="left")
    add_legend(figure, lines, names)
    return figure


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


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A row of a forest plot."""

    group: str
    difference: float
    low: float | None
    high: float | None
    outcome: str


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


def _spoke_name(
    figure: Figure, place: tuple[float, float], group: str, angle: float, n_spokes: int
) -> None:
    """The name of a group at the end of its spoke."""
    is_right = sin(angle) >= 0
    if n_spokes > _FEW_SPOKES:
        turned = 90 - angle * 180 / pi + (0 if is_right else 180)
        figure.text(
            *place, shown(group, _SPOKE), rotation=turned, rotation_mode="anchor", va="center",
            ha="left" if is_right else "right",
        )  # fmt: skip
        return
    is_level = abs(sin(angle)) < 0.2
    figure.text(
        *place,
        "\n".join(_lines(group)) if not is_level else shown(group, 2 * _SPOKE),
        ha="center" if is_level else "left" if is_right else "right",
        va=("bottom" if cos(angle) > 0 else "top") if is_level else "center",
        linespacing=1.0,
    )


def _lines(group: str) -> list[str]:
    """A name on two lines at most."""
    words = shown(group, 1e6).replace("_", "_ ").split(" ")
    first = ""
    while words and width_of(f"{first} {words[0]}".strip()) <= _SPOKE:
        first = f"{first} {words.pop(0)}".strip().replace("_ ", "_")
    rest = " ".join(words).replace("_ ", "_")
    return [shown(line, _SPOKE) for line in (first, rest) if line]


def _beside_names(figure: Figure, groups: Sequence[str], top: float, right: float) -> Axes:
    """Axes with a name on the left of each row, the first on top."""
    labels = [shown(group, _LABEL) for group in groups]
    left = max(map(width_of, labels)) / POINTS + 0.1
    axes = axes_within(figure, left=left, right=right, bottom=_BOTTOM, top=top)
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


def _known(rows: Sequence[Sequence[float]]) -> Iterator[float]:
    return (value for row in rows for value in row if isfinite(value))
