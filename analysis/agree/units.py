"""What judges said, unit by unit: a unit is one question of one caption in one judge run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.analysis.agree.shared_captions import SharedCaption
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.metrics.clusters import Ratings, ratings_of

Said = str | float | None
"""A label or a number; ``None`` is unscored."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a judge says of a question."""

    metric: str
    """The first metric that reads it."""
    is_label: bool
    """Whether it is a label, else a number."""
    labels: tuple[str, ...]
    """All that a label can be, where the benchmark says it."""

    @property
    def name(self) -> str:
        """As it is shown."""
        return "verdict" if self.is_label else self.metric


@dataclass(frozen=True, slots=True)
class Units:
    """What several judges, or the runs of one, said of the same units."""

    ratings: Ratings
    videos: NDArray[np.intp]
    """Shape (n_units,): the place of each unit's video."""
    groups: dict[str, NDArray[np.object_]]
    """Sections of the breakdown, and ``captioners`` and ``tasks``, to each unit's group in them;
    ``None`` where it is in none."""

    def of(self, chosen: NDArray[np.bool_]) -> Units:
        """Some of the units."""
        groups = {section: names[chosen] for section, names in self.groups.items()}
        return Units(self.ratings.of_units(chosen), self.videos[chosen], groups)

    def scored(self) -> Units:
        """Those of which all said something."""
        return self.of(np.all(self.ratings.codes >= 0, axis=1))

    def __len__(self) -> int:
        return len(self.ratings.codes)


def measures_of(benchmark: Benchmark[Any, Any], captions: Sequence[SharedCaption]) -> list[Measure]:
    """What judges of a benchmark say: labels, numbers or both, each once, the headline's first.

    Nothing where a judge's own replies say what is asked: there is nothing to set side by side.
    """
    if not benchmark.counts_ahead:
        return []
    measures = []
    for name, metric in benchmark.metrics.items():
        if benchmark.source_of_values(name) != name:
            continue
        runs = (run for caption in captions for run in caption.records[0].values[name])
        values = (value for run in runs for value in run if value is not None)
        is_label = bool(metric.labels) or isinstance(next(values, None), str)
        measures.append(Measure(name, is_label, tuple(metric.labels)))
    main = benchmark.source_of_values(benchmark.headline)
    return sorted(measures, key=lambda measure: measure.metric != main)


def units_of(
    benchmark: Benchmark[Any, Any],
    captions: Sequence[SharedCaption],
    measure: Measure,
    captioners: Sequence[str],
) -> Units:
    """What the judges of captions said, in as many judge runs as the most diligent has.

    Where judges differ in the number of their runs, the runs of the others count again.
    """
    n_values = benchmark.metrics[measure.metric].n_values
    said: list[tuple[Said, ...]] = []
    sections = dict.fromkeys(name for each in captions for name in each.records[0].groups)
    groups: dict[str, list[str | None]] = {section: [] for section in sections}
    owners: list[int] = []
    for place, caption in enumerate(captions):
        runs = [record.values[measure.metric] for record in caption.records]
        for run in range(max(map(len, runs)) if all(runs) else 0):
            own = (_units(of_judge[run % len(of_judge)], n_values) for of_judge in runs)
            said.extend(zip(*own, strict=True))
            n_units = len(said) - len(owners)
            owners.extend([place] * n_units)
            for section, names in groups.items():
                of_runs = caption.records[0].groups.get(section)
                names.extend(of_runs[run % len(of_runs)] if of_runs else [None] * n_units)
    n_raters = len(captions[0].records) if captions else 0
    units = _units_of(said, captions, owners, measure, n_raters)
    units.groups.update({name: np.array(values, object) for name, values in groups.items()})
    of_captions = {
        "captioners": [captioners[caption.captioner] for caption in captions],
        "tasks": [caption.task for caption in captions],
    }
    for section, of_caption in of_captions.items():
        units.groups[section] = np.array(of_caption, object)[np.array(owners, np.intp)]
    return units


def units_of_runs(
    benchmark: Benchmark[Any, Any], captions: Sequence[SharedCaption], measure: Measure
) -> Units:
    """What one judge said in its runs, which are the raters.

    Args:
        benchmark: Whose captions these are.
        captions: With one judge; those with fewer runs than others are left out.
        measure: What is looked at.
    """
    n_values = benchmark.metrics[measure.metric].n_values
    n_runs = max((len(each.records[0].values[measure.metric]) for each in captions), default=0)
    said: list[tuple[Said, ...]] = []
    owners: list[int] = []
    for place, caption in enumerate(captions):
        runs = [_units(run, n_values) for run in caption.records[0].values[measure.metric]]
        if len(runs) == n_runs:
            said.extend(zip(*runs, strict=True))
            owners.extend([place] * (len(said) - len(owners)))
    return _units_of(said, captions, owners, measure, n_runs)


def _units_of(
    said: Sequence[tuple[Said, ...]],
    captions: Sequence[SharedCaption],
    owners: Sequence[int],
    measure: Measure,
    n_raters: int,
) -> Units:
    ratings = ratings_of(said, measure.labels)
    if not said:
        ratings = Ratings(np.empty((0, n_raters), dtype=np.intp), ratings.categories)
    places = {video: i for i, video in enumerate(dict.fromkeys(each.video for each in captions))}
    videos = np.array([places[each.video] for each in captions], dtype=np.intp)
    return Units(ratings, videos[np.array(owners, dtype=np.intp)], {})


def _units(values: Sequence[Any], n_values: int) -> Sequence[Said]:
    """One value for each question: the mean where a metric reads several."""
    if n_values == 1:
        return values
    chunks = (values[start : start + n_values] for start in range(0, len(values), n_values))
    return [None if None in chunk else fmean(chunk) for chunk in chunks]
