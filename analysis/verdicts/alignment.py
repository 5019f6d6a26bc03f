"""Verdicts on several captioners, cut down to the questions on which all of them have one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

Key = tuple[str, int]
"""A name, and how often it stood before."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What verdicts have in common, and what was left out."""

    n_videos: int = 0
    """Different videos that all captioners have."""
    n_captions: int = 0
    n_questions: int = 0
    """Those that all have a verdict on."""
    n_other_captions: int = 0
    """Captions that not all have: left out with their questions."""
    n_other_questions: int = 0
    """Further questions that were not asked of all."""
    n_unscored: int = 0
    """Further questions on which one captioner has no verdict in any judge run."""
    n_other_answers: int = 0
    """Captions kept of which the same was asked, but with another gold answer, or in another
    category: their numbers are not comparable."""

    def words(self) -> str:
        """What was left out, empty where that is nothing.

        >>> Counts(n_other_captions=2, n_unscored=1).words()
        '2 captions that not all have, 1 question without a verdict in one of them'
        """
        told = (
            (self.n_other_captions, "caption", "that not all have"),
            (self.n_other_questions, "question", "not asked of all"),
            (self.n_unscored, "question", "without a verdict in one of them"),
        )
        return ", ".join(f"{n:,} {what}{'' if n == 1 else 's'} {why}" for n, what, why in told if n)


@dataclass(frozen=True, slots=True)
class Aligned:
    """A task or a group of several captioners, on the same captions and questions."""

    verdicts: tuple[Verdicts, ...]
    """One for each captioner: the same tasks with equal captions and questions in equal order."""
    counts: Counts


def align(several: Sequence[Verdicts]) -> Aligned:
    """Verdicts on several captioners, on what all of them have.

    Captions belong together by their video, questions by their text; the second of the same name
    belongs to the second. A question without a verdict in any judge run of one captioner is left
    out of all; where it has one of several values, the others are ``None`` in all.

    Args:
        several: The same task or group of at least one captioner.

    Raises:
        DataError: If they are not of the same tasks.
    """
    names = [[task.task for task in verdicts.tasks] for verdicts in several]
    if any(sorted(other) != sorted(names[0]) for other in names):
        of_each = "; ".join(", ".join(tasks) for tasks in names)
        raise DataError(
            f"{several[0].name}: expected the same tasks in all runs, got {of_each}; compare the "
            "tasks that all have by --tasks"
        )
    tasks: list[list[TaskVerdicts]] = [[] for _ in several]
    counts = Counts()
    videos: set[str] = set()
    for name in names[0]:
        of_task = [
            next(task for task in verdicts.tasks if task.task == name) for verdicts in several
        ]
        captions, more = align_tasks(of_task)
        counts = _sum(counts, more)
        videos.update(caption.video_id for caption in captions[0])
        for place, task in enumerate(of_task):
            tasks[place].append(replace(task, captions=captions[place]))
    aligned = (replace(v, tasks=tuple(t)) for v, t in zip(several, tasks, strict=True))
    return Aligned(tuple(aligned), replace(counts, n_videos=len(videos)))


def align_tasks(several: Sequence[TaskVerdicts]) -> tuple[list[list[CaptionRecord]], Counts]:
    """The captions of one task that all captioners have, with the same questions.

    Args:
        several: The task of each captioner.

    Returns:
        For each captioner its captions, in the order of the first's, and what was left out.
    """
    benchmark = several[0].benchmark
    by_key = [dict(_keyed(task.captions)) for task in several]
    common = [key for key in by_key[0] if all(key in other for other in by_key)]
    n_all = len(set().union(*by_key))
    kept: list[list[CaptionRecord]] = [[] for _ in several]
    n_questions = n_other = n_unscored = n_answers = 0
    for key in common:
        records = [captions[key] for captions in by_key]
        if _is_equal(benchmark, records):
            aligned = records
        else:
            aligned, others, unscored = _cut(benchmark, records)
            n_other += others
            n_unscored += unscored
        is_same = len({tuple(record.asked) for record in records}) == 1
        n_answers += is_same and len({record.questions for record in records}) > 1
        n_questions += _n_questions(benchmark, aligned[0])
        for captions, record in zip(kept, aligned, strict=True):
            captions.append(record)
    n_videos = len({video for video, _ in common})
    counts = Counts(
        n_videos, len(common), n_questions, n_all - len(common), n_other, n_unscored, n_answers
    )
    return kept, counts


def _keyed(captions: Sequence[CaptionRecord]) -> Iterator[tuple[Key, CaptionRecord]]:
    """Captions that were judged, by video and how many of it stood before."""
    names = numbered([caption.video_id for caption in captions])
    for key, caption in zip(names, captions, strict=True):
        # One that was left out has no values, not even empty ones of a judge run.
        if not caption.n_dropped and any(caption.values.values()):
            yield key, caption


def numbered(names: Sequence[str]) -> list[Key]:
    """Names with how often each stood before.

    >>> numbered(["a", "b", "a"])
    [('a', 0), ('b', 0), ('a', 1)]
    """
    if len(set(names)) == len(names):
        return [(name, 0) for name in names]
    n_before: Counter[str] = Counter()
    keys = []
    for name in names:
        keys.append((name, n_before[name]))
        n_before[name] += 1
    return keys


def _n_questions(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> int:
    n_values = benchmark.metrics[benchmark.headline].n_values
    return len(record.values[benchmark.headline][0]) // n_values


def _is_equal(benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]) -> bool:
    """Whether nothing is to be left out of captions of a video."""
    if not benchmark.counts_ahead:
        return True  # the judge's replies say what is asked: there is nothing to align by
    first = records[0]
    return all(
        record.asked == first.asked
        and not any(None in run for runs in record.values.values() for run in runs)
        for record in records
    ) and len(first.asked) == _n_questions(benchmark, first)


def _cut(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]
) -> tuple[list[CaptionRecord], int, int]:
    """Captions of a video without the questions that not all have a verdict on.

    Returns:
        The captions, how many questions were not asked of all, and on how many of the others one
        has no verdict.
    """
    places = [_places(benchmark, record) for record in records]
    keys = [key for key in places[0] if all(key in other for other in places)]
    n_other = len(set().union(*places)) - len(keys)
    scored = {
        name: _scored_in_all(name, metric.n_values, records, places, keys)
        for name, metric in benchmark.metrics.items()
    }
    is_kept = [any(flags) for flags in scored[benchmark.headline]]
    cut = [
        _selected(benchmark, record, [of[key] for key in keys], scored, is_kept)
        for record, of in zip(records, places, strict=True)
    ]
    return cut, n_other, is_kept.count(False)


def _places(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> dict[Key, int]:
    """Each question of a caption to where it stands."""
    n_questions = _n_questions(benchmark, record)
    # Of a caption that an older version could not have judged it is not logged what was asked.
    texts = record.asked if len(record.asked) == n_questions else [""] * n_questions
    return {key: place for place, key in enumerate(numbered(texts))}


def _scored_in_all(
    metric: str,
    n_values: int,
    records: Sequence[CaptionRecord],
    places: Sequence[dict[Key, int]],
    keys: Sequence[Key],
) -> list[list[bool]]:
    """Whether all captioners have a value in some judge run, shape (n_questions, n_values)."""
    captions = [(record.values[metric], of) for record, of in zip(records, places, strict=True)]
    return [
        [
            all(
                any(run[of[key] * n_values + k] is not None for run in runs)
                for runs, of in captions
            )
            for k in range(n_values)
        ]
        for key in keys
    ]


def _selected(
    benchmark: Benchmark[Any, Any],
    record: CaptionRecord,
    places: Sequence[int],
    scored: dict[str, list[list[bool]]],
    is_kept: Sequence[bool],
) -> CaptionRecord:
    """A caption with some of its questions, in this order, and only values that all have."""
    chosen = [(q, place) for q, place in enumerate(places) if is_kept[q]]
    values = {
        name: [
            [
                run[place * metric.n_values + k] if scored[name][q][k] else None
                for q, place in chosen
                for k in range(metric.n_values)
            ]
            for run in record.values[name]
        ]
        for name, metric in benchmark.metrics.items()
    }
    groups = {
        section: [[names[place] for _, place in chosen] for names in runs]
        for section, runs in record.groups.items()
    }
    is_told = len(record.asked) == _n_questions(benchmark, record)
    asked = [record.asked[place] for _, place in chosen] if is_told else ()
    return replace(record, values=values, groups=groups, asked=asked)


def _sum(a: Counts, b: Counts) -> Counts:
    return Counts(*(getattr(a, name) + getattr(b, name) for name in Counts.__dataclass_fields__))
