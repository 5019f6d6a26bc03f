"""From results folders to one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.report.columns import Columns, columns_of
from lmms_eval_captions.analysis.report.frames import frames_of_rows
from lmms_eval_captions.analysis.report.sources import sources_of
from lmms_eval_captions.analysis.report.summary import run_documents, view_documents, warnings_of
from lmms_eval_captions.analysis.report.texts import BLOCK_ROWS, Texts
from lmms_eval_captions.analysis.tables import listed
from lmms_eval_captions.analysis.web_page import (
    json_in_html,
    packed,
    packed_json,
    source_hash,
)
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_PAGE: Final = Path(__file__).parent / "page"
_SCRIPTS: Final = ("data", "charts", "videos", "main")
LIBRARY: Final = "echarts-6.1.0"
"""The chart library as it was published, Apache-2.0; its licence is next to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a report, from the command line."""

    tasks: tuple[str, ...] = ()
    """Tasks and groups to show, all if empty."""
    n_frames: int = 4
    """Frames of each video, 0 for none."""
    n_framed: int = 50
    """Videos that have frames at most, those that score worst."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page, and notes about it."""

    html: str
    is_empty: bool
    """True if no run has anything to show."""
    notes: Sequence[str]
    """Missing parts, a sentence each."""


def make_report(folders: Sequence[Path], options: Options, settings: DataSettings) -> Report:
    """Make the page about results folders.

    Args:
        folders: As given to lmms-eval as ``--output_path``; also results files.
        options: What the user chooses.
        settings: Where videos are.

    Raises:
        DataError: If a folder does not exist, or is named twice.
        SettingsError: If a task is named that none has.
    """
    sources = sources_of(folders)
    by_name = {view.name: view for view in sources.views}
    for name in options.tasks:
        if name not in by_name:
            there = ", ".join(by_name) or "none"
            raise SettingsError(f"--tasks: expected any of {there}, got {name!r:.80}")
    views = [by_name[name] for name in options.tasks or by_name]
    sources = replace(sources, views=views)
    captioners = [captioner.name for captioner in sources.captioners]
    columns, texts = Columns(len(captioners)), Texts()
    places: dict[tuple[object, ...], int] = {}
    leaves: list[list[int]] = []
    for view in views:
        # A group may be of an earlier run than one of its tasks by itself.
        runs = tuple(None if run is None else run.path for run in view.runs)
        for task in view.tasks:
            if (task, runs) not in places:
                places[task, runs] = len(columns.tasks)
                columns.tasks.append(columns_of(task, view.tables(task)))
                texts.add(columns.tasks[-1], view.runs, captioners)
        leaves.append([places[task, runs] for task in view.tasks])
    texts.close()
    missing: list[str] = []
    documents = view_documents(sources, missing)
    rows = columns.document()
    frames = frames_of_rows(
        columns.tasks, rows["rows"], settings, n_frames=options.n_frames, n_framed=options.n_framed
    )
    rows["rows"] |= {"frames": frames.keys, "no_frames": frames.reasons}
    notes = list(dict.fromkeys([*texts.missing, *missing, *frames.notes]))
    core = {
        "title": f"Captions of {listed(captioners) if captioners else 'no run'}",
        "made_by": f"{DISTRIBUTION} {package_version()}",
        "warnings": warnings_of(sources),
        "notes": notes,
        "captioners": [whole(name) for name in captioners],
        "runs": run_documents(sources.captioners),
        "views": [
            {**document, "tasks": tasks} for document, tasks in zip(documents, leaves, strict=True)
        ],
        "block_rows": BLOCK_ROWS,
        "n_blocks": len(texts.blocks),
        "has_replies": texts.has_replies,
        **rows,
    }
    packs = {"core": packed_json(_written(core)), "questions": packed(columns.questions())}
    packs |= {f"text-{place}": text for place, text in enumerate(texts.blocks)}
    if frames.pictures:
        packs["frames"] = json_in_html(frames.pictures)
    html = _render(core["title"], packs)
    return Report(html, not views, [*sources.missing, *notes])


def _written(value: Any) -> Any:  # noqa: ANN401 - of JSON's types
    """Return a document whose texts can be written as UTF-8 and whose numbers are finite."""
    if isinstance(value, Mapping):
        return {whole(str(name)): _written(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return whole(value) if isinstance(value, str) else value


def _render(title: object, packs: Mapping[str, str]) -> str:
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    # These files of ours and the packs go in as they are; everything else is escaped.
    style = _read("page.css")
    script = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    library = _read(f"vendor/{LIBRARY}/echarts.min.js")
    return environment.get_template("page.html").render(
        title=title, packs=packs, style=style, script=script, library=library,
        style_hash=source_hash(style), script_hash=source_hash(script),
        library_hash=source_hash(library), library_name=LIBRARY,
    )  # fmt: skip


def _read(name: str) -> str:
    return _PAGE.joinpath(name).read_text("utf-8")
