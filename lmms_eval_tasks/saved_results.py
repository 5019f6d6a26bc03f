"""What this package changes in lmms-eval's results before they are saved and printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isnan
from typing import Any

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.measured import CI_HIGH, CI_LOW, Measured
from lmms_eval_captions.lmms_eval_tasks.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedTask


def name_judge(results: Mapping[str, Any], task: str, finished: FinishedTask) -> None:
    """Name the judge that judged in a task's configuration, in the place of the paper's."""
    config = results.get("configs", {}).get(task)
    if not isinstance(config, dict) or not isinstance(config.get("metadata"), dict):
        return
    labels = sorted({record.judge for record in finished.records})
    defaults = dict(finished.benchmark.judge_defaults)
    try:
        judge = finished.benchmark.judge_config(SESSION.settings())
    except SettingsError:
        judge = None
    if judge is None or judge == NO_JUDGE or labels != [judge.label]:
        named: dict[str, object] = {"model": " + ".join(labels)}
    else:
        settings = {
            name: getattr(judge, name)
            for name in (*defaults, "runs", "temperature")
            if hasattr(judge, name)
        }
        named = {"model": judge.model, **settings}
    config["metadata"] = {**config["metadata"], "judge": named}


@contextmanager
def with_intervals(
    results: Mapping[str, Any], measured: Mapping[str, Mapping[str, Measured]]
) -> Iterator[None]:
    """Have each metric's interval saved beside it, as ``<metric>_ci_low`` and ``<metric>_ci_high``.

    They are taken out again once the results are saved: lmms-eval's table, and its tables for
    W&B and SwanLab, would show each as a metric of its own.

    Args:
        results: lmms-eval's results of a run; changed in place.
        measured: The metrics of each task and group of ours.
    """
    added = [
        (metrics, f"{name}_{end},{suffix}", value)
        for table in ("results", "groups")
        for task, metrics in results.get(table, {}).items()
        for key in list(metrics)
        for name, comma, suffix in [key.partition(",")]
        if comma and (metric := measured.get(task, {}).get(name)) is not None
        for end, value in ((CI_LOW, metric.low), (CI_HIGH, metric.high))
        if value is not None
    ]
    for metrics, key, value in added:
        metrics[key] = value
    yield
    for metrics, key, _ in added:
        metrics.pop(key, None)


def blank_what_is_unavailable(
    results: Mapping[str, Any], task: str, finished: FinishedTask
) -> None:
    """Have a metric that cannot be computed here shown as N/A: it is no failure of the judge's."""
    for name, metric in finished.benchmark.metrics.items():
        if metric.unavailable(finished.records) is not None:
            for table in ("results", "groups"):
                metrics = results.get(table, {}).get(task, {})
                for key, value in metrics.items():
                    if key.partition(",")[0] == name and isinstance(value, float) and isnan(value):
                        metrics[key] = None
