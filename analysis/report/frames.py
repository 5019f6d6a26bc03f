"""Frames of the videos that a report shows: of those that score worst, as many as it is to have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.report.rows import Row, value_of
from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.report.tables import plural
from lmms_eval_captions.analysis.web_page.documents import documents_of
from lmms_eval_captions.analysis.web_page.frames import NO_VIDEOS, frames_of
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_LONGEST: Final = 320
"""Longer side of a frame, in pixels."""
_MOST_BYTES: Final = 64_000_000


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a report."""

    pictures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Key to the frames as addresses that hold them."""
    keys: Sequence[str] = ()
    """The key of each row, empty where it has no frames."""
    reasons: Sequence[str] = ()
    """Why each row has none, else empty."""
    notes: Sequence[str] = ()


def frames_of_rows(
    rows: Sequence[tuple[View, Row]], n_frames: int, n_videos: int, settings: DataSettings
) -> Frames:
    """Frames of videos that are at hand; nothing is downloaded.

    Args:
        rows: All rows, each with its task.
        n_frames: Of each video, 0 for none.
        n_videos: At most, the ones that score worst first.
        settings: Says where videos are.
    """
    keys = [f"{view.benchmark.name} {row.video_id}" for view, row in rows]
    if not n_frames or not n_videos or not rows:
        why = "--framed is 0" if n_frames else "--frames is 0"
        return Frames({}, [""] * len(rows), [why] * len(rows))
    documents = {
        view.name: documents_of(view.name, settings)
        for view in {v.name: v for v, _ in rows}.values()
    }
    # The worst of each benchmark first, then the second of each: none is left without any.
    scores = [_score(*row) for row in rows]
    ranks: list[tuple[int, float, int]] = []
    n_of: Counter[str] = Counter()
    for place in sorted(range(len(rows)), key=lambda place: scores[place]):
        name = rows[place][0].benchmark.name
        ranks.append((n_of[name], scores[place], place))
        n_of[name] += 1
    videos: dict[str, tuple[str, Benchmark[Any, Any], Mapping[str, Any]]] = {}
    for _, _, place in sorted(ranks):
        view, row = rows[place]
        doc = documents[view.name].get(row.video_id)
        if doc is not None and len(videos) < n_videos:
            videos.setdefault(keys[place], (keys[place], view.benchmark, doc))
    pictures, reasons = frames_of(
        settings, videos.values(), n_frames=n_frames, most_bytes=_MOST_BYTES, longest=_LONGEST
    )
    beyond = f"only the {n_videos:,} that score worst have any (--framed)"
    of_rows = [
        _reason(key, pictures, reasons, beyond if documents[view.name] else NO_VIDEOS)
        for key, (view, _) in zip(keys, rows, strict=True)
    ]
    return Frames(
        pictures,
        [key if key in pictures else "" for key in keys],
        of_rows,
        list(_notes(len(pictures), len(set(keys)), of_rows)),
    )


def _reason(
    key: str, pictures: Mapping[str, object], reasons: Mapping[str, str], otherwise: str
) -> str:
    """Why a video has no frames, empty where it has."""
    return "" if key in pictures else reasons.get(key, otherwise).removeprefix("No frames: ")


def _notes(n_shown: int, n_videos: int, reasons: Sequence[str]) -> list[str]:
    if n_shown == n_videos:
        return []
    most = Counter(filter(None, reasons)).most_common(1)
    return [f"Frames of {n_shown:,} of {plural(n_videos, 'video')} are in the page: {most[0][0]}."]


def _score(view: View, row: Row) -> float:
    """The worst that any captioner scores on a row, the higher the better; last without a score."""
    benchmark = view.benchmark
    metric = benchmark.metrics[benchmark.headline]
    values = (
        value_of(benchmark, benchmark.headline, record)
        for record in row.records
        if record is not None
    )
    shares = [(value - metric.lowest) / metric.span for value in values if value is not None]
    if not shares:
        return float("inf")
    return min(shares) if metric.higher_is_better else -max(shares)
