"""``--figures``: every chart of the page as SVG and PDF for a paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files.atomic_write import write_atomically
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.commands.report.drawings import (
    draw_bars,
    draw_differences,
    draw_lengths,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_data import (
    Scale,
    dots_of,
    rows_of_pair,
    values_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_style import paper_style, saved
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_text import shown
from lmms_eval_captions.lmms_eval_tasks.commands.report.lengths import lengths_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.radar_figure import draw_radar
from lmms_eval_captions.lmms_eval_tasks.commands.report.report import ShownView
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section, overall_of
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: Final = ("svg", "pdf")
_LONGEST: Final = 60
"""Letters of a part of a file's name."""
_LENGTH_NAMES: Final = {"words": "length", "tokens": "length_tokens"}

Drawing = Callable[[], "Figure"]


@dataclass(slots=True)
class Written:
    """The files of figures."""

    paths: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What there is no figure of, and why."""


def write_figures(folder: Path, views: Sequence[ShownView], names: Sequence[str]) -> Written:
    """Write every figure.

    Args:
        folder: Made where it is not there.
        views: Tasks and groups.
        names: The captioners'.

    Raises:
        SettingsError: If nothing can be written there.
    """
    written = Written()
    taken: set[str] = set()
    if not views:
        written.notes.append("no figures: there is no score to draw")
    with paper_style():
        for one in views:
            why = _why_none(one)
            if why:
                written.notes.append(f"{one.view.name}: no figures, {why}")
                continue
            for parts, draw in drawings_of(one, names):
                name = _free("_".join(map(_safe, parts)), taken)
                figure = draw()
                written.paths += [_write(folder, name, figure, kind) for kind in KINDS]
    return written


def drawings_of(one: ShownView, names: Sequence[str]) -> Iterator[tuple[Sequence[str], Drawing]]:
    """The parts of each figure's name, and what draws it.

    Args:
        one: A task or group.
        names: The captioners'.
    """
    view = one.view
    figures = [{ALL[1]: of_captioner} for of_captioner in overall_of(view)]
    overall = Section(ALL[0], [ALL[1]], figures, [], 0)
    for name, metric in view.benchmark.metrics.items():
        scale = Scale(name, metric.highest, metric.higher_is_better)
        for section in (overall, *one.sections):
            if not any(m is not None for row in values_of(section, name) for m in row):
                continue
            if section.is_radar:
                yield (
                    (view.name, "radar", section.name, name),
                    partial(draw_radar, section, scale, names),
                )
            yield (
                (view.name, "bars", section.name, name),
                partial(draw_bars, section, scale, names),
            )
        yield from _differences(one, name, names)
        for what in lengths_of(view):
            dots = dots_of(view, what, name)
            if any(dots):
                yield (
                    (view.name, _LENGTH_NAMES[what], name),
                    partial(draw_lengths, dots, what, scale, names),
                )


def _differences(
    one: ShownView, metric: str, names: Sequence[str]
) -> Iterator[tuple[Sequence[str], Drawing]]:
    for paired in one.pairs:
        rows = rows_of_pair(paired, metric)
        if rows:
            # The headline's has the short name.
            of_metric = [] if metric == one.view.benchmark.headline else [metric]
            of_pair = [names[paired.other]] if len(one.pairs) > 1 else []
            whose = f"{shown(names[paired.other], 50)} less {shown(names[0], 50)}"
            yield (
                (one.view.name, "differences", *of_metric, *of_pair),
                partial(draw_differences, rows, f"{shown(metric, 60)}: {whose}"),
            )


def _why_none(one: ShownView) -> str:
    """Why nothing is drawn of a view; empty where something is."""
    view = one.view
    if one.sections or any(map(_has_breakdown, [view.name] * len(view.runs), view.runs)):
        return ""
    said = [
        results.breakdown
        for results in view.results
        if results is not None and results.breakdown is not None
    ]
    return "as there is no breakdown" + (f" ({said[0]})" if said else "")


def _has_breakdown(name: str, run: RunResults | None) -> bool:
    try:
        return run is not None and bool(run.breakdown(name))
    except DataError:
        return False


def _safe(part: str) -> str:
    """A part of a name that any file system takes.

    >>> _safe("a/../b c"), _safe("$x^2$"), _safe("...")
    ('a-b-c', 'x-2', 'x')
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-")[:_LONGEST] or "x"


def _free(name: str, taken: set[str]) -> str:
    """A name that no figure has, also where letters' case does not count."""
    free, n = name, 1
    while free.casefold() in taken:
        n += 1
        free = f"{name}-{n}"
    taken.add(free.casefold())
    return free


def _write(folder: Path, name: str, figure: Figure, kind: str) -> Path:
    path = folder / f"{name}.{kind}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, saved(figure, kind))
    except OSError as error:
        raise SettingsError(f"--figures {folder}: {error}") from error
    return path
