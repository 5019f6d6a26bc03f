"""Frames of the videos that a report shows: of those that score worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.report.columns import TaskColumns
from lmms_eval_captions.analysis.report.runs import without_folders
from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.analysis.web_page import documents_of, frames_of, video_file

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_MAX_SIDE: Final = 320
_MAX_BYTES: Final = 64_000_000
_NO_VIDEOS: Final = "the videos were not at hand"

Frames = tuple[dict[str, list[str]], list[str], list[str], list[str]]
"""Key to frames as data addresses; each row's key, empty without frames; why it has none; notes."""


def frames_of_rows(
    tasks: Sequence[TaskColumns],
    rows: Mapping[str, Any],
    settings: DataSettings,
    *,
    n_frames: int,
    n_framed: int,
) -> Frames:
    """Return frames of the videos that score worst and are at hand; nothing is downloaded.

    ``rows`` has the columns ``task`` and ``values``.
    """
    videos = [(of, video) for of in tasks for video, _ in of.captions]
    keys = [f"{of.benchmark.name} {video}" for of, video in videos]
    if not n_frames or not n_framed or not keys:
        why = "--framed is 0" if n_frames else "--frames is 0"
        return {}, [""] * len(keys), [why] * len(keys), []
    documents = {of.task: documents_of(of.task, settings) for of in tasks}
    chosen: dict[str, Callable[[], Path]] = {}
    for row in _worst_first(tasks, rows):
        of, video = videos[row]
        if video in documents[of.task] and len(chosen) < n_framed:
            chosen.setdefault(keys[row], partial(video_file, settings, documents, of.task, video))
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

    why_not = [reason(key, of.task) for key, (of, _) in zip(keys, videos, strict=True)]
    notes = []
    if len(pictures) < len(set(keys)):
        most = Counter(filter(None, why_not)).most_common(1)[0][0]
        notes = [f"Frames of {len(pictures):,} of {plural(len(set(keys)), 'video')}: {most}."]
    return pictures, [key if key in pictures else "" for key in keys], why_not, notes


def _worst_first(tasks: Sequence[TaskColumns], rows: Mapping[str, Any]) -> list[int]:
    scores = []
    for row, number in enumerate(rows["task"]):
        benchmark = tasks[number].benchmark
        metric = benchmark.metrics[benchmark.headline]
        values = [side[row] for side in rows["values"][benchmark.headline]]
        sign = 1 if metric.higher_is_better else -1
        shares = [sign * (v - metric.lowest) / metric.span for v in values if v is not None]
        scores.append(min(shares, default=inf))
    return sorted(range(len(scores)), key=lambda row: scores[row])
