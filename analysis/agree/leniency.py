"""Which judge gives more, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Final

import numpy as np

from lmms_eval_captions.analysis.agree.agreement import main_agreement
from lmms_eval_captions.analysis.agree.findings import Leniency
from lmms_eval_captions.analysis.agree.shared_captions import SharedCaption
from lmms_eval_captions.analysis.agree.units import Measure, Units
from lmms_eval_captions.analysis.verdicts.parts import (
    Group,
    VideoParts,
    parts_of_captions,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.paired import holm, paired_interval
from lmms_eval_captions.metrics.parts import values_of_runs

_MOST_GROUPS: Final = 20
"""Groups of a section that are looked at, beside those that the benchmark names."""
_FEWEST_UNITS: Final = 20
"""Units that such a group must have."""
_SIDES: Final = (1, 0)
"""The judge, then the reference, among a shared caption's records."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the captions, or some of their questions."""

    section: str
    group: str
    captions: Sequence[SharedCaption]
    questions: Group | None = None
    """Of this group alone; all of them without."""


def leniency_of(
    benchmark: Benchmark[Any, Any],
    part: Part,
    metric: str,
    said: tuple[Units, Measure] | None = None,
) -> Leniency | None:
    """A metric under both judges over a part.

    Args:
        benchmark: Which one.
        part: Over what.
        metric: One of the benchmark's.
        said: What the judges said of these captions, ``None`` where their agreement is not shown.

    Returns:
        ``None`` where the metric has no value there, or is no ratio of sums.
    """
    scale = benchmark.metrics[metric].scale
    of_videos = [parts_of_side(benchmark, metric, part, side) for side in _SIDES]
    # The captions are the same, and so are the videos and their order.
    parts = [each.parts for each in of_videos if each is not None]
    if len(parts) < len(_SIDES):
        return None
    other, reference = parts
    difference = paired_interval(other, reference, scale=scale)
    if isnan(difference.difference):
        return None
    return Leniency(
        section=part.section,
        group=part.group,
        metric=metric,
        n_units=None if said is None else len(said[0].scored()),
        agreement=None if said is None else main_agreement(*said),
        reference=float(values_of_runs(reference, scale=scale).mean()),
        other=float(values_of_runs(other, scale=scale).mean()),
        difference=difference,
    )


def with_holm(rows: Sequence[Leniency]) -> list[Leniency]:
    """Rows with the p-values of groups corrected for how many groups a section shows."""
    families: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        if (row.section, row.group) != ALL:
            families.setdefault((row.section, row.metric), []).append(place)
    corrected: dict[int, float | None] = {}
    for places in families.values():
        p_values = holm([rows[place].difference.p_value for place in places])
        corrected.update(zip(places, p_values, strict=True))
    return [replace(row, p_holm=corrected.get(place)) for place, row in enumerate(rows)]


def parts_of_side(
    benchmark: Benchmark[Any, Any], metric: str, part: Part, side: int
) -> VideoParts | None:
    """What each video adds to the mean over captioners of a metric under one judge.

    Args:
        benchmark: Which one.
        metric: One of its metrics.
        part: Over what.
        side: The judge's place among the captions' records.
    """
    sets: dict[tuple[int, str], list[CaptionRecord]] = {}
    for caption in part.captions:
        task = "" if benchmark.pooled_group else caption.task
        sets.setdefault((caption.captioner, task), []).append(caption.records[side])
    if not sets:
        return None
    return parts_of_captions(benchmark, metric, list(sets.values()), part.questions)


def groups_of(benchmark: Benchmark[Any, Any], units: Units) -> tuple[list[Group], int]:
    """The groups that are looked at, and how many are left out.

    Captioners come first, then tasks, then the breakdown's groups in its order.
    """
    chosen: list[Group] = []
    n_left_out = 0
    aspects = {task.aspect for task in benchmark.tasks.values()}
    for section in ("captioners", "tasks", *benchmark.sections):
        if section == "tasks" and None not in aspects:
            continue  # the breakdown has a group for each
        names = Counter(units.groups.get(section, np.empty(0, object)).tolist())
        names.pop(None, None)
        if section in ("captioners", "tasks") and len(names) < 2:
            continue
        known = [name for name in benchmark.sections.get(section, ()) if name in names]
        others = [name for name, _ in names.most_common() if name not in known]
        large = others
        if section in benchmark.sections:
            large = [name for name in others[:_MOST_GROUPS] if names[name] >= _FEWEST_UNITS]
        n_left_out += len(others) - len(large)
        chosen.extend((section, name) for name in (*known, *large))
    return chosen, n_left_out


def parts_of_groups(
    captions: Sequence[SharedCaption], groups: Sequence[Group], captioners: Sequence[str]
) -> Iterator[Part]:
    """All captions, then each of some groups."""
    yield Part(*ALL, captions)
    for section, name in groups:
        if section == "captioners":
            own = [each for each in captions if captioners[each.captioner] == name]
            yield Part(section, name, own)
        elif section == "tasks":
            yield Part(section, name, [each for each in captions if each.task == name])
        else:
            # Others add nothing, and take as long.
            own = [each for each in captions if _is_in(each.records[0], section, name)]
            yield Part(section, name, own, (section, name))


def _is_in(record: CaptionRecord, section: str, name: str) -> bool:
    return any(name in names for names in record.groups.get(section, ()))
