"""Captioners beside the first, on the questions that both have a verdict on, by ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.analysis.old_compare.comparison import Comparer
from lmms_eval_captions.analysis.old_compare.rows import Contrast, Row
from lmms_eval_captions.analysis.report.shape import Section
from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.report.tables import NOTHING, Cell, Column, Table
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.judges.errors import DataError

_OUTCOMES: Final = (
    "Whether a difference is one goes by p, which is corrected for all rows of a metric that are "
    "shown together (Holm); the intervals are of each row alone."
)
_SMALLEST_P: Final = 0.0001
_SIGNS: Final = {"better": "▲ better", "worse": "▼ worse", "tied": "= tied", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class Paired:
    """A captioner less the first."""

    other: int
    """Its place."""
    found: Mapping[str, str]
    """Metric to what is found of all questions, in a sentence."""
    summary: str
    """What is to be said of all of it, such as what was left out, or why nothing is compared."""
    rows: Sequence[tuple[Row, Contrast]]


@dataclass(frozen=True, slots=True)
class ShownView:
    """A view with what is found out for it."""

    view: View
    sections: Sequence[Section]
    pairs: Sequence[Paired]


def pairs_of(view: View, captioners: Sequence[Captioner]) -> list[Paired]:
    """Each captioner less the first, with p-values adjusted within each pair.

    Args:
        view: A task or a group.
        captioners: Those of the view.
    """
    if view.verdicts[0] is None:
        return []
    return [
        _pair(view, captioners, place)
        for place in range(1, len(captioners))
        if view.verdicts[place] is not None
    ]


def _pair(view: View, captioners: Sequence[Captioner], place: int) -> Paired:
    known = {captioner.name: of for captioner, of in zip(captioners, view.verdicts, strict=True)}
    comparer = Comparer(
        [captioners[0], captioners[place]],
        read=lambda captioner, name: known[captioner.name] or captioner.verdicts(name),
    )
    try:
        rows = comparer.rows(view.name)
        aligned, warnings = comparer.aligned(view.name)
    except DataError as error:
        return Paired(place, {}, f"Not compared. {error}", [])
    found = {row.metric: _sentence(row, captioners, place) for row in rows if row.group is None}
    left_out = aligned.counts.words()
    words = [
        *([f"Left out: {left_out}."] if left_out else []),
        *(f"{warning}." for warning in warnings),
        _OUTCOMES,
    ]
    return Paired(place, found, " ".join(words), [(row, row.contrasts[0]) for row in rows])


def _sentence(row: Row, captioners: Sequence[Captioner], place: int) -> str:
    contrast = row.contrasts[0]
    found = contrast.difference
    said = {
        "better": "is better than",
        "worse": "is worse than",
        "tied": "cannot be told from",
        "unknown": "has no interval beside",
    }[contrast.outcome]
    return (
        f"{captioners[place].name} {said} {captioners[0].name} on {row.metric}: "
        f"{_difference(contrast)}, {found.n_videos:,} videos."
    )


def pair_table(paired: Paired, names: Sequence[str]) -> Table:
    """The differences as a table; ties are grey."""
    columns = [
        Column("group"),
        Column("metric"),
        Column("difference [95%]", is_number=True),
        Column("p (Holm)", is_number=True),
        Column("outcome"),
    ]
    rows = []
    for row, contrast in paired.rows:
        is_grey = contrast.outcome in ("tied", "unknown")
        kind = "tied" if is_grey else contrast.outcome
        p_value = contrast.p_value
        rows.append([
            Cell("all questions" if row.group is None else ": ".join(row.group)),
            Cell(row.metric),
            Cell(_difference(contrast), kind),
            Cell(_p_text(p_value), kind),
            Cell(_SIGNS[contrast.outcome], kind),
        ])  # fmt: skip
    caption = f"{names[paired.other]} less {names[0]}, paired by question and video"
    return Table(caption, columns, rows, [*paired.found.values(), paired.summary])


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return NOTHING
    return f"{p_value:.4f}" if p_value >= _SMALLEST_P else f"< {_SMALLEST_P}"


def _difference(contrast: Contrast) -> str:
    found = contrast.difference
    if found.low is None or found.high is None:
        return f"{found.difference:+.2f} (no interval)"
    return f"{found.difference:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
