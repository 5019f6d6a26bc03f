"""``--figures``: every chart of the page as SVG and PDF for a paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files.atomic_write import write_atomically
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL
from lmms_eval_captions.lmms_eval_tasks.commands.report.drawings import (
    Scale,
    ShownDifference,
    draw_bars,
    draw_differences,
    draw_lengths,
    draw_radar,
    values_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.figure_style import (
    paper_style,
    saved,
    shown,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.lengths import LENGTHS, lengths_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.pairs import Paired
from lmms_eval_captions.lmms_eval_tasks.commands.report.report import ShownView
from lmms_eval_captions.lmms_eval_tasks.commands.report.rows import value_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section, overall_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.sources import View

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


def drawings_of(
    one: ShownView, names: Sequence[str]
) -> Iterator[tuple[Sequence[str], Drawing]]:
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


def dots_of(view: View, what: str, metric: str) -> list[list[tuple[float, float]]]:
    """For each captioner the length of each caption, and its own score.

    Args:
        view: A task or group.
        what: Of :data:`LENGTHS`.
        metric: Of the benchmark.
    """
    return [
        [
            (float(length), value)
            for task in (() if verdicts is None else verdicts.tasks)
            for caption in task.captions
            if (length := LENGTHS[what](caption)) is not None
            and (value := value_of(view.benchmark, metric, caption)) is not None
        ]
        for verdicts in view.verdicts
    ]


def _differences(
    one: ShownView, metric: str, names: Sequence[str]
) -> Iterator[tuple[Sequence[str], Drawing]]:
    for paired in one.pairs:
        rows = _rows(paired, metric)
        if rows:
            # The headline's has the short name.
            of_metric = [] if metric == one.view.benchmark.headline else [metric]
            of_pair = [names[paired.other]] if len(one.pairs) > 1 else []
            whose = f"{shown(names[paired.other], 50)} less {shown(names[0], 50)}"
            yield (
                (one.view.name, "differences", *of_metric, *of_pair),
                partial(draw_differences, rows, f"{shown(metric, 60)}: {whose}"),
            )


def _rows(paired: Paired, metric: str) -> list[ShownDifference]:
    return [
        ShownDifference(
            group="all questions" if row.group is None else row.group[1],
            difference=contrast.difference.difference,
            low=contrast.difference.low,
            high=contrast.difference.high,
            outcome=contrast.outcome,
        )
        for row, contrast in paired.rows
        if row.metric == metric and isfinite(contrast.difference.difference)
    ]


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


def _has_breakdown(name: str, run: object) -> bool:
    from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults

    try:
        return isinstance(run, RunResults) and bool(run.breakdown(name))
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
