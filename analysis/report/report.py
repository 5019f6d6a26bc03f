"""From results folders to one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.report.columns import (
    TaskColumns,
    columns_of,
    question_bytes,
    tasks_document,
)
from lmms_eval_captions.analysis.report.frames import frames_of_rows
from lmms_eval_captions.analysis.report.runs import View, captioners_and_views, without_folders
from lmms_eval_captions.analysis.report.summary import run_documents, view_documents, warnings_of
from lmms_eval_captions.analysis.report.texts import BLOCK_ROWS, Row, packed_blocks, text_rows
from lmms_eval_captions.analysis.tables import listed, plural
from lmms_eval_captions.analysis.web_page import (
    LoggedCaption,
    json_in_html,
    logged_captions,
    packed,
    packed_json,
    render_page,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_PAGE: Final = Path(__file__).parent / "page"
_SCRIPTS: Final = ("data", "charts", "videos", "main")
LIBRARY: Final = "echarts-6.1.0"
"""The chart library as it was published, Apache-2.0; its licence is next to it."""


class Report(NamedTuple):
    """A page, and notes about it."""

    html: str
    is_empty: bool
    """True if no run has anything to show."""
    notes: Sequence[str]
    """Missing parts, a sentence each."""


def make_report(
    folders: Sequence[Path],
    settings: DataSettings,
    *,
    tasks: Sequence[str] = (),
    n_frames: int = 4,
    n_framed: int = 50,
) -> Report:
    """Make the page about results folders or files, by default with all tasks and groups.

    The ``n_framed`` videos that score worst have ``n_frames`` frames each.

    Raises:
        DataError: If a folder does not exist, or is named twice.
        SettingsError: If a task is named that none has.
    """
    missing_runs: list[str] = []
    captioners, all_views = captioners_and_views(folders, missing_runs)
    by_name = {view.name: view for view in all_views}
    for name in tasks:
        if name not in by_name:
            there = ", ".join(by_name) or "none"
            raise SettingsError(f"--tasks: expected any of {there}, got {name!r:.80}")
    views = [by_name[name] for name in tasks or by_name]
    columns: list[TaskColumns] = []
    views_of_columns: list[View] = []
    numbers: dict[tuple[object, ...], int] = {}
    documents = []
    for view in views:
        # A group may be of an earlier run than one of its tasks by itself.
        keys = [(task, *(run and run.path for run in view.runs)) for task in view.tasks]
        for task, key in zip(view.tasks, keys, strict=True):
            if key not in numbers:
                numbers[key] = len(columns)
                columns.append(columns_of(task, view.tables(task)))
                views_of_columns.append(view)
        documents.append({"tasks": [numbers[key] for key in keys]})
    missing: list[str] = []
    blocks = list(packed_blocks(_texts(columns, views_of_columns, captioners, missing)))
    for of_view, summary in zip(documents, view_documents(views, captioners, missing), strict=True):
        of_view.update(summary)
    document = tasks_document(columns, len(captioners))
    pictures, frame_keys, no_frames, frame_notes = frames_of_rows(
        columns, document["rows"], settings, n_frames=n_frames, n_framed=n_framed
    )
    document["rows"] |= {"frames": frame_keys, "no_frames": no_frames}
    notes = list(dict.fromkeys([*missing, *frame_notes]))
    names = [captioner.name for captioner in captioners]
    core = {
        "title": f"Captions of {listed(names) if names else 'no run'}",
        "made_by": f"{DISTRIBUTION} {package_version()}",
        "warnings": warnings_of(views, captioners, missing_runs),
        "notes": notes,
        "captioners": [whole(name) for name in names],
        "runs": run_documents(captioners),
        "views": documents,
        "block_rows": BLOCK_ROWS,
        "n_blocks": len(blocks),
        **document,
    }
    packs = {"core": packed_json(_written(core)), "questions": packed(question_bytes(columns))}
    packs |= {f"text-{place}": text for place, text in enumerate(blocks)}
    if pictures:
        packs["frames"] = json_in_html(pictures)
    return Report(_render(core["title"], packs), not views, [*missing_runs, *notes])


def _texts(
    tasks: Sequence[TaskColumns],
    views: Sequence[View],
    captioners: Sequence[Captioner],
    missing: list[str],
) -> Iterator[Row]:
    """Yield the texts of all tasks from the logs of their views' runs, read task by task."""
    without: dict[str, list[str]] = {}
    for of, view in zip(tasks, views, strict=True):
        logs: list[Mapping[str, Sequence[LoggedCaption]]] = []
        for captioner, run in zip(captioners, view.runs, strict=True):
            logs.append({})
            if run is None:
                continue
            if not run.has_samples(of.task):
                without.setdefault(captioner.name, []).append(of.task)
                continue
            try:
                logs[-1] = logged_captions(run, of.task)
            except DataError as error:
                missing.append(f"{captioner.name}: {without_folders(str(error))}")
        yield from text_rows(of, logs)
    if without:
        few = [f"{name} ({plural(len(of), 'task')})" for name, of in without.items()]
        missing.append(
            f"No captions, gold answers and replies of {listed(few)}: run again with "
            "--log_samples, which asks the judge nothing that it was asked before."
        )


def _written(value: Any) -> Any:  # noqa: ANN401 - of JSON's types
    """Return a document whose texts can be written as UTF-8 and whose numbers are finite."""
    if isinstance(value, Mapping):
        return {whole(str(name)): _written(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_written(member) for member in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return whole(value) if isinstance(value, str) else value


def _render(title: object, packs: Mapping[str, str]) -> str:
    # These files of ours and the packs go in as they are; everything else is escaped.
    style = _read("page.css")
    script = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    library = _read(f"vendor/{LIBRARY}/echarts.min.js")
    return render_page(
        _PAGE, title=title, packs=packs, style=style, script=script, library=library,
        library_name=LIBRARY,
    )  # fmt: skip


def _read(name: str) -> str:
    return _PAGE.joinpath(name).read_text("utf-8")
