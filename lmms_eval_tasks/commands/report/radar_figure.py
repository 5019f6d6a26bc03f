"""A radar for a paper, as VidCapBench's and VCapsBench's figures have it."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, isfinite, nan, pi, sin
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_data import Scale, values_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_style import (
    POINTS,
    WIDTH,
    add_legend,
    axes_within,
    empty_figure,
    legend_height,
    look_of,
    round_above,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_text import shown, width_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SPOKE: Final = 60.0
"""Points of a name around a radar."""
_FEW_SPOKES: Final = 8
"""Groups up to which names around a radar are level; more stand along their spokes."""


def draw_radar(section: Section, scale: Scale, names: Sequence[str]) -> Figure:
    """A spoke for each group, a line for each captioner."""
    rows = [
        [nan if m is None or m.value is None else m.value for m in row]
        for row in values_of(section, scale.metric)
    ]
    top = round_above(
        max((v for row in rows for v in row if isfinite(v)), default=0.0), scale.highest
    )
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
