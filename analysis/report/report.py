"""From results folders to one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.report.columns import (
    TaskColumns,
    columns_of,
    question_bytes,
    tasks_document,
)
from lmms_eval_captions.analysis.report.runs import captioners_and_views, without_folders
from lmms_eval_captions.analysis.report.summary import run_documents, view_documents, warnings_of
from lmms_eval_captions.analysis.report.texts import BLOCK_ROWS, Row, packed_blocks, text_rows
from lmms_eval_captions.analysis.tables import listed, plural
from lmms_eval_captions.analysis.web_page import (
    LoggedCaption,
    documents_of,
    frames_of,
    json_in_html,
    logged_captions,
    packed,
    packed_json,
    render_page,
    video_file,
)
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_PAGE: Final = Path(__file__).parent / "page"
_SCRIPTS: Final = ("data", "charts", "videos", "main")
LIBRARY: Final = "echarts-6.1.0"
"""The chart library as it was published, Apache-2.0; its licence is next to it."""
_MAX_SIDE: Final = 320
_MAX_BYTES: Final = 64_000_000
"""Size of all frames."""
_NO_VIDEOS: Final = "the videos were not at hand"


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
    columns: dict[tuple[object, ...], TaskColumns] = {}
    keys_of_views = []
    for view in views:
        # A group may be of an earlier run than one of its tasks by itself.
        keys = {task: (task, *(run and run.path for run in view.runs)) for task in view.tasks}
        keys_of_views.append(keys.values())
        for task, key in keys.items():
            if key not in columns:
                columns[key] = columns_of(task, view)
    of_tasks, numbers = list(columns.values()), {key: n for n, key in enumerate(columns)}
    missing: list[str] = []
    blocks = list(packed_blocks(_texts(of_tasks, captioners, missing)))
    documents = [
        {"tasks": [numbers[key] for key in keys], **of_view}
        for keys, of_view in zip(
            keys_of_views, view_documents(views, captioners, missing), strict=True
        )
    ]
    document = tasks_document(of_tasks, len(captioners))
    rows = document["rows"]
    pictures = _add_frames(of_tasks, rows, settings, missing, n_frames=n_frames, n_framed=n_framed)
    notes = list(dict.fromkeys(missing))
    names = [captioner.name for captioner in captioners]
    title = f"Captions of {listed(names) if names else 'no run'}"
    core = {
        "title": title,
        "made_by": f"{DISTRIBUTION} {package_version()}",
        "warnings": warnings_of(views, captioners, missing_runs),
        "notes": notes,
        "captioners": names,
        "runs": run_documents(captioners),
        "views": documents,
        "block_rows": BLOCK_ROWS,
        "n_blocks": len(blocks),
        **document,
    }
    packs = {"core": packed_json(core), "questions": packed(question_bytes(of_tasks))}
    packs |= {f"text-{place}": text for place, text in enumerate(blocks)}
    if pictures:
        packs["frames"] = json_in_html(pictures)
    # These files of ours and the packs go in as they are; everything else is escaped.
    html = render_page(
        _PAGE, title=title, packs=packs, style=_read("page.css"),
        script="\n".join(_read(f"{name}.js") for name in _SCRIPTS),
        library=_read(f"vendor/{LIBRARY}/echarts.min.js"), library_name=LIBRARY,
    )  # fmt: skip
    return Report(html, not views, [*missing_runs, *notes])


def _texts(
    tasks: Sequence[TaskColumns], captioners: Sequence[Captioner], missing: list[str]
) -> Iterator[Row]:
    """Yield the texts of all tasks from the logs of their runs, read task by task."""
    without: dict[str, list[str]] = {}
    for of in tasks:
        logs: list[Mapping[str, Sequence[LoggedCaption]]] = []
        for captioner, run in zip(captioners, of.view.runs, strict=True):
            logs.append({})
            if run is not None and not run.has_samples(of.task):
                without.setdefault(captioner.name, []).append(of.task)
            elif run is not None:
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


def _add_frames(
    tasks: Sequence[TaskColumns],
    rows: dict[str, Any],
    settings: DataSettings,
    missing: list[str],
    *,
    n_frames: int,
    n_framed: int,
) -> dict[str, list[str]]:
    """Add the columns ``frames``, the key of a row's frames, and ``no_frames``, why it has none.

    Frames are of the videos that score worst and are at hand; nothing is downloaded. They are
    returned as data addresses by key.
    """
    videos = [
        (of, video, f"{of.benchmark.name} {video}") for of in tasks for video, _ in of.captions
    ]
    rows["frames"] = [""] * len(videos)
    if not n_frames or not n_framed:
        rows["no_frames"] = ["--framed is 0" if n_frames else "--frames is 0"] * len(videos)
        return {}
    documents = {of.task: documents_of(of.task, settings) for of in tasks}
    chosen: dict[str, Callable[[], Path]] = {}
    for row in _worst_first(tasks, rows):
        of, video, key = videos[row]
        if video in documents[of.task] and len(chosen) < n_framed:
            chosen.setdefault(key, partial(video_file, settings, documents, of.task, video))
    pictures, reasons = frames_of(
        chosen, n_frames=n_frames, most_bytes=_MAX_BYTES, longest=_MAX_SIDE
    )
    beyond = f"only the {n_framed:,} videos that score worst have frames (--framed)"

    def reason(key: str, task: str) -> str:
        if key in pictures:
            return ""
        otherwise = beyond if documents[task] and key not in chosen else _NO_VIDEOS
        why = reasons.get(key, otherwise).removeprefix("No frames: ")
        is_absent = "LMMS_CAPTIONS_DATA" in why or "not on this machine" in why
        return _NO_VIDEOS if is_absent else without_folders(why)

    rows["frames"] = [key if key in pictures else "" for *_, key in videos]
    rows["no_frames"] = why_not = [reason(key, of.task) for of, _, key in videos]
    if len(pictures) < (n := len({key for *_, key in videos})):
        most = Counter(filter(None, why_not)).most_common(1)[0][0]
        missing.append(f"Frames of {len(pictures):,} of {plural(n, 'video')}: {most}.")
    return pictures


def _worst_first(tasks: Sequence[TaskColumns], rows: Mapping[str, Any]) -> list[int]:
    scores = []
    for row, number in enumerate(rows["task"]):
        benchmark = tasks[number].benchmark
        metric = benchmark.metrics[benchmark.headline]
        values = [side[row] for side in rows["values"][benchmark.headline]]
        sign = 1 if metric.higher_is_better else -1
        shares = [sign * (v - metric.lowest) / metric.span for v in values if v is not None]
        scores.append(min(shares, default=inf))
    return sorted(range(len(scores)), key=scores.__getitem__)


def _read(name: str) -> str:
    return _PAGE.joinpath(name).read_text("utf-8")
