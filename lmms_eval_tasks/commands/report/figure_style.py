"""How figures of a paper look: a column wide, told apart by colour-blind readers and in grey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_text import (
    FAMILY,
    FONT,
    shown,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH: Final = 3.25
"""Inches: a column of two on a page of a conference."""
HIGHEST: Final = 9.0
"""Inches that the bars of a figure take at most."""
POINTS: Final = 72
"""In an inch."""
SMALL: Final = 7
"""Points, of numbers at bars."""
INK: Final = "#222222"
SOFT: Final = "#767676"
LEGEND_ROW: Final = 0.17
"""Inches."""
_STEPS: Final = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_HANDLE: Final = 30
"""Points that an entry of a legend takes beside its text."""
_STYLE: Final = {
    "font.family": [FAMILY],
    "font.size": FONT,
    "axes.labelsize": FONT,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": FONT,
    "ytick.labelsize": FONT,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": "#cccccc",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.fontsize": FONT,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    # Names of groups and captioners are somebody's words, and no formulas.
    "text.parse_math": False,
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "lmms-eval-captions",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, slots=True)
class Look:
    """What tells a captioner from the others, with and without colours."""

    colour: str
    marker: str
    line: str
    hatch: str


_LOOKS: Final = (
    # Colours of Okabe and Ito, without their yellow, which is lost on white, and then darker ones.
    Look("#0072B2", "o", "-", ""),
    Look("#D55E00", "s", "--", "////"),
    Look("#009E73", "^", "-.", "...."),
    Look("#CC79A7", "D", ":", "xxxx"),
    Look("#E69F00", "v", "-", "\\\\\\\\"),
    Look("#56B4E9", "P", "--", "++++"),
    Look("#000000", "X", "-.", "----"),
    Look("#999999", "<", ":", "||||"),
    Look("#004166", ">", "-", "oooo"),
    Look("#7A3600", "*", "--", "****"),
)


def look_of(captioner: int) -> Look:
    """The look of a captioner by its place."""
    return _LOOKS[captioner % len(_LOOKS)]


@contextmanager
def paper_style() -> Iterator[None]:
    """What figures are made and saved in, whatever a user's own file of styles says.

    Raises:
        SettingsError: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise SettingsError(
            "--figures needs matplotlib, which is not installed: pip install 'matplotlib>=3.8'"
        ) from error

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def empty_figure(height: float) -> Figure:
    """A figure of a column's width, without pyplot's state.

    Args:
        height: Inches.
    """
    from matplotlib.figure import Figure as NewFigure

    return NewFigure(figsize=(WIDTH, height))


def axes_within(
    figure: Figure, *, left: float, right: float, bottom: float, top: float, polar: bool = False
) -> Any:  # noqa: ANN401 - polar axes have methods that no type of matplotlib's has
    """Axes with these margins in inches."""
    width, height = figure.get_size_inches()
    box = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - bottom - top) / height,
    )
    return figure.add_axes(box, projection="polar") if polar else figure.add_axes(box)


def saved(figure: Figure, kind: str) -> bytes:
    """A figure as a file, the same bytes each time.

    Args:
        figure: The figure.
        kind: ``svg`` or ``pdf``.
    """
    file = BytesIO()
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}}
    figure.savefig(file, format=kind, metadata=metadata[kind])
    return file.getvalue()


def round_above(value: float, highest: float) -> float:
    """Where a scale ends that begins at 0: the next round number, but no more than there can be.

    >>> round_above(54.2, 100), round_above(97, 100), round_above(0, 5), round_above(3.1, 5)
    (60.0, 100.0, 5.0, 4.0)
    """
    if value <= 0:
        return float(highest)
    unit = 10 ** floor(log10(value))
    end = next((step * unit for step in _STEPS if step * unit >= value), 10 * unit)
    return float(max(value, min(end, highest)))


def add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Name the captioners at the top, in the room that :func:`legend_height` says."""
    if len(names) < 2:
        return
    figure.legend(
        handles, _legend_names(names), loc="upper left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
        ncols=_legend_columns(names), columnspacing=1.0, handlelength=2.0, handletextpad=0.5,
        labelspacing=0.35,
    )  # fmt: skip


def legend_height(names: Sequence[str]) -> float:
    """Inches that captioners' names take; one needs no name."""
    if len(names) < 2:
        return 0.06
    return ceil(len(names) / _legend_columns(names)) * LEGEND_ROW + 0.1


def _legend_names(names: Sequence[str]) -> list[str]:
    return [shown(name, WIDTH * POINTS - _HANDLE - 6) for name in names]


def _legend_columns(names: Sequence[str]) -> int:
    widest = max(map(width_of, _legend_names(names))) + _HANDLE
    return max(1, min(len(names), int(WIDTH * POINTS / widest)))
