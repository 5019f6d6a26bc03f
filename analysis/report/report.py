"""From results folders to a page: everything is read once, and what is not there is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.report import head, health, missed
from lmms_eval_captions.analysis.report.frames import Frames, frames_of_rows
from lmms_eval_captions.analysis.report.lengths import length_table
from lmms_eval_captions.analysis.report.page import LIBRARY, render
from lmms_eval_captions.analysis.report.pairs import ShownView, pair_table, pairs_of
from lmms_eval_captions.analysis.report.rows import Row, n_runs_of, rows_of
from lmms_eval_captions.analysis.report.script_data import Columns, view_document
from lmms_eval_captions.analysis.report.shape import (
    sections_of,
    tables_of,
)
from lmms_eval_captions.analysis.report.sources import Sources, View, sources_of
from lmms_eval_captions.analysis.report.texts import BLOCK_ROWS, Blocks, LostLogs
from lmms_eval_captions.analysis.web_page.embedding import (
    json_in_html,
    packed,
    packed_json,
)
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_NO_SHAPE: Final = "There is no breakdown: the run has no score of it."
_NO_MISSED: Final = "There are no verdicts by group: nothing can be said to be missed."


Leaf = tuple[str, tuple[Path | None, ...]]
"""A task, and the results file of each captioner's run that it is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user says of a report."""

    tasks: tuple[str, ...] = ()
    """Tasks and groups that are shown, all where there are none."""
    n_frames: int = 4
    """Frames of each video, 0 for none."""
    n_framed: int = 50
    """Videos that have frames at most, those that score worst."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page, and what is said of it."""

    html: str
    is_empty: bool
    """Whether there is nothing of any run to show."""
    notes: Sequence[str]
    """What is not in the page, and what was written beside it, a sentence each."""


@dataclass(slots=True)
class _Videos:
    """The captions of all tasks."""

    columns: Columns
    places: Mapping[Leaf, int]
    """Where each task stands among those that the script reads."""
    blocks: Blocks = field(default_factory=Blocks)
    lost: LostLogs = field(default_factory=LostLogs)
    rows: list[tuple[View, Row]] = field(default_factory=list)


def make_report(folders: Sequence[Path], options: Options, settings: DataSettings) -> Report:
    """The page about results folders.

    Args:
        folders: As lmms-eval had them as ``--output_path``; also results files.
        options: What the user says.
        settings: Says where videos are.

    Raises:
        DataError: If a folder is not there, or named twice.
        SettingsError: If a task is asked for that none has, or charts cannot be written.
    """
    sources = sources_of(folders)
    views = _chosen(sources, options.tasks)
    sources = replace(sources, views=views)
    shown = [
        ShownView(view, sections_of(view, sources.missing), pairs_of(view, sources.captioners))
        for view in views
    ]
    videos = _videos(sources, views)
    frames = frames_of_rows(videos.rows, options.n_frames, options.n_framed, settings)
    notes = [*videos.lost.words(), *frames.notes]
    html = render(_context(sources, shown, notes), dict(_packs(sources, shown, videos, frames)))
    told = [*sources.missing, *notes]
    return Report(html, not views, told)


def _chosen(sources: Sources, names: Sequence[str]) -> list[View]:
    by_name = {view.name: view for view in sources.views}
    for name in names:
        if name not in by_name:
            there = ", ".join(by_name) or "none"
            raise SettingsError(f"--tasks: expected any of {there}, got {name!r:.80}")
    return [by_name[name] for name in names] if names else list(sources.views)


def _videos(sources: Sources, views: Sequence[View]) -> _Videos:
    names = [captioner.name for captioner in sources.captioners]
    leaves = {key: leaf for view in views for key, leaf in _leaves(view)}
    of_leaves = [[n_runs_of(verdicts) for verdicts in leaf.verdicts] for leaf in leaves.values()]
    n_runs = [max((of[c] for of in of_leaves), default=0) for c in range(len(names))]
    videos = _Videos(Columns(n_runs), {key: place for place, key in enumerate(leaves)})
    for leaf in leaves.values():
        rows = rows_of(leaf, leaf.name)
        videos.columns.add(leaf, rows)
        logs = [
            videos.lost.read(run, name, leaf.name)
            for run, name in zip(leaf.runs, names, strict=True)
        ]
        for row in rows:
            key = row.video_id, row.place
            videos.blocks.add(row, n_runs, [log.pop(key, None) for log in logs])
        videos.rows += [(leaf, row) for row in rows]
    videos.blocks.flush()
    return videos


def _leaves(view: View) -> list[tuple[Leaf, View]]:
    """The tasks of a view: a group may be of an earlier run than one of its tasks by itself."""
    runs = tuple(None if run is None else run.path for run in view.runs)
    return [((task, runs), view.only(task)) for task in view.tasks]


def _context(
    sources: Sources, shown: Sequence[ShownView], notes: Sequence[str]
) -> dict[str, object]:
    """What the template shows."""
    names = [captioner.name for captioner in sources.captioners]
    some = bool(sources.views)
    return {
        "title": f"Captions of {', '.join(names) or 'no run'}",
        "subtitle": f"Scores, verdicts and replies, by {DISTRIBUTION} {package_version()}.",
        "warnings": head.warnings_of(sources),
        "head": [head.score_table(sources), head.run_table(sources)] if some else [],
        "signatures": head.signature_table(sources) if some else None,
        "views": [_view_context(one, names) for one in shown],
        "video_notes": notes,
        "health": [health.endpoint_table(sources)] if some else [],
        "footer": f"Charts by Apache ECharts ({LIBRARY}, Apache-2.0). Nothing is loaded from a "
        "network, and nothing leaves this page.",
    }


def _view_context(one: ShownView, names: Sequence[str]) -> dict[str, object]:
    view = one.view
    reasons = health.reason_table(view, names)
    return {
        "name": view.name,
        "shape": [
            *(pair_table(paired, names) for paired in one.pairs),
            *tables_of(view, one.sections, names),
        ],
        "no_shape": _NO_SHAPE,
        "lengths": [length_table(view, names)],
        "missed": missed.missed_tables(view, names),
        "no_missed": _NO_MISSED,
        "health": [health.health_table(view, names), *([reasons] if reasons else [])],
    }


def _packs(
    sources: Sources, shown: Sequence[ShownView], videos: _Videos, frames: Frames
) -> Iterator[tuple[str, str]]:
    """Name of each element of data to what it holds."""
    columns = videos.columns.document()
    document: dict[str, Any] = {
        "captioners": [
            {"name": captioner.name, "n_runs": n_runs}
            for captioner, n_runs in zip(sources.captioners, videos.columns.n_runs, strict=True)
        ],
        "views": [
            view_document(one, [videos.places[key] for key, _ in _leaves(one.view)])
            for one in shown
        ],
        "block_rows": BLOCK_ROWS,
        "n_blocks": len(videos.blocks.packed),
        "has_replies": videos.blocks.has_replies,
        **columns,
    }
    document["rows"] |= {"frames": frames.keys, "no_frames": frames.reasons}
    yield "core", packed_json(document)
    yield "questions", packed(videos.columns.questions())
    yield from ((f"text-{place}", text) for place, text in enumerate(videos.blocks.packed))
    if frames.pictures:
        yield "frames", json_in_html(frames.pictures)
