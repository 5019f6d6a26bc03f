"""Where two captioners differ most: the videos, and the groups of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean
from typing import Any, Final

import numpy as np

from lmms_eval_captions.analysis.verdicts.parts import Group, parts_of
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.parts import influences_of_videos, values_of_runs

MOST: Final = 5
"""Videos, and groups of questions, that are shown in each direction."""
_CANDIDATES: Final = 4 * MOST
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
    metric = first.benchmark.metrics[first.benchmark.headline]
    if metric.ratios is None or metric.reads_fields:
        return []
    chosen = _candidates(first, other, but)
    of_first, of_other = _group_values(first, chosen), _group_values(other, chosen)
    n_questions = sum(_n_questions(first).values())
    rows = (
        Moved(*group, n, value, of_other[group][0], (of_other[group][0] - value) * n / n_questions)
        for group, (value, n) in of_first.items()
        # A group of all questions is none.
        if group in of_other and n < n_questions
    )
    return _most(row for row in rows if not isnan(row.effect))


def _candidates(first: Verdicts, other: Verdicts, but: str | None) -> set[Group]:
    """Groups that may be among those that moved most, by the share of all their questions.

    There may be thousands: to look at every question of each video of each would take long.
    """
    shares = [_shares(verdicts, but) for verdicts in (first, other)]
    effects = {
        group: (shares[1][group][0] - share) * n
        for group, (share, n) in shares[0].items()
        if group in shares[1]
    }
    ordered = sorted(effects, key=lambda group: effects[group])
    return {*ordered[:_CANDIDATES], *ordered[-_CANDIDATES:]}


def _shares(verdicts: Verdicts, but: str | None) -> dict[Group, tuple[float, int]]:
    """What the headline is in each group were all its questions of one video; and how many."""
    metric = verdicts.benchmark.metrics[verdicts.benchmark.headline]
    known: dict[object, tuple[float, float]] = {}
    sums: dict[Group, list[float]] = {}
    for caption, value, groups in _values_in_groups(verdicts, but):
        if value not in known:
            assert metric.ratios is not None  # noqa: S101 - see moved_groups
            known[value] = metric.ratios([[value]], [caption])[0][0]
        top, bottom = known[value]
        for group in groups:
            total = sums.setdefault(group, [0.0, 0.0, 0.0])
            total[0] += top
            total[1] += bottom
            total[2] += 1
    return {group: (top / bottom, int(n)) for group, (top, bottom, n) in sums.items() if bottom}


def _values_in_groups(
    verdicts: Verdicts, but: str | None
) -> Iterator[tuple[CaptionRecord, object, list[Group]]]:
    """Each value that the headline reads, with the groups that its question is in."""
    headline = verdicts.benchmark.headline
    n_values = verdicts.benchmark.metrics[headline].n_values
    for task in verdicts.tasks:
        for caption in task.captions:
            names = {section: of for section, of in caption.groups.items() if section != but}
            for run, values in enumerate(caption.values[headline]):
                for place, value in enumerate(values):
                    question = place // n_values
                    of_runs = ((section, runs[run][question]) for section, runs in names.items())
                    groups = [(section, name) for section, name in of_runs if name is not None]
                    yield caption, value, groups


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


def _group_values(verdicts: Verdicts, chosen: set[Group]) -> dict[Group, tuple[float, int]]:
    """The headline in some groups, and their questions, in one pass.

    Of a mean of several tasks, it is the mean over those that have such a question.
    """
    sets: Sequence[Sequence[TaskVerdicts]] = (
        [verdicts.tasks] if verdicts.is_pooled else [(task,) for task in verdicts.tasks]
    )
    values: dict[Group, list[float]] = {}
    n_questions: dict[Group, int] = {}
    for tasks in sets:
        captions = [caption for task in tasks for caption in task.captions]
        for group, (value, n) in _groups_of_task(verdicts.benchmark, captions, chosen).items():
            values.setdefault(group, []).append(value)
            n_questions[group] = n_questions.get(group, 0) + n
    return {group: (fmean(of_tasks), n_questions[group]) for group, of_tasks in values.items()}


def _groups_of_task(
    benchmark: Benchmark[Any, Any], captions: Sequence[CaptionRecord], chosen: set[Group]
) -> dict[Group, tuple[float, int]]:
    n_runs = max((len(caption.values[benchmark.headline]) for caption in captions), default=0)
    runs = [_groups_of_run(benchmark, captions, chosen, run) for run in range(n_runs)]
    return {
        group: (fmean(of_run[group][0] for of_run in runs if group in of_run), n)
        for group, (_, n) in (runs[0] if runs else {}).items()
    }


def _groups_of_run(
    benchmark: Benchmark[Any, Any],
    captions: Sequence[CaptionRecord],
    chosen: set[Group],
    run: int,
) -> dict[Group, tuple[float, int]]:
    metric = benchmark.metrics[benchmark.headline]
    cells: dict[Group, dict[int, list[object]]] = {}
    for place, caption in enumerate(captions):
        of_runs = caption.values[benchmark.headline]
        values = of_runs[run] if run < len(of_runs) else ()
        for section, names in caption.groups.items():
            for question, name in enumerate(names[run] if values else ()):
                if name is not None and (section, name) in chosen:
                    cell = cells.setdefault((section, name), {}).setdefault(place, [])
                    cell += values[question * metric.n_values : (question + 1) * metric.n_values]
    found = {}
    for group, of_captions in cells.items():
        records = [captions[place] for place in of_captions]
        assert metric.ratios is not None  # noqa: S101 - see moved_groups
        parts = [pair for (pair,) in metric.ratios(list(of_captions.values()), records)]
        bottom = sum(pair[1] for pair in parts)
        value = metric.scale * sum(pair[0] for pair in parts) / bottom if bottom else nan
        found[group] = value, sum(map(len, of_captions.values())) // metric.n_values
    return found
