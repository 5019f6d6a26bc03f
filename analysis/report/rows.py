"""The captions that all captioners wrote of a video in a task, question beside question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from statistics import fmean
from typing import Any, Final, Literal

from lmms_eval_captions.analysis.report.sources import View
from lmms_eval_captions.analysis.verdicts.alignment import Key, numbered
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.metrics.agreement import same_verdict

Kind = Literal["right", "partly", "missed", "wrong", "other"]
"""What a verdict says of a question: the caption answers it; in part; does not; wrongly."""

RATED: Final = 253
"""Code of a question that has numbers and no label."""
UNSCORED: Final = 254
NOT_ASKED: Final = 255
_WITHIN: Final = 0.05
"""Part of their scale that numbers of judge runs may be apart and be the same, as in ``stability``.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One video in one task."""

    task: str
    video_id: str
    place: int
    """How many captions of the video stood before."""
    records: Sequence[CaptionRecord | None]
    """One for each captioner."""
    asked: Sequence[str]
    """The text of each question that was asked of any of them."""
    places: Sequence[Sequence[int | None]]
    """For each captioner, where each of these questions stands in its record."""

    def groups(self, section: str) -> list[str | None]:
        """The group of each question in a section of the breakdown."""
        found: list[str | None] = [None] * len(self.asked)
        for record, places in zip(self.records, self.places, strict=True):
            runs = record.groups.get(section) if record is not None else None
            for question, place in enumerate(places):
                if runs and place is not None and place < len(runs[0]) and found[question] is None:
                    found[question] = runs[0][place]
        return found


def kinds_of(benchmark: Benchmark[Any, Any]) -> dict[str, Kind]:
    """The labels of a benchmark's headline, in their order, to what they say."""
    sets: tuple[tuple[Kind, frozenset[object]], ...] = (
        ("right", benchmark.right),
        ("missed", benchmark.missed),
        ("wrong", benchmark.wrong),
    )
    is_told = any(labels for _, labels in sets)
    return {
        label: next(
            (kind for kind, labels in sets if label in labels), "partly" if is_told else "other"
        )
        for label in benchmark.metrics[benchmark.headline].labels
    }


def rows_of(view: View, task: str) -> list[Row]:
    """The videos of a task of a view, in the order in which captioners have them.

    Args:
        view: Has the captioners' verdicts.
        task: One of its tasks.
    """
    several = view.of_task(task)
    benchmark = next(one for one in several if one is not None).benchmark
    by_key = [_by_key(one) for one in several]
    keys = dict.fromkeys(key for captions in by_key for key in captions)
    return [_row(benchmark, task, key, [captions.get(key) for captions in by_key]) for key in keys]


def n_questions_of(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> int:
    """Questions of a caption, of the judge run that has most."""
    runs = record.values.get(benchmark.headline, ())
    return max(map(len, runs), default=0) // benchmark.metrics[benchmark.headline].n_values


def n_runs_of(verdicts: Verdicts | None) -> int:
    """Judge runs of a task or group, of the caption that has most."""
    tasks = () if verdicts is None else verdicts.tasks
    records = (caption for task in tasks for caption in task.captions)
    headline = "" if verdicts is None else verdicts.benchmark.headline
    return max((len(record.values.get(headline, ())) for record in records), default=0)


def codes_of(
    benchmark: Benchmark[Any, Any], labels: Mapping[str, int], row: Row, captioner: int, run: int
) -> bytes:
    """What a judge run says of each question of a row, a byte each.

    Args:
        benchmark: The row's.
        labels: Each label to its code.
        row: The row.
        captioner: Whose caption.
        run: Judge run.
    """
    record = row.records[captioner]
    values = _values(benchmark, record, run)
    n_values = benchmark.metrics[benchmark.headline].n_values
    return bytes(
        NOT_ASKED
        if place is None
        else _code(values[place * n_values : (place + 1) * n_values], labels)
        for place in row.places[captioner]
    )


def value_of(benchmark: Benchmark[Any, Any], metric: str, record: CaptionRecord) -> float | None:
    """A metric of one caption alone, mean over judge runs; ``None`` where it has none."""
    known = benchmark.metrics[metric]
    if known.unavailable([record]) is not None:
        return None
    scores = [known.score([run], [record]) for run in record.values.get(metric, ()) if run]
    found = [score for score in scores if not isnan(score)]
    value = fmean(found) if found else None
    return value if value is not None and isfinite(value) else None


def flips_of(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> tuple[int, int]:
    """Questions whose verdict differs between judge runs, and all of which that is known."""
    runs = record.values.get(benchmark.headline, ())
    metric = benchmark.metrics[benchmark.headline]
    if len(runs) < 2 or not benchmark.counts_ahead or len({*map(len, runs)}) > 1:
        return 0, 0
    within = _WITHIN * metric.span / metric.scale
    same = [same_verdict(column, within=within) for column in zip(*runs, strict=True)]
    questions = [same[i : i + metric.n_values] for i in range(0, len(same), metric.n_values)]
    n_differ = sum(False in of for of in questions)
    return n_differ, n_differ + sum(all(of) for of in questions)


def _by_key(task: TaskVerdicts | None) -> dict[Key, CaptionRecord]:
    captions = [] if task is None else task.captions
    keys = numbered([caption.video_id for caption in captions])
    return dict(zip(keys, captions, strict=True))


def _row(
    benchmark: Benchmark[Any, Any], task: str, key: Key, records: Sequence[CaptionRecord | None]
) -> Row:
    of_each = [list(_questions(benchmark, record, i)) for i, record in enumerate(records)]
    known = dict.fromkeys(question for questions in of_each for question in questions)
    places: list[Sequence[int | None]] = []
    for questions in of_each:
        at = {question: place for place, question in enumerate(questions)}
        places.append([at.get(question) for question in known])
    return Row(task, *key, records, [text for text, _, _ in known], places)


def _questions(
    benchmark: Benchmark[Any, Any], record: CaptionRecord | None, captioner: int
) -> Iterator[tuple[str, int, int]]:
    """What tells each question of a caption from the others about the video.

    Where the judge's replies say what is asked, no two captioners have a question in common.
    """
    if record is None:
        return
    n_questions = n_questions_of(benchmark, record)
    if benchmark.counts_ahead and len(record.asked) == n_questions:
        for text, place in numbered(record.asked):
            yield text, place, -1
    else:
        for place in range(n_questions):
            yield "", place, captioner


def _values(
    benchmark: Benchmark[Any, Any], record: CaptionRecord | None, run: int
) -> Sequence[Any]:
    runs = () if record is None else record.values.get(benchmark.headline, ())
    return runs[run] if run < len(runs) else ()


def _code(values: Sequence[Any], labels: Mapping[str, int]) -> int:
    if not values:
        return NOT_ASKED
    if any(value is None for value in values):
        return UNSCORED
    value = values[0]
    return labels.get(value, RATED) if isinstance(value, str) else RATED
