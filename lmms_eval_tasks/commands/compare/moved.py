"""Where two captioners differ most: the videos, and the groups of questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.verdicts.parts import Group, parts_of
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.metrics.ratio_parts import influences_of_videos, values_of_runs

MOST: Final = 5
"""Videos, and groups of questions, that are shown in each direction."""
_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Moved:
    """A video, or a group of questions, with the headline of both captioners on it alone."""

    section: str
    """``videos``, or a section of the breakdown."""
    name: str
    n_questions: int
    first: float
    other: float
    effect: float
    """By how much it moves the difference of the captioners, in the metric's unit: all videos
    together make the whole difference, and so do all groups of a section of a metric that is a
    share of all questions; of other metrics groups do so roughly."""


def moved_videos(first: Verdicts, other: Verdicts) -> list[Moved]:
    """The videos that move the headline up and down most, the ones that move it up first."""
    benchmark = first.benchmark
    metric = benchmark.metrics[benchmark.headline]
    a, b = (parts_of(verdicts, benchmark.headline) for verdicts in (first, other))
    if a is None or b is None:
        return []
    has_part = np.any([parts.parts.any(axis=(0, 2, 3, 4)) for parts in (a, b)], axis=0)
    kept = [parts.parts[:, has_part] for parts in (a, b)]
    effects, values = [], []
    for array in kept:
        total = values_of_runs(array, scale=metric.scale).mean()
        influences = influences_of_videos(array, scale=metric.scale).mean(axis=0)
        effects.append(influences + total / array.shape[1])
        values.append(_own_values(array, metric.scale))
    effect = effects[1] - effects[0]
    n_questions = _n_questions(first)
    videos = [video for video, has in zip(a.videos, has_part, strict=True) if has]
    rows = (
        Moved("videos", video, n_questions[video], *map(float, numbers))
        for video, *numbers in zip(videos, *values, effect, strict=True)
    )
    return _most(rows)


def moved_groups(first: Verdicts, other: Verdicts, *, but: str | None) -> list[Moved]:
    """The groups of questions, of whatever section, that move the headline up and down most.

    Args:
        first: Verdicts on the same captions and questions as the other's.
        other: Of the captioner that is compared with the first.
        but: A section that is left out.
    """
    benchmark = first.benchmark
    if benchmark.metrics[benchmark.headline].ratios is None:
        return []
    of_first, of_other = _group_values(first), _group_values(other)
    totals: dict[str, int] = {}
    for (section, _), (_, n) in of_first.items():
        totals[section] = totals.get(section, 0) + n
    rows = (
        Moved(section, name, n, value, of_other[section, name][0],
              (of_other[section, name][0] - value) * n / totals[section])
        for (section, name), (value, n) in of_first.items()
        if section != but and (section, name) in of_other
    )  # fmt: skip
    return _most(row for row in rows if not isnan(row.effect))


def _most(rows: Iterator[Moved]) -> list[Moved]:
    ordered = sorted(rows, key=lambda row: (-row.effect, row.section, row.name))
    up = [row for row in ordered[:MOST] if row.effect > _NOTHING]
    down = [row for row in ordered[-MOST:] if row.effect < -_NOTHING]
    return [*up, *down]


def _own_values(parts: Any, scale: float) -> Any:  # noqa: ANN401 - numpy's arrays
    """The metric of each video alone, of the terms that it has a part in; shape (n_videos,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (parts[..., 0] / parts[..., 1]).prod(axis=-1)
    known = ~np.isnan(ratios)
    n_known = known.sum(axis=(0, 2))
    return scale * np.where(known, ratios, 0).sum(axis=(0, 2)) / np.where(n_known, n_known, np.nan)


def _n_questions(verdicts: Verdicts) -> dict[str, int]:
    """Questions about each video."""
    n_of: dict[str, int] = {}
    n_values = verdicts.benchmark.metrics[verdicts.benchmark.headline].n_values
    for task in verdicts.tasks:
        for caption in task.captions:
            n = len(caption.values[verdicts.benchmark.headline][0]) // n_values
            n_of[caption.video_id] = n_of.get(caption.video_id, 0) + n
    return n_of


def _group_values(verdicts: Verdicts) -> Mapping[Group, tuple[float, int]]:
    """The headline in each group of each section, and questions there, in one pass.

    Of a mean of several tasks, it is the mean over those that have such a question.
    """
    benchmark = verdicts.benchmark
    if verdicts.is_pooled:
        sets: Sequence[Sequence[TaskVerdicts]] = [verdicts.tasks]
    else:
        sets = [(task,) for task in verdicts.tasks]
    values: dict[Group, list[float]] = {}
    n_questions: dict[Group, int] = {}
    for tasks in sets:
        captions = [caption for task in tasks for caption in task.captions]
        for group, (value, n) in _groups_of_task(benchmark, captions).items():
            values.setdefault(group, []).append(value)
            n_questions[group] = n_questions.get(group, 0) + n
    return {
        group: (sum(of_tasks) / len(of_tasks), n_questions[group])
        for group, of_tasks in values.items()
    }


def _groups_of_task(
    benchmark: Benchmark[Any, Any], captions: Sequence[CaptionRecord]
) -> dict[Group, tuple[float, int]]:
    n_runs = max((len(caption.values[benchmark.headline]) for caption in captions), default=0)
    of_runs = [_groups_of_run(benchmark, captions, run) for run in range(n_runs)]
    found: dict[Group, tuple[float, int]] = {}
    for group, (_, n) in (of_runs[0] if of_runs else {}).items():
        runs = [of_run[group][0] for of_run in of_runs if group in of_run]
        found[group] = (sum(runs) / len(runs), n)
    return found


def _groups_of_run(
    benchmark: Benchmark[Any, Any], captions: Sequence[CaptionRecord], run: int
) -> dict[Group, tuple[float, int]]:
    metric = benchmark.metrics[benchmark.headline]
    assert metric.ratios is not None  # noqa: S101 - see moved_groups
    cells: dict[tuple[Group, int], list[object]] = {}
    for place, caption in enumerate(captions):
        of_runs = caption.values[benchmark.headline]
        values = of_runs[run] if run < len(of_runs) else ()
        for section, names in caption.groups.items():
            for question, name in enumerate(names[run] if values else ()):
                if name is not None:
                    cell = cells.setdefault(((section, name), place), [])
                    cell += values[question * metric.n_values : (question + 1) * metric.n_values]
    records = [captions[place] for _, place in cells]
    parts = metric.ratios(list(cells.values()), records)
    sums: dict[Group, list[float]] = {}
    for (group, _), values, of_cell in zip(cells, cells.values(), parts, strict=True):
        total = sums.setdefault(group, [0.0, 0.0, 0.0])
        top, bottom = of_cell[0]
        total[0] += top
        total[1] += bottom
        total[2] += len(values) / metric.n_values
    return {
        group: (metric.scale * top / bottom if bottom else float("nan"), int(n))
        for group, (top, bottom, n) in sums.items()
    }
