"""Frames of the videos that a report shows: of those that score worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.report.columns import TaskColumns
from lmms_eval_captions.analysis.report.sources import without_folders
from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.analysis.web_page import documents_of, frames_of
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_MAX_SIDE: Final = 320
_MAX_BYTES: Final = 64_000_000
NO_VIDEOS: Final = "the videos were not at hand"


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a report."""

    pictures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Key to the frames as data addresses."""
    keys: Sequence[str] = ()
    """Key of each row, empty if it has no frames."""
    reasons: Sequence[str] = ()
    """Why each row has none, else empty."""
    notes: Sequence[str] = ()


def frames_of_rows(
    tasks: Sequence[TaskColumns],
    rows: Mapping[str, Any],
    settings: DataSettings,
    *,
    n_frames: int,
    n_framed: int,
) -> Frames:
    """Return frames of videos that are at hand; nothing is downloaded.

    Args:
        tasks: All of the report.
        rows: Columns ``task``, ``video`` and ``values`` of all rows.
        settings: Where videos are.
        n_frames: Frames of each video, 0 for none.
        n_framed: Videos that have frames at most, those that score worst.
    """
    videos = [key for of in tasks for key, _ in of.keys]
    owners = [tasks[place] for place in rows["task"]]
    keys = [f"{of.benchmark.name} {video}" for of, video in zip(owners, videos, strict=True)]
    if not n_frames or not n_framed or not keys:
        why = "--framed is 0" if n_frames else "--frames is 0"
        return Frames({}, [""] * len(keys), [why] * len(keys))
    documents = {of.task: documents_of(of.task, settings) for of in tasks}
    # The worst of each benchmark first, then the second of each.
    scores = [_score(of, rows["values"], place) for place, of in enumerate(owners)]
    n_of: Counter[str] = Counter()
    ranks = []
    for place in sorted(range(len(keys)), key=lambda place: scores[place]):
        name = owners[place].benchmark.name
        ranks.append((n_of[name], scores[place], place))
        n_of[name] += 1
    chosen: dict[str, tuple[str, Benchmark[Any, Any], Mapping[str, Any]]] = {}
    for *_, place in sorted(ranks):
        doc = documents[owners[place].task].get(videos[place])
        if doc is not None and len(chosen) < n_framed:
            chosen.setdefault(keys[place], (keys[place], owners[place].benchmark, doc))
    pictures, reasons = frames_of(
        settings, chosen.values(), n_frames=n_frames, most_bytes=_MAX_BYTES,
        longest=_MAX_SIDE,
    )  # fmt: skip
    beyond = f"only the {n_framed:,} videos that score worst have frames (--framed)"

    def reason(key: str, task: str) -> str:
        if key in pictures:
            return ""
        otherwise = beyond if documents[task] and key not in chosen else NO_VIDEOS
        found = reasons.get(key, otherwise).removeprefix("No frames: ")
        is_absent = "LMMS_CAPTIONS_DATA" in found or "not on this machine" in found
        return NO_VIDEOS if is_absent else without_folders(found)

    of_rows = [reason(key, of.task) for key, of in zip(keys, owners, strict=True)]
    notes = []
    n_videos = len(set(keys))
    if len(pictures) < n_videos:
        most = Counter(filter(None, of_rows)).most_common(1)[0][0]
        notes = [f"Frames of {len(pictures):,} of {plural(n_videos, 'video')}: {most}."]
    return Frames(pictures, [key if key in pictures else "" for key in keys], of_rows, notes)


def _score(of: TaskColumns, values: Mapping[str, Sequence[Sequence[Any]]], place: int) -> float:
    """Return the worst score of any captioner on a row; last without a score."""
    metric = of.benchmark.metrics[of.benchmark.headline]
    found = [side[place] for side in values[of.benchmark.headline] if side[place] is not None]
    shares = [float((value - metric.lowest) / metric.span) for value in found]
    if not shares:
        return float("inf")
    return min(shares) if metric.higher_is_better else -max(shares)
