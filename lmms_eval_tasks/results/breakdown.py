"""Metrics for all questions of a task and for each group of them, as numbers and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import isnan
from statistics import fmean, pstdev
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import suspicious
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN, FinishedTask
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Values
from lmms_eval_captions.lmms_eval_tasks.results.intervals import (
    BESIDE,
    CI_HIGH,
    CI_LOW,
    CI_NOTE,
    Figure,
    Measured,
    by_run,
    measured,
    parts_by_video,
    scores_of,
)
from lmms_eval_captions.lmms_eval_tasks.results.scoring import has_score, signature_of
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import counts_in, weighted

Figures = Mapping[str, Figure]
"""Metrics of one group, the figures next to each, and counts."""
Breakdown = dict[str, dict[str, dict[str, Figure]]]
"""Section (such as ``categories``) to group to figures."""

N_QUESTIONS: Final = "n_questions"
_COUNTS: Final = {N_QUESTIONS: "questions", "n_unscored": "unscored"}
_MOST_ROWS: Final = 10
"""Groups of a section in the table; the file holds all."""
_NAME_WIDTH: Final = 33
_ONE_DIGIT: Final = 10.0
"""Ends of intervals from here on have one digit behind the point."""


def report(finished: FinishedTask) -> None:
    """Log all numbers of a task or group, and keep them for the end of the run."""
    benchmark, records = finished.benchmark, finished.records
    task, note = records[0].task, finished.note
    THIS_RUN.tasks[task] = finished
    THIS_RUN.breakdowns.pop(task, None)
    n_suspicious, why = suspicious(records)
    if n_suspicious:
        warning = (
            f"{task}: {n_suspicious:,} of {len(records):,} captions cannot be captions ({why}): "
            "do not use this number before they are corrected"
        )
        logger.warning("{}", warning)
        THIS_RUN.warn(warning)
    if not has_score(records):
        return
    signature = signature_of(records, finished.args)
    n_dropped = sum(record.n_dropped for record in records)
    benchmark_of_sample, (weighted_records,) = weighted(benchmark, [records])
    breakdown = break_down(benchmark_of_sample, weighted_records)
    groups = {section: of for section, of in breakdown.items() if of and section != ALL[0]}
    if groups:
        # The summary shows the overall numbers and the signature's parts.
        logger.info("{} by group\n{}", task, table_of(groups))
    THIS_RUN.breakdowns[task] = {
        "task": task,
        "signature": signature,
        **({"note": note} if note else {}),
        **({"n_dropped": n_dropped} if n_dropped else {}),
        "runs": _scores_by_run(benchmark_of_sample, weighted_records),
        **benchmark.summary(records),
        **breakdown,
    }


def _scores_by_run(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]
) -> list[dict[str, float | None]]:
    """Return every metric in each judge run."""
    scores = {
        name: scores_of(metric, by_run(name, records), records)
        for name, metric in benchmark.metrics.items()
    }
    return [
        {
            name: None if isnan(runs[run]) else runs[run]
            for name, runs in scores.items()
            if run < len(runs)
        }
        for run in range(max(map(len, scores.values())))
    ]


def break_down(benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]) -> Breakdown:
    """Return every metric for every group of questions of a task or a pooled group.

    Returns:
        Groups that have questions: those that the benchmark names, then the others, the largest
        first. Each has a metric's mean over judge runs, next to it the figures of
        :meth:`Measured.beside`, the questions and, over all runs, the unscored ones.
    """
    groups = _groups(benchmark, records)
    silent = [replace(record, values=dict.fromkeys(record.values, ())) for record in records]
    figures: list[dict[str, Figure]] = [{} for _ in groups]
    cases, scores = [], []
    for name, metric in benchmark.metrics.items():
        is_available = metric.unavailable(records) is None
        for group in groups.values():
            chosen = list(group.values())
            if metric.reads_fields:  # of all captions, asked about or not
                chosen = [group.get(index, record) for index, record in enumerate(silent)]
            runs = by_run(name, chosen)
            scores.append(scores_of(metric, runs, records))
            cases.append((metric, parts_by_video(metric, runs, chosen) if is_available else None))
    intervals = iter(zip(scores, measured(cases), strict=True))
    for name in benchmark.metrics:
        for of_group in figures:
            of_group.update(_figures(name, *next(intervals)))
    n_values = benchmark.metrics[benchmark.headline].n_values
    breakdown: Breakdown = {section: {} for section in (ALL[0], *benchmark.sections)}
    for ((section, name), group), of_group in zip(groups.items(), figures, strict=True):
        counts = counts_in(by_run(benchmark.headline, list(group.values())), n_values)
        of_group |= dict(zip(_COUNTS, counts, strict=True))
        breakdown.setdefault(section, {})[name] = of_group
    return {
        section: _in_order(of_section, benchmark.sections.get(section, ()))
        for section, of_section in breakdown.items()
    }


def _groups(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]
) -> dict[tuple[str, str], dict[int, CaptionRecord]]:
    """Return each section and group: index of a record to it, with the values of its questions."""
    n_values = benchmark.metrics[benchmark.headline].n_values
    runs = by_run(benchmark.headline, records)
    chosen: dict[tuple[str, str], dict[int, list[list[int]]]] = {}
    for index, record in enumerate(records):
        for run, captions in enumerate(runs):
            for question in range(len(captions[index]) // n_values):
                names = ((of, groups[run][question]) for of, groups in record.groups.items())
                for section, name in (ALL, *names):
                    if name is not None:
                        captions_of_group = chosen.setdefault((section, name), {})
                        of_caption = captions_of_group.setdefault(index, [[] for _ in runs])
                        of_caption[run].append(question)

    def only(record: CaptionRecord, questions: Sequence[Sequence[int]]) -> CaptionRecord:
        values: dict[str, Values] = {}
        for name, all_runs in record.values.items():
            n = benchmark.metrics[name].n_values
            values[name] = [
                [value for at in indices for value in run[at * n : at * n + n]]
                for indices, run in zip(questions, all_runs, strict=False)
            ]
        return replace(record, values=values)

    return {
        group: {index: only(records[index], questions) for index, questions in captions.items()}
        for group, captions in chosen.items()
    }


def _figures(name: str, scores: Sequence[float], interval: Measured) -> dict[str, Figure]:
    values = [score for score in scores if not isnan(score)]
    has_runs = len(scores) > 1
    deviation = pstdev(values) if has_runs and values else None
    interval = replace(interval, deviation=deviation) if values else Measured()
    return {name: fmean(values) if values else None, **interval.beside(name, has_runs=has_runs)}


def _in_order(
    groups: Mapping[str, dict[str, Figure]], first: Sequence[str]
) -> dict[str, dict[str, Figure]]:
    others = [name for name in groups if name not in first]
    others.sort(key=lambda name: -(_number(groups[name], N_QUESTIONS) or 0))
    return {name: groups[name] for name in (*first, *others) if name in groups}


def table_of(breakdown: Mapping[str, Mapping[str, Figures]]) -> str:
    """Return a breakdown as text, a line for each group, metrics with their intervals.

    >>> figures = {"ar": 50.0, "ar_ci_low": 41.25, "ar_ci_high": 58.0, "ir": None}
    >>> counts = {"n_questions": 2, "n_unscored": 0}
    >>> print(table_of({"overall": {"all": {**figures, **counts}}}))
    overall                  ar  ir  questions  unscored
      all    50.00 [41.2, 58.0]   -          2         0
    [low, high]: 95% interval over videos
    """
    sections = {
        section: dict(list(groups.items())[:_MOST_ROWS])
        for section, groups in breakdown.items()
        if groups
    }
    tables = {section: _rows(section, groups) for section, groups in sections.items()}
    columns = zip(*chain.from_iterable(tables.values()), strict=True)
    name_width, *widths = (max(map(len, column)) for column in columns)
    lines: list[str] = []
    for section, rows in tables.items():
        lines += text_table(rows, n_left=1, widths=[min(_NAME_WIDTH, name_width), *widths])
        n_more = len(breakdown[section]) - len(rows) + 1
        if n_more:
            lines.append(f"  and {n_more:,} more")
    return "\n".join([*lines, *_legend([f for s in sections.values() for f in s.values()])])


def _rows(section: str, groups: Mapping[str, Figures]) -> list[list[str]]:
    """Return the header and the lines of a section."""
    first = next(iter(groups.values()))
    metrics = [name for name in first if name not in _COUNTS and not name.endswith(BESIDE)]
    rows = [[section, *metrics, *_COUNTS.values()]]
    digits = {}
    for metric in metrics:
        highs = [_number(figures, f"{metric}_{CI_HIGH}") or 0.0 for figures in groups.values()]
        digits[metric] = 1 if max(highs) >= _ONE_DIGIT else 2
    for name, figures in groups.items():
        cells = [_cell_text(metric, figures, digits[metric]) for metric in metrics]
        rows.append([f"  {name}", *cells, *(f"{figures[count]:,}" for count in _COUNTS)])
    return rows


def _cell_text(metric: str, figures: Figures, digits: int) -> str:
    value = _number(figures, metric)
    if value is None:
        return "-"
    low, high = (_number(figures, f"{metric}_{end}") for end in (CI_LOW, CI_HIGH))
    if low is None or high is None:
        return f"{value:.2f}"
    mark = "*" if figures.get(f"{metric}_{CI_NOTE}") else ""
    return f"{value:.2f} [{low:.{digits}f}, {high:.{digits}f}]{mark}"


def _legend(groups: list[Figures]) -> Iterator[str]:
    """Yield the meaning of the marks that are in the table."""
    ends = [
        (figures[name] is not None, bool(figures.get(f"{name.removesuffix(CI_LOW)}{CI_NOTE}")))
        for figures in groups
        for name in figures
        if name.endswith(f"_{CI_LOW}")
    ]
    has_none = (False, True) in ends
    if has_none or any(has_ends for has_ends, _ in ends):
        yield "; ".join([
            "[low, high]: 95% interval over videos",
            *(["none where fewer than 2 count or all are alike"] if has_none else []),
            *(["*: of few videos, a rough guess"] if (True, True) in ends else []),
        ])  # fmt: skip


def _number(figures: Figures, name: str) -> float | None:
    value = figures.get(name)
    return value if isinstance(value, int | float) else None
