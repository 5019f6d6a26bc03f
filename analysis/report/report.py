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
    numbers = []
    for view in views:
        # A group may be of an earlier run than one of its tasks by itself.
        keys = [(task, *(run and run.path for run in view.runs)) for task in view.tasks]
        for task, key in zip(view.tasks, keys, strict=True):
            if key not in columns:
                columns[key] = columns_of(task, view)
        numbers.append([list(columns).index(key) for key in keys])
    of_tasks = list(columns.values())
    missing: list[str] = []
    blocks = list(packed_blocks(_texts(of_tasks, captioners, missing)))
    of_views = zip(numbers, view_documents(views, captioners, missing), strict=True)
    documents = [{"tasks": tasks_of_view, **of_view} for tasks_of_view, of_view in of_views]
    document = tasks_document(of_tasks, len(captioners))
    pictures = _add_frames(
        of_tasks, document["rows"], settings, missing, n_frames=n_frames, n_framed=n_framed
    )
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
    for of in tasks:
        logs: list[Mapping[str, Sequence[LoggedCaption]]] = [{} for _ in captioners]
        for side, (captioner, run) in enumerate(zip(captioners, of.view.runs, strict=True)):
            try:
                if run is not None and run.has_samples(of.task):
                    logs[side] = logged_captions(run, of.task)
                elif run is not None:
                    missing.append(
                        f"{captioner.name}: captions, gold answers and replies are missing for "
                        "tasks that were run without --log_samples; run them again with it, which "
                        "asks the judge nothing that it was asked before."
                    )
            except DataError as error:
                missing.append(f"{captioner.name}: {without_folders(str(error))}")
        yield from text_rows(of, logs)


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
        (of, video, f"{of.view.benchmark.name} {video}") for of in tasks for video, _ in of.captions
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
    why_not = []
    for of, _, key in videos:
        is_beyond = documents[of.task] and key not in chosen
        why = reasons.get(key, "" if key in pictures else beyond if is_beyond else _NO_VIDEOS)
        why_not.append(_NO_VIDEOS if "LMMS_CAPTIONS_DATA" in why else without_folders(why))
    rows["frames"] = [key if key in pictures else "" for *_, key in videos]
    rows["no_frames"] = why_not
    if len(pictures) < (n := len({key for *_, key in videos})):
        most = Counter(filter(None, why_not)).most_common(1)[0][0]
        missing.append(f"Frames of {len(pictures):,} of {plural(n, 'video')}: {most}.")
    return pictures


def _worst_first(tasks: Sequence[TaskColumns], rows: Mapping[str, Any]) -> list[int]:
    def lowest_share(row: int) -> float:
        benchmark = tasks[rows["task"][row]].view.benchmark
        metric = benchmark.metrics[benchmark.headline]
        values = [of[row] for of in rows["values"][benchmark.headline] if of[row] is not None]
        sign = 1 if metric.higher_is_better else -1
        return min((sign * (v - metric.lowest) / metric.span for v in values), default=inf)

    return sorted(range(len(rows["task"])), key=lowest_share)


def _read(name: str) -> str:
    return _PAGE.joinpath(name).read_text("utf-8")
