"""Whether each question about each captioner's captions got the same verdict in every judge run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.analysis.verdicts.parts import Group
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.agreement import (
    KNOWN_DIFFERENT,
    KNOWN_SAME,
    UNKNOWN,
    same_verdict,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Asked = tuple[str, str, str, int]
"""A question: its task, its video, its text, and how often that text stood before it."""
TASKS: Final = "tasks"
"""Section of a group's tasks, beside those of the benchmark's breakdown."""
_OPINION: Final = {True: KNOWN_SAME, False: KNOWN_DIFFERENT, None: UNKNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinions:
    """A task or a group, of which several captioners' captions were judged."""

    name: str
    captioners: tuple[str, ...]
    verdicts: tuple[Verdicts, ...]
    """Of each captioner."""
    results: tuple[Path, ...]
    """The results file of each captioner's run."""
    n_runs: int
    """Judge runs that are compared: as many as every captioner has."""
    asked: list[Asked]
    """Every question that was asked about a caption of any of them."""
    groups: Mapping[Group, list[int]]
    """Group of the breakdown to the places of its questions in ``asked``."""
    same: Mapping[str, NDArray[np.int8]]
    """Metric, the headline first, to what is known of each question's values, shape (n_captioners,
    n_questions), see :func:`consistent_times`. One of several that read the same stands for all."""
    n_empty: int
    """Captions without a word, on which benchmarks agree by definition."""

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """The benchmark of all tasks."""
        return self.verdicts[0].benchmark

    @property
    def headline(self) -> NDArray[np.int8]:
        """What is known of each question's verdict."""
        return self.same[self.benchmark.headline]


@dataclass(slots=True)
class Occurrences:
    """How often names were met, by video."""

    _met: Counter[tuple[str, str]] = field(default_factory=Counter)

    def next_of(self, video_id: str, text: str) -> tuple[str, str, int]:
        """A question about a video, told from earlier ones of the same text."""
        place = self._met[video_id, text]
        self._met[video_id, text] += 1
        return video_id, text, place


def opinions_of(name: str, captioners: Sequence[Captioner], *, within: float) -> Opinions:
    """What is known of the stability of a task or a group.

    Args:
        name: Its name.
        captioners: At least one, all of which have it.
        within: Numbers are the same that are at most so far apart, as a share of their scale.

    Raises:
        DataError: If verdicts cannot be read, or it is not known what was asked.
    """
    verdicts = [captioner.verdicts(name) for captioner in captioners]
    benchmark = verdicts[0].benchmark
    if not benchmark.counts_ahead:
        raise DataError(
            f"{name}: the judge's replies say what it is asked of a caption, so that no question "
            "can be followed from run to run; name other tasks by --tasks"
        )
    n_runs = min(
        max(_n_runs(benchmark, caption) for task in of.tasks for caption in task.captions)
        for of in verdicts
    )
    if not n_runs:
        raise DataError(f"{name}: expected judged captions, and one captioner has none")
    metrics = list(dict.fromkeys(
        map(benchmark.source_of_values, (benchmark.headline, *benchmark.metrics))
    ))  # fmt: skip
    places: dict[Asked, int] = {}
    groups: dict[Group, list[int]] = {}
    found: list[list[tuple[int, list[int]]]] = []
    for of_captioner in verdicts:
        rows: list[tuple[int, list[int]]] = []
        for asked, names, known in _questions(of_captioner, metrics, n_runs, within):
            is_new = asked not in places
            place = places.setdefault(asked, len(places))
            rows.append((place, known))
            for group in names if is_new else ():
                groups.setdefault(group, []).append(place)
        found.append(rows)
    same = np.full((len(metrics), len(verdicts), len(places)), UNKNOWN, np.int8)
    for captioner, rows in enumerate(found):
        of_rows = [place for place, _ in rows]
        same[:, captioner, of_rows] = np.asarray([known for _, known in rows], np.int8).T
    n_empty = sum(c.n_empty for of in verdicts for task in of.tasks for c in task.captions)
    return Opinions(
        name=name,
        captioners=tuple(captioner.name for captioner in captioners),
        verdicts=tuple(verdicts),
        results=tuple(captioner.runs[name].path for captioner in captioners),
        n_runs=n_runs,
        asked=list(places),
        groups=groups,
        same=dict(zip(metrics, same, strict=True)),
        n_empty=n_empty,
    )


def questions_of(task: TaskVerdicts, n_runs: int) -> Iterator[tuple[CaptionRecord, list[Asked]]]:
    """The questions of each caption of a task, without captions that have fewer judge runs.

    Args:
        task: What was judged.
        n_runs: Judge runs that are looked at, >= 1.

    Raises:
        DataError: If it is not known what was asked.
    """
    occurrences = Occurrences()
    for caption in task.captions:
        if _n_runs(task.benchmark, caption) >= n_runs:
            texts = _texts(task, caption)
            yield (
                caption,
                [(task.task, *occurrences.next_of(caption.video_id, text)) for text in texts],
            )


def _questions(
    verdicts: Verdicts, metrics: Sequence[str], n_runs: int, within: float
) -> Iterator[tuple[Asked, list[Group], list[int]]]:
    """Each question of a captioner with its groups and, for each metric, what is known of it."""
    shows_tasks = len(verdicts.tasks) > 1 and not _has_section_of_tasks(verdicts)
    for task in verdicts.tasks:
        of_task = [(TASKS, task.task)] if shows_tasks else []
        for caption, questions in questions_of(task, n_runs):
            known = [_known(task.benchmark, metric, caption, n_runs, within) for metric in metrics]
            for place, asked in enumerate(questions):
                groups = [ALL, *of_task, *_groups(caption, place)]
                yield asked, groups, [of_metric[place] for of_metric in known]


def _has_section_of_tasks(verdicts: Verdicts) -> bool:
    """Whether a section of the breakdown has a group for each task already."""
    for section in verdicts.benchmark.sections:
        names = [
            {name for caption in task.captions for name in caption.groups.get(section, [[]])[0]}
            for task in verdicts.tasks
        ]
        if all(len(of_task) == 1 for of_task in names) and len(set().union(*names)) == len(names):
            return True
    return False


def _n_runs(benchmark: Benchmark[Any, Any], caption: CaptionRecord) -> int:
    return len(caption.values[benchmark.headline])


def _texts(task: TaskVerdicts, caption: CaptionRecord) -> Sequence[str]:
    benchmark = task.benchmark
    n_values = benchmark.metrics[benchmark.headline].n_values
    lengths = {len(run) for run in caption.values[benchmark.headline]}
    if lengths != {len(caption.asked) * n_values}:
        raise DataError(
            f"{task.task}, video {caption.video_id!r:.80}: expected the text of each question "
            f"beside its verdicts, got {len(caption.asked)} texts; score the captions again, which "
            "asks the judge nothing that it was asked before"
        )
    return caption.asked


def _known(
    benchmark: Benchmark[Any, Any],
    metric: str,
    caption: CaptionRecord,
    n_runs: int,
    within: float,
) -> list[int]:
    """What is known of each question of a caption."""
    known = benchmark.metrics[metric]
    apart = within * known.span / known.scale
    columns = zip(*caption.values[metric][:n_runs], strict=True)
    of_values = [same_verdict(column, within=apart) for column in columns]
    step = known.n_values
    return [_OPINION[_all(of_values[i : i + step])] for i in range(0, len(of_values), step)]


def _all(known: Iterable[bool | None]) -> bool | None:
    """Whether all values of a question are the same: not where one differs, whatever the others."""
    values = set(known)
    return False if False in values else None if None in values else True


def _groups(caption: CaptionRecord, place: int) -> Iterator[Group]:
    for section, runs in caption.groups.items():
        name = runs[0][place]
        if name is not None:
            yield section, name
