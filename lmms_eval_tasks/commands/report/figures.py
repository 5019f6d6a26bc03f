"""``report --figures``: the charts of the page as files for papers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.report.drawing import (
    Difference,
    bars,
    forest,
    radar,
    save,
    scatter,
    style,
)
from lmms_eval_captions.lmms_eval_tasks.commands.report.lengths import points_of
from lmms_eval_captions.lmms_eval_tasks.commands.report.shape import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lmms_eval_captions.lmms_eval_tasks.commands.report.pairs import ShownView

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ROUND: Final = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def write_figures(shown: Sequence[ShownView], names: Sequence[str], folder: Path) -> list[Path]:
    """Write every chart of the page as SVG and PDF.

    Args:
        shown: What the page shows.
        names: The captioners'.
        folder: Made where it is not there.

    Returns:
        The files.

    Raises:
        SettingsError: If matplotlib is not installed, or the folder cannot be written.
    """
    written: list[Path] = []
    n_of: Counter[str] = Counter()
    try:
        if folder.exists() and not folder.is_dir():
            raise SettingsError(f"--figures {folder}: expected a folder")
        folder.mkdir(parents=True, exist_ok=True)
        with style():
            for one in shown:
                for name, figure in figures_of(one, names):
                    safe = _UNSAFE.sub("-", name)
                    n_of[safe] += 1
                    again = f"-{n_of[safe]}" if n_of[safe] > 1 else ""
                    written += save(figure, folder, f"{safe}{again}")
    except OSError as error:
        raise SettingsError(f"--figures {folder}: {error}") from error
    return written


def figures_of(shown: ShownView, names: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """Each chart of a view by the name of its files."""
    view = shown.view
    for section in shown.sections:
        for metric in view.benchmark.metrics:
            if any(metric in of for groups in section.figures for of in groups.values()):
                bounds = view.benchmark.metrics[metric].bounds
                yield from _of_section(view.name, section, metric, names, bounds=bounds)
    for paired in shown.pairs:
        for metric in view.benchmark.metrics:
            rows = [
                Difference(
                    "all questions" if row.group is None else row.group[1],
                    (
                        contrast.difference.difference,
                        contrast.difference.low,
                        contrast.difference.high,
                    ),
                    contrast.outcome in ("better", "worse"),
                )
                for row, contrast in paired.rows
                if row.metric == metric
            ]
            if rows:
                label = f"{metric}: {names[paired.other]} less {names[0]}"
                yield f"{view.name}_differences_{metric}_{names[paired.other]}", forest(label, rows)
    for length, metric, of_captioners in points_of(view):
        dots = {name: of for name, of in zip(names, of_captioners, strict=True) if of}
        yield f"{view.name}_{length}_{metric}", scatter(length, metric, dots)


def _of_section(
    view: str, section: Section, metric: str, names: Sequence[str], *, bounds: tuple[float, float]
) -> Iterator[tuple[str, Figure]]:
    points = {
        name: [
            None
            if (measured := figures.get(group, {}).get(metric)) is None or measured.value is None
            else (measured.value, measured.low, measured.high)
            for group in section.groups
        ]
        for name, figures in zip(names, section.figures, strict=True)
    }
    where = f"{view}_{section.name}_{metric}"
    lowest, highest = bounds
    yield f"{where}_bars", bars(metric, section.groups, points, lowest=lowest)
    if section.is_radar:
        values = {name: [p[0] if p else None for p in of] for name, of in points.items()}
        most = max(
            (value for of in values.values() for value in of if value is not None), default=0
        )
        top = round_above(most)
        end = top if top > lowest else highest
        yield f"{where}_radar", radar(section.groups, values, end, lowest=lowest)


def round_above(value: float) -> float:
    """The smallest round number that is not below a value.

    >>> round_above(45.3), round_above(4.2), round_above(100.0), round_above(0.0)
    (50.0, 5.0, 100.0, 1.0)
    """
    if value <= 0:
        return 1.0
    unit = 1.0
    while unit * 10 <= value:
        unit *= 10
    while unit > value:
        unit /= 10
    return next(step * unit for step in _ROUND if step * unit >= value)
