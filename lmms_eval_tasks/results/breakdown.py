"""Metrics for all questions of a task and for each group of them, as numbers and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product, zip_longest
from math import isnan
from statistics import fmean, pstdev
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import suspicious
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN, FinishedTask
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Values
from lmms_eval_captions.lmms_eval_tasks.results.intervals import (
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

Breakdown = dict[str, dict[str, dict[str, Figure]]]
"""Section (such as ``categories``) to group to metrics, the figures next to each, and counts."""

N_QUESTIONS: Final = "n_questions"
_COUNTS: Final = {N_QUESTIONS: "questions", "n_unscored": "unscored"}
_MOST_ROWS: Final = 10
"""Groups of a section in the table; the file holds all."""


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
        about = "95% intervals over videos (*: of few, a rough guess)"
        logger.info("{} by group, with {}\n{}", task, about, _table_of(groups, benchmark.metrics))
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
        {k: None if isnan(v) else v for k, v in zip(scores, run, strict=True) if v is not None}
        for run in zip_longest(*scores.values())
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
    scores, cases = [], []
    for (name, metric), group in product(benchmark.metrics.items(), groups.values()):
        chosen = list(group.values())
        if metric.reads_fields:  # of all captions, asked about or not
            chosen = [group.get(index, record) for index, record in enumerate(silent)]
        runs = by_run(name, chosen)
        scores.append(scores_of(metric, runs, records))
        cases.append((metric, parts_by_video(metric, runs, chosen)))
    figures: dict[tuple[str, str], dict[str, Figure]] = {group: {} for group in groups}
    for (name, of), of_runs, interval in zip(
        product(benchmark.metrics, groups), scores, measured(cases), strict=True
    ):
        figures[of] |= _figures(name, of_runs, interval)
    n_values = benchmark.metrics[benchmark.headline].n_values
    breakdown: Breakdown = {section: {} for section in (ALL[0], *benchmark.sections)}
    for (section, name), group in groups.items():
        counts = counts_in(by_run(benchmark.headline, list(group.values())), n_values)
        of_group = figures[section, name] | dict(zip(_COUNTS, counts, strict=True))
        breakdown.setdefault(section, {})[name] = of_group
    for section, of_section in breakdown.items():
        by_size = sorted(of_section, key=lambda name: -int(of_section[name][N_QUESTIONS] or 0))
        names = dict.fromkeys([*benchmark.sections.get(section, ()), *by_size])
        breakdown[section] = {name: of_section[name] for name in names if name in of_section}
    return breakdown


def _groups(
    benchmark: Benchmark[Any, Any], records: Sequence[CaptionRecord]
) -> dict[tuple[str, str], dict[int, CaptionRecord]]:
    """Return each section and group: index of a record to it, with the values of its questions."""
    n_values = benchmark.metrics[benchmark.headline].n_values
    chosen: dict[tuple[str, str], dict[int, list[list[int]]]] = defaultdict(dict)
    for index, record in enumerate(records):
        runs = record.values[benchmark.headline]
        for run, values in enumerate(runs):
            for question in range(len(values) // n_values):
                names = ((of, groups[run][question]) for of, groups in record.groups.items())
                for section, name in (ALL, *names):
                    if name is not None:
                        of_caption = chosen[section, name].setdefault(index, [[] for _ in runs])
                        of_caption[run].append(question)

    def only(record: CaptionRecord, questions: Sequence[Sequence[int]]) -> CaptionRecord:
        values: dict[str, Values] = {}
        for name, all_runs in record.values.items():
            n = benchmark.metrics[name].n_values
            values[name] = [
                [value for at in indices for value in run[at * n : at * n + n]]
                for indices, run in zip(questions, all_runs, strict=True)
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


def _table_of(breakdown: Breakdown, names: Iterable[str]) -> str:
    """Return a breakdown as text, a line for each group, metrics with their intervals."""
    rows = []
    for section, groups in breakdown.items():
        metrics = [name for name in names if name in next(iter(groups.values()))]
        rows.append([section, *metrics, *_COUNTS.values()])
        for name, figures in islice(groups.items(), _MOST_ROWS):
            cells = [_cell(metric, figures) for metric in metrics]
            rows.append([f"  {name}", *cells, *(f"{figures[count]:,}" for count in _COUNTS)])
        if len(groups) > _MOST_ROWS:
            more = f"  and {len(groups) - _MOST_ROWS:,} more"
            rows.append([more, *[""] * (len(metrics) + len(_COUNTS))])
    return "\n".join(text_table(rows, n_left=1))


def _cell(metric: str, figures: Mapping[str, Figure]) -> str:
    ends = {end: figures.get(f"{metric}_{end}") for end in (CI_LOW, CI_HIGH)}
    figure = Measured.read({"value": figures[metric], **ends})
    has_note = figure.low is not None and figures.get(f"{metric}_{CI_NOTE}")
    return "-" if figure.value is None else f"{figure}{'*' if has_note else ''}"
