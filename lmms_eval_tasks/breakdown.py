"""A benchmark's metrics for all questions and for every group of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from statistics import fmean, pstdev
from typing import Any

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.benchmark import ALL, Benchmark
from lmms_eval_captions.lmms_eval_tasks.breakdown_table import (
    N_QUESTIONS,
    N_UNSCORED,
    count,
    table_of,
)
from lmms_eval_captions.lmms_eval_tasks.caption_doubts import suspicious
from lmms_eval_captions.lmms_eval_tasks.intervals import GroupValues, intervals_of_groups
from lmms_eval_captions.lmms_eval_tasks.measured import Figure, Measured
from lmms_eval_captions.lmms_eval_tasks.question_groups import (
    Grouped,
    cells_of,
    values_in,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.certificate import certificate_of
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import counts_in, weighed
from lmms_eval_captions.lmms_eval_tasks.scoring import by_run, has_score, signature_of
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedTask

Breakdown = dict[str, dict[str, dict[str, Figure]]]
"""Section (such as ``categories``), to a group's name, to its figures: a metric's mean over judge
runs, ``None`` where it has no value, what stands beside it, or a count."""


def report(finished: FinishedTask) -> None:
    """Show all numbers of a task or group, and keep them for the end of the run."""
    benchmark, records = finished.benchmark, finished.records
    task, note = records[0].task, finished.note
    THIS_RUN.tasks[task] = finished
    THIS_RUN.breakdowns.pop(task, None)
    n_suspicious, why = suspicious(records)
    if n_suspicious:
        words = (
            f"{task}: {n_suspicious:,} of {len(records):,} captions cannot be captions ({why}): "
            "do not use this number before they are mended"
        )
        logger.warning("{}", words)
        THIS_RUN.warn(words)
    if not has_score(records):
        return
    signature = signature_of(records, finished.args)
    n_dropped = sum(record.n_dropped for record in records)
    counted, of_captions = weighed(benchmark, records)
    breakdown = break_down(counted, of_captions, of_captions)
    certificate = certificate_of(benchmark, [records])
    head = {
        "task": task,
        "signature": signature,
        **({} if certificate is None else {"sampled": certificate.to_json()}),
        **({"note": note} if note else {}),
        **({"n_dropped": n_dropped} if n_dropped else {}),
        "runs": _runs(counted, of_captions),
        **benchmark.summary(records),
    }
    logger.info("{}\n{}{}", signature, table_of(breakdown), f"\n{note}" if note else "")
    if certificate is not None:
        logger.info("{}, a sample: {}", task, certificate.words)
    THIS_RUN.breakdowns[task] = {**head, **breakdown}


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
        largest first: each metric's mean over judge runs, the ends of its 95% interval over videos
        as ``<metric>_ci_low`` and ``<metric>_ci_high``, why there is none or what must be known of
        it as ``<metric>_ci_note``, where there are several runs also its deviation as
        ``<metric>_std`` and the judge's part of the interval's variance as
        ``<metric>_judge_share``, the questions and, over all runs, how many of them are unscored.
    """
    judged = list(captions)
    cells = cells_of(benchmark, judged)
    groups = [
        GroupValues(
            list(cell),
            {
                name: values_in(cell, judged, name, metric.n_values)
                for name, metric in benchmark.metrics.items()
            },
        )
        for cell in cells.values()
    ]
    videos = [caption.video_id for caption in judged]
    measured = intervals_of_groups(benchmark, groups, videos, records)
    section, name = ALL
    order = {section: (name,), **benchmark.sections}
    breakdown: Breakdown = {section: {} for section in order}
    for (section, name), group, of_group in zip(cells, groups, measured, strict=True):
        figures = _figures(benchmark, group, of_group, records)
        breakdown.setdefault(section, {})[name] = figures
    return {
        section: _in_order(groups, order.get(section, ())) for section, groups in breakdown.items()
    }


def _in_order(
    groups: Mapping[str, dict[str, Figure]], first: Sequence[str]
) -> dict[str, dict[str, Figure]]:
    """Groups in the order of the benchmark, those that it does not name behind, largest first."""
    others = [name for name in groups if name not in first]
    others.sort(key=lambda name: -count(groups[name], N_QUESTIONS))
    return {name: groups[name] for name in (*first, *others) if name in groups}


def _figures(
    benchmark: Benchmark[Any, Any],
    group: GroupValues,
    measured: Mapping[str, Measured],
    records: Sequence[CaptionRecord],
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name, metric in benchmark.metrics.items():
        runs = [list(filter(None, run)) for run in group.of_metrics[name]]
        scores = [metric.score(run, records) for run in runs]
        values = [score for score in scores if not isnan(score)]
        figures[name] = fmean(values) if values else None
        deviation = pstdev(values) if len(runs) > 1 and values else None
        sure = replace(measured[name], deviation=deviation) if values else Measured()
        figures |= sure.beside(name, has_runs=len(runs) > 1)
    n_values = benchmark.metrics[benchmark.headline].n_values
    of_runs = group.of_metrics[benchmark.headline]
    figures[N_QUESTIONS], figures[N_UNSCORED] = counts_in(of_runs, n_values)
    return figures


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
