"""What each video adds to a metric, of judged captions: the arrays that intervals come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.ratios import Ratios
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_captions.metrics.parts import RatioParts

Group = tuple[str, str]
"""A section of the breakdown and the name of a group in it."""


@dataclass(frozen=True, slots=True)
class VideoParts:
    """What each video adds to a metric."""

    videos: tuple[str, ...]
    """Ids of the videos, each once."""
    parts: RatioParts
    """Shape (n_runs, n_videos, n_terms, n_factors, 2); all 0 for a video that adds nothing."""


def parts_of_captions(
    benchmark: Benchmark[Any, Any],
    metric: str,
    sets: Sequence[Sequence[CaptionRecord]],
    group: Group | None = None,
) -> VideoParts | None:
    """What each video adds to the plain mean of a metric over sets of captions.

    Args:
        benchmark: Which one.
        metric: One of its metrics.
        sets: The captions of each task, at least one set.
        group: Questions of this group of the breakdown alone; all questions without.

    Returns:
        ``None`` where the metric is no ratio of sums, or cannot be computed of these captions.
    """
    known = benchmark.metrics[metric]
    if known.ratios is None or any(known.unavailable(captions) is not None for captions in sets):
        return None
    places = _places(caption.video_id for captions in sets for caption in captions)
    terms = []
    for captions in sets:
        runs = _runs(metric, known.n_values, captions, group)
        terms.append(_term(known.ratios, runs, captions, places))
    if group is not None:
        # A task without a question of the group has no part in the group's mean.
        terms = [term for term in terms if term[..., 1].any()] or terms[:1]
    n_runs = lcm(*map(len, terms))
    parts = np.stack([np.repeat(term, n_runs // len(term), axis=0) for term in terms], axis=2)
    return VideoParts(tuple(places), parts)


def parts_of_questions(
    ratios: Ratios,
    runs: Sequence[Sequence[Sequence[object]]],
    videos: Sequence[str],
    records: Sequence[CaptionRecord],
) -> RatioParts:
    """What each video adds to a metric of some questions, those of a group of the breakdown, say.

    Args:
        ratios: The metric's.
        runs: What the metric reads of these questions, shape (n_runs, n_captions, n_values), at
            least one run.
        videos: Ids of the captions' videos, shape (n_captions,).
        records: What else is known of the captions, if ``ratios`` reads it.
    """
    return _term(ratios, runs, records, _places(videos), videos)[:, :, None]


def _places(videos: Iterable[str]) -> dict[str, int]:
    """Each video, once, to its place."""
    return {video: place for place, video in enumerate(dict.fromkeys(videos))}


def _term(
    ratios: Ratios,
    runs: Sequence[Sequence[Sequence[object]]],
    captions: Sequence[CaptionRecord],
    places: dict[str, int],
    videos: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """What videos add to one task's metric, shape (n_runs, n_videos, n_factors, 2)."""
    ids = [caption.video_id for caption in captions] if videos is None else videos
    of_captions = np.asarray([ratios(values, captions) for values in runs], np.float64)
    of_videos = np.zeros((len(places), len(runs), *of_captions.shape[2:]))
    np.add.at(of_videos, [places[video] for video in ids], of_captions.swapaxes(0, 1))
    by_run: NDArray[np.float64] = of_videos.swapaxes(0, 1)
    return by_run


def _runs(
    metric: str, n_values: int, captions: Sequence[CaptionRecord], group: Group | None
) -> list[list[Sequence[object]]]:
    """What a metric reads of the questions of a group; shape (n_runs, n_captions, n_values)."""
    n_runs = max((len(caption.values[metric]) for caption in captions), default=0)
    return [
        [_values(caption, metric, n_values, run, group) for caption in captions]
        for run in range(max(n_runs, 1))
    ]


def _values(
    caption: CaptionRecord, metric: str, n_values: int, run: int, group: Group | None
) -> Sequence[object]:
    """What a metric reads of a caption in one judge run; nothing where it was left out."""
    of_runs = caption.values[metric]
    values = of_runs[run] if run < len(of_runs) else ()
    if group is None:
        return values
    section, name = group
    names = caption.groups[section][run] if values and section in caption.groups else ()
    return [
        value
        for place, of_question in enumerate(names)
        if of_question == name
        for value in values[place * n_values : (place + 1) * n_values]
    ]
