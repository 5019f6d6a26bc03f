"""Charts for papers: a column wide, and the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH: Final = 3.25
"""Inches: a column of most conferences' papers."""
_ROW: Final = 0.16
_LONGEST: Final = 28
"""Characters of a name."""
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which the colour-blind tell apart."""
_MARKERS: Final = "os^Dv*P"
_LINES: Final = ("-", "--", ":", "-.")
_GREY: Final = "#6F6F6F"
_ABOVE: Final = 0.1
"""Names at angles of a smaller sine stand above or below the circle."""
_STYLE: Final[dict[Any, Any]] = {
    "font.size": 8, "font.family": "DejaVu Sans", "axes.titlesize": 8, "legend.fontsize": 7,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.linewidth": 0.6, "lines.linewidth": 1.0,
    "lines.markersize": 3.5, "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "captions",
    "axes.unicode_minus": False, "text.parse_math": False, "text.usetex": False,
}  # fmt: skip

Point = tuple[float, float | None, float | None]
"""A value and the ends of its interval, where it has one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row of a forest plot."""

    name: str
    point: Point
    is_told: bool
    """Whether it is a difference that can be told from none; others are grey."""


def radar(
    groups: Sequence[str],
    values: Mapping[str, Sequence[float | None]],
    highest: float,
    *,
    lowest: float = 0.0,
) -> Figure:
    """Captioners over the groups of a section, as VidCapBench and VCapsBench show them.

    Args:
        groups: At least 3.
        values: Captioner to a value for each group.
        highest: The end of the scale.
        lowest: Where it begins.
    """
    figure, axes = _new(_WIDTH, polar=True)
    angles = [2 * pi * place / len(groups) for place in range(len(groups))]
    for place, (name, of_groups) in enumerate(values.items()):
        known = [float("nan") if value is None else value for value in of_groups]
        axes.plot([*angles, angles[0]], [*known, known[0]], label=_name(name), **_look(place))
    axes.set_xticks(angles, [_name(group) for group in groups])
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    for angle, label in zip(angles, axes.get_xticklabels(), strict=True):
        # Names stand beside the circle and not on it.
        is_side = abs(sin(angle)) > _ABOVE
        label.set_horizontalalignment(
            ("left" if sin(angle) > 0 else "right") if is_side else "center"
        )
    axes.tick_params(axis="x", pad=1)
    axes.set_ylim(lowest, highest)
    axes.set_rlabel_position(180 / len(groups))
    axes.tick_params(axis="y", labelsize=6, labelcolor=_GREY)
    axes.grid(linewidth=0.4)
    _legend(figure, values)
    return figure


def bars(
    metric: str,
    groups: Sequence[str],
    points: Mapping[str, Sequence[Point | None]],
    *,
    lowest: float = 0.0,
) -> Figure:
    """A value for each group and captioner, with its interval.

    Args:
        metric: What is measured.
        groups: Of a section.
        points: Captioner to a point for each group.
        lowest: Where the scale begins.
    """
    n = len(points)
    figure, axes = _new(0.6 + _ROW * len(groups) * max(n, 1) + 0.04 * len(groups))
    for place, (name, of_groups) in enumerate(points.items()):
        known = [(row, point) for row, point in enumerate(of_groups) if point is not None]
        at = [row + (place - (n - 1) / 2) * 0.8 / n for row, _ in known]
        axes.barh(
            at, [point[0] - lowest for _, point in known], 0.8 / n, left=lowest, label=_name(name),
            color=_COLOURS[place % len(_COLOURS)], alpha=0.75,
        )  # fmt: skip
        _whiskers(axes, at, [point for _, point in known], "black")
    axes.set_yticks(range(len(groups)), [_name(group) for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlim(left=lowest)
    axes.set_xlabel(_name(metric))
    _legend(figure, points)
    return figure


def forest(metric: str, rows: Sequence[Difference]) -> Figure:
    """Paired differences with their intervals; ties are grey.

    Args:
        metric: What differs.
        rows: At least one.
    """
    figure, axes = _new(0.6 + (_ROW + 0.03) * len(rows))
    for place, row in enumerate(rows):
        colour = _COLOURS[0] if row.is_told else _GREY
        _whiskers(axes, [place], [row.point], colour)
        axes.plot([row.point[0]], [place], "o" if row.is_told else "s", color=colour)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_yticks(range(len(rows)), [_name(row.name) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(_name(metric, 2 * _LONGEST))
    return figure


def scatter(length: str, metric: str, dots: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Captions by length and score, as VCapsBench's Figures 7 and 10 have captioners.

    Args:
        length: What lengths are counted in.
        metric: What is measured.
        dots: Captioner to (length, value) of each caption.
    """
    figure, axes = _new(2.4)
    for place, (name, of_captions) in enumerate(dots.items()):
        xs, ys = zip(*of_captions, strict=True) if of_captions else ((), ())
        axes.plot(
            xs, ys, _MARKERS[place % len(_MARKERS)], label=_name(name), markersize=2,
            color=_COLOURS[place % len(_COLOURS)], alpha=0.5, markeredgewidth=0, rasterized=True,
        )  # fmt: skip
    axes.set_xlabel(_name(length))
    axes.set_ylabel(_name(metric))
    _legend(figure, dots)
    return figure


@contextmanager
def style() -> Iterator[None]:
    """The sizes and letters of all charts.

    Raises:
        SettingsError: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise SettingsError(
            "--figures needs matplotlib: pip install 'lmms-eval-captions[figures]'"
        ) from error
    with mpl.rc_context(_STYLE):
        yield


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a chart as SVG and PDF, without a date in it.

    Raises:
        OSError: If it cannot be written.
    """
    import logging
    import warnings

    paths = [folder / f"{name}.{kind}" for kind in ("svg", "pdf")]
    with warnings.catch_warnings():
        # Letters that the font has not are drawn as boxes in PDFs; SVGs hold the text itself.
        warnings.filterwarnings("ignore", message=".*missing from.*font")
        logging.getLogger("fontTools").setLevel(logging.ERROR)
        for path, dates in zip(paths, ({"Date": None}, {"CreationDate": None}), strict=True):
            figure.savefig(path, metadata=dates, bbox_inches="tight", pad_inches=0.02, dpi=300)
    return paths


def _new(height: float, *, polar: bool = False) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    # Charts of many groups would be longer than a page; viewers end at some hundred inches.
    figure = Figure(figsize=(_WIDTH, min(height, 40.0)), layout="constrained")
    axes = figure.add_subplot(projection="polar" if polar else None)
    if not polar:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _look(place: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _LINES[place % len(_LINES)],
        "marker": _MARKERS[place % len(_MARKERS)],
    }


def _whiskers(axes: Axes, at: Sequence[float], points: Sequence[Point], colour: str) -> None:
    for y, (_, low, high) in zip(at, points, strict=True):
        if low is not None and high is not None:
            axes.plot([low, high], [y, y], "-", color=colour, linewidth=0.8)


def _legend(figure: Figure, names: Mapping[str, object]) -> None:
    if len(names) > 1:
        figure.legend(loc="outside upper center", ncols=2, frameon=False)


def _name(text: str, longest: int = _LONGEST) -> str:
    r"""A name as it is drawn: in one line, without letters that are none, cut where it is long.

    >>> _name("a\nb"), _name("_private"), len(_name("x" * 99))
    ('a b', ' _private', 28)
    """
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    short = plain if len(plain) <= longest else f"{plain[: longest - 3]}..."
    # matplotlib leaves out of legends what begins with an underscore.
    return f" {short}" if short.startswith("_") else short
