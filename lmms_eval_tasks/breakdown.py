"""A benchmark's metrics for all questions and for every group of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from statistics import fmean, pstdev
from typing import Any, Final, Protocol

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item, Names, Values
from lmms_eval_captions.lmms_eval_tasks.scoring import by_run, has_score, signature_of
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedTask

Figure = float | int | None
"""A metric's mean over judge runs or a count; ``None`` where the metric has no value."""
Breakdown = dict[str, dict[str, dict[str, Figure]]]
"""Section (such as ``categories``), to a group's name, to its figures."""

N_QUESTIONS: Final = "n_questions"
N_UNSCORED: Final = "n_unscored"
_DEVIATION: Final = "_std"
_MOST_ROWS: Final = 40
"""Groups of a section that are shown; the file holds all."""


Cell = list[list[tuple["Grouped", list[int]]]]
"""The questions of one group: for each judge run, captions with the places of these questions."""


class Grouped(Protocol):
    """What a breakdown needs of a caption; a :class:`CaptionRecord` has it."""

    @property
    def values(self) -> Mapping[str, Values]:
        """Metric to what it reads."""

    @property
    def groups(self) -> Mapping[str, Names]:
        """Section to the group of each question."""


def breakdown_item(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> Item:
    """A caption's item of ``breakdown``: all that metrics read, once."""
    return record.kept(dict.fromkeys(map(benchmark.source_of_values, benchmark.metrics)))


def read_breakdown_item(benchmark: Benchmark[Any, Any], item: Item) -> CaptionRecord:
    """The record of a caption's item of ``breakdown``, with what every metric reads."""
    record = CaptionRecord.read(item)
    values = {name: record.values[benchmark.source_of_values(name)] for name in benchmark.metrics}
    return replace(record, values=values)


def report(finished: FinishedTask) -> str:
    """Show all numbers of a task or group, and keep them for the end of the run.

    Args:
        finished: The task, or the group.

    Returns:
        Where the breakdown is, or why there is none.
    """
    benchmark, records = finished.benchmark, finished.records
    task, note = records[0].task, finished.note
    THIS_RUN.tasks[task] = finished
    THIS_RUN.breakdowns.pop(task, None)
    if not has_score(records):
        return "none: there is no score"
    signature = signature_of(records, finished.args)
    n_dropped = sum(record.n_dropped for record in records)
    breakdown = break_down(benchmark, records, records)
    head = {
        "task": task,
        "signature": signature,
        **({"note": note} if note else {}),
        **({"n_dropped": n_dropped} if n_dropped else {}),
        "runs": _runs(benchmark, records),
        **benchmark.summary(records),
    }
    logger.info("{}\n{}{}", signature, table_of(breakdown), f"\n{note}" if note else "")
    THIS_RUN.breakdowns[task] = {**head, **breakdown}
    return "written where lmms-eval saves its results"


def break_down(
    benchmark: Benchmark[Any, Any],
    captions: Iterable[Grouped],
    records: Sequence[CaptionRecord] = (),
) -> Breakdown:
    """Every metric for every group of questions.

    Args:
        benchmark: Its metrics, and its sections in their order.
        captions: What was judged.
        records: The task's records where a metric needs them.

    Returns:
        For each group that has questions, those that the benchmark names and then the others, the
        largest first: each metric's mean over judge runs, where there are
        several also its deviation as ``<metric>_std``, the questions and, over all runs, how many
        of them are unscored.
    """
    judged = list(captions)
    n_runs = max(map(_n_runs, judged), default=0)
    cells: dict[tuple[str, str], Cell] = {}
    for caption in judged:
        for run in range(_n_runs(caption)):
            for pair, places in _places(benchmark, caption, run).items():
                runs = cells.setdefault(pair, [[] for _ in range(n_runs)])
                runs[run].append((caption, places))
    section, name = ALL
    order = {section: (name,), **benchmark.sections}
    breakdown: Breakdown = {section: {} for section in order}
    for (section, name), runs in cells.items():
        breakdown.setdefault(section, {})[name] = _figures(benchmark, runs, records)
    return {
        section: _in_order(groups, order.get(section, ())) for section, groups in breakdown.items()
    }


def table_of(breakdown: Breakdown) -> str:
    """A breakdown as text, a line for each group.

    >>> figures = {"ar": 50.0, "ir": None, "n_questions": 2, "n_unscored": 0}
    >>> print(table_of({"overall": {"all": figures}}))
    overall                                ar      ir  questions  unscored
      all                               50.00       -          2         0
    """
    return "\n".join(_lines(breakdown))


def _lines(breakdown: Breakdown) -> Iterator[str]:
    for section, groups in breakdown.items():
        shown = list(groups.items())[:_MOST_ROWS]
        if not shown:
            continue
        metrics = [name for name in shown[0][1] if not _is_beside(name)]
        rows = [
            (
                f"  {name}",
                *(_shown(figures[metric]) for metric in metrics),
                *(f"{figures[count]:,}" for count in (N_QUESTIONS, N_UNSCORED)),
            )
            for name, figures in shown
        ]
        widths = (33, *(max(8, len(metric) + 1) for metric in metrics), 11, 10)
        header = (section, *metrics, "questions", "unscored")
        yield from text_table([header, *rows], n_left=1, gap="", widths=widths)
        if len(groups) > len(shown):
            yield f"  and {len(groups) - len(shown):,} more"


def _is_beside(name: str) -> bool:
    """Whether a figure is a count or a deviation."""
    return name in (N_QUESTIONS, N_UNSCORED) or name.endswith(_DEVIATION)


def _shown(value: Figure) -> str:
    return "-" if value is None else f"{value:.2f}"


def _in_order(
    groups: Mapping[str, dict[str, Figure]], first: Sequence[str]
) -> dict[str, dict[str, Figure]]:
    """Groups in the order of the benchmark, those that it does not name behind, largest first."""
    others = [name for name in groups if name not in first]
    others.sort(key=lambda name: -(groups[name][N_QUESTIONS] or 0))
    return {name: groups[name] for name in (*first, *others) if name in groups}


def _n_runs(caption: Grouped) -> int:
    return max(map(len, caption.values.values()), default=0)


def _places(
    benchmark: Benchmark[Any, Any], caption: Grouped, run: int
) -> dict[tuple[str, str], list[int]]:
    """Section and group to the places of the caption's questions that count there in a run."""
    headline = benchmark.metrics[benchmark.headline]
    n_questions = len(caption.values[benchmark.headline][run]) // headline.n_values
    places = {ALL: list(range(n_questions))} if n_questions else {}
    for section, names in caption.groups.items():
        for place, name in zip(range(n_questions), names[run], strict=True):
            if name is not None:
                places.setdefault((section, name), []).append(place)
    return places


def _figures(
    benchmark: Benchmark[Any, Any], runs: Cell, records: Sequence[CaptionRecord]
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name, metric in benchmark.metrics.items():
        scores = [
            metric.score(_videos(benchmark, name, run, captions), records)
            for run, captions in enumerate(runs)
        ]
        values = [score for score in scores if not isnan(score)]
        figures[name] = fmean(values) if values else None
        if len(runs) > 1:
            figures[f"{name}{_DEVIATION}"] = pstdev(values) if values else None
    figures[N_QUESTIONS] = max(sum(len(places) for _, places in captions) for captions in runs)
    figures[N_UNSCORED] = sum(
        value is None
        for run, captions in enumerate(runs)
        for values in _videos(benchmark, benchmark.headline, run, captions)
        for value in values[:: benchmark.metrics[benchmark.headline].n_values]
    )
    return figures


def _videos(
    benchmark: Benchmark[Any, Any],
    metric: str,
    run: int,
    captions: Iterable[tuple[Grouped, Sequence[int]]],
) -> list[list[object]]:
    """What a metric reads of some questions of each caption."""
    n_values = benchmark.metrics[metric].n_values
    return [
        [
            value
            for place in places
            for value in caption.values[metric][run][place * n_values : (place + 1) * n_values]
        ]
        for caption, places in captions
    ]


def _runs(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]
) -> list[dict[str, float | None]]:
    """Every metric in every judge run."""
    runs: list[dict[str, float | None]] = []
    for name, metric in benchmark.metrics.items():
        for run, videos in enumerate(by_run(name, records)):
            if run == len(runs):
                runs.append({})
            score = metric.score(videos, records)
            runs[run][name] = None if isnan(score) else score
    return runs
