"""Files of a run next to lmms-eval's results, and our part of these results.

The judging document has scores with intervals, counts and costs, of JSON's types without ``NaN``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from math import isclose, isfinite, isnan, nan
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import doubts_of
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import reasons_of
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import (
    THIS_RUN,
    FinishedRun,
    FinishedTask,
    ThisRun,
    record,
)
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.intervals import (
    CI_HIGH,
    CI_LOW,
    Measured,
    measured_over,
)
from lmms_eval_captions.lmms_eval_tasks.results.scoring import NOT_JUDGED, signature_of
from lmms_eval_captions.lmms_eval_tasks.results.verdict_file import verdict_path, write_verdicts
from lmms_eval_captions.lmms_eval_tasks.signature import OURS, RESULTS, Signature
from lmms_eval_captions.lmms_eval_tasks.task_names import leaves_of, our_benchmarks
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS

Document = dict[str, Any]
"""A document, or a part of one."""

_MOST_REASONS: Final = 1000
"""Different reasons of unscored questions that are kept of a task, the most frequent ones."""


@contextmanager
def completed(
    tracker: Any,  # noqa: ANN401 - lmms-eval's own
    results: MutableMapping[str, Any],
    datetime_str: str,
) -> Iterator[None]:
    """Complete lmms-eval's results with ours, and record the run once they are saved."""
    config, folder = tracker.general_config_tracker, None
    if tracker.output_path:
        folder = Path(tracker.output_path) / (config.model_name_sanitized or "")
    THIS_RUN.started_s = time.time() - (time.perf_counter() - config.start_time)
    try:
        run = complete(results, folder=folder, stamp=datetime_str.replace(":", "-"))
        with with_intervals(results, run):
            yield
        if run is not None:
            THIS_RUN.finished.append(run)
            path = None if folder is None else folder / f"{run.stamp}{RESULTS}"
            is_saved = path is not None and path.is_file()
            record({"results": str(path and path.resolve()) if is_saved else None,
                    "judging": run.document})  # fmt: skip
    finally:
        THIS_RUN.clear()


def complete(
    results: MutableMapping[str, Any], *, folder: Path | None, stamp: str
) -> FinishedRun | None:
    """Write the run's verdicts, breakdowns and judging document, and name them in its results.

    ``results`` are lmms-eval's, about to be saved and printed; they are changed in place. Without a
    task of ours there is no run.
    """
    if results.get("config", {}).get("resolved_cli_args", {}).get("predict_only"):
        logs = {
            task: {"samples": folder and f"{folder / stamp}_samples_{task}.jsonl"}
            for task in results["results"]
            if task in our_benchmarks()
        }
        document = {"predict_only": True, **_head(results, None), "tasks": logs}
        return FinishedRun(document, folder, stamp) if logs else None
    ours = dict(_ours(results))
    if not ours:
        return None
    results[OURS] = {"judging": None, "tasks": ours}
    for task, finished in THIS_RUN.tasks.items():
        _name_judge(results, task, finished)
        _blank_unavailable(results, task, finished)
    for warning in THIS_RUN.totals().warnings():
        logger.warning("{}", warning)
        THIS_RUN.warn(warning)
    head = _head(results, RUN_CAPTIONS.log().path)
    for task, breakdown in THIS_RUN.breakdowns.items():
        ours.setdefault(task, {})["breakdown"] = _write(
            {**head, **breakdown}, f"breakdown_{task}", folder=folder, stamp=stamp
        )
    for task, finished in THIS_RUN.tasks.items():
        # The files of a pooled group's tasks hold its verdicts.
        if folder is not None and task != finished.benchmark.pooled_group:
            path = verdict_path(folder, stamp, task)
            about = {**head, "task": task, "signature": ours.get(task, {}).get("signature")}
            try:
                write_verdicts(path, about, finished.benchmark, finished.records)
            except OSError as error:
                logger.error(
                    f"verdicts of {task} cannot be written to {path}: {error}; compare, stability "
                    "and agree need them or the sample log. Fix that and run again: nothing is "
                    "asked twice"
                )
    judging = judging_document(results, THIS_RUN, ours=ours, finished_s=time.time())
    document = {**head, **judging}
    results[OURS]["judging"] = _write(document, "judging", folder=folder, stamp=stamp)
    return FinishedRun(document, folder, stamp)


def _ours(results: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield tasks and groups of ours with their signatures, in lmms-eval's order."""
    for name in results["results"]:
        leaves = leaves_of(results, name)
        if not all(leaf in our_benchmarks() for leaf in leaves):
            continue
        finished = [THIS_RUN.tasks[leaf] for leaf in leaves if leaf in THIS_RUN.tasks]
        signatures = [signature_of(task.records, task.args) for task in finished]
        if leaves == [name]:
            signature = signatures[0] if signatures else NOT_JUDGED
            yield name, {"signature": signature, "breakdown": "none: not scored"}
        elif "unscored,none" in results["results"][name]:
            sizes = [len(task.records) for task in finished]
            yield name, {"signature": str(Signature.merge(map(Signature.parse, signatures), sizes))}


def _head(results: Mapping[str, Any], captions: Path | None) -> Document:
    """Return the beginning of every file of ours."""
    config = results.get("config", {})
    return {
        "model": config.get("model"),
        "model_args": config.get("model_args"),
        "captions": None if captions is None else str(captions),
        "started": moment(THIS_RUN.started_s),
    }


def _write(document: Document, kind: str, *, folder: Path | None, stamp: str) -> str:
    """Write a file next to lmms-eval's results; return its name, or why there is none."""
    if folder is None:
        return "none: lmms-eval has no --output_path to write it to"
    path = folder / f"{stamp}_{kind}.json"
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as error:
        logger.error("{} cannot be written to {}: {}", kind.partition("_")[0], path, error)
        return f"none: {folder} cannot be written to ({error}); fix that and run again"
    return path.name


def _name_judge(results: Mapping[str, Any], task: str, finished: FinishedTask) -> None:
    """Replace the paper's judge in a task's configuration by the one that judged."""
    config = results.get("configs", {}).get(task, {})
    if "metadata" not in config:
        return
    labels = sorted({caption.judge for caption in finished.records})
    named: dict[str, object] = {"model": " + ".join(labels)}
    with suppress(SettingsError):
        judge = finished.benchmark.judge_config(SESSION.settings())
        if judge != NO_JUDGE and labels == [judge.label]:
            names = ("model", *finished.benchmark.judge_defaults, "runs", "temperature")
            named = {name: getattr(judge, name) for name in names if hasattr(judge, name)}
    config["metadata"] = {**config["metadata"], "judge": named}


def _blank_unavailable(results: Mapping[str, Any], task: str, finished: FinishedTask) -> None:
    """Replace ``nan`` by ``None`` for metrics that cannot be computed here, shown as N/A."""
    for name, metric in finished.benchmark.metrics.items():
        if metric.unavailable(finished.records) is not None:
            for table in ("results", "groups"):
                metrics = results.get(table, {}).get(task, {})
                if isnan(metrics.get(f"{name},none") or 0.0):
                    metrics[f"{name},none"] = None


@contextmanager
def with_intervals(results: Mapping[str, Any], run: FinishedRun | None) -> Iterator[None]:
    """Have intervals saved as ``<metric>_ci_low`` and ``<metric>_ci_high``, but not printed."""
    tasks = {} if run is None else run.document["tasks"]
    added = [
        (metrics, f"{name}_{end},{suffix}", value)
        for table in ("results", "groups")
        for task, metrics in results.get(table, {}).items()
        for name, comma, suffix in (key.partition(",") for key in metrics)
        for end in (CI_LOW, CI_HIGH)
        if comma
        and (value := tasks.get(task, {}).get("metrics", {}).get(name, {}).get(end)) is not None
    ]
    for metrics, key, value in added:
        metrics[key] = value
    yield
    for metrics, key, _ in added:
        metrics.pop(key, None)


def judging_document(
    results: Mapping[str, Any],
    this_run: ThisRun,
    *,
    ours: Mapping[str, Mapping[str, str]],
    finished_s: float,
) -> Document:
    """Return the judging document of a run without its head.

    ``ours`` is the signature and the breakdown of each task and group, in lmms-eval's order.
    """
    return {
        "finished": moment(finished_s),
        "seconds": round(finished_s - this_run.started_s, 1),
        "tasks": {
            name: {
                **_entry(name, this_run.tasks, results),
                "signature": texts.get("signature"),
                "breakdown": texts.get("breakdown"),
            }
            for name, texts in ours.items()
        },
        "judging": this_run.totals().to_json(),
        "warnings": list(this_run.warnings),
    }


def moment(seconds: float) -> str:
    """Return a moment since the epoch in UTC, by ISO 8601."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _entry(name: str, finished: Mapping[str, FinishedTask], results: Mapping[str, Any]) -> Document:
    """Return the entry of a task, of a pooled group, or of a group that is a mean of its tasks."""
    leaves = leaves_of(results, name)
    own = finished.get(name)
    members = [finished[task] for task in leaves if task in finished] if own is None else [own]
    scores = _scores(results["results"].get(name, {}))
    headlines = {(m.benchmark.headline, m.benchmark.headline_means) for m in members}
    headline, means = headlines.pop() if len(headlines) == 1 else (None, "")
    metrics = dict.fromkeys(metric for member in members for metric in member.benchmark.metrics)
    entry = {
        "benchmark": None,
        "headline": headline,
        "headline_means": means,
        "metrics": {
            metric: _measured(members, metric, scores.get(metric))
            for metric in metrics
            if own is not None or metric in scores
        },
        **_counts([record for member in members for record in member.records]),
        "doubts": [],
        "note": "",
        "tasks": [member.records[0].task for member in members],
    }
    if own is None:
        return entry
    doubts, tasks = [*doubts_of(own.records).values()], leaves if len(leaves) > 1 else []
    about = {"benchmark": own.benchmark.name, "doubts": doubts, "note": own.note, "tasks": tasks}
    return entry | about


def _counts(records: Sequence[CaptionRecord]) -> Document:
    reasons, kinds = reasons_of(records)
    frequent = dict(reasons.most_common(_MOST_REASONS))
    n_others = reasons.total() - sum(frequent.values())

    def n_of(counts: Iterable[int]) -> Document:
        return {"n": sum(counts), "of": len(records)}

    return {
        "captions": len(records),
        "unscored": {
            "n": sum(record.n_unscored for record in records),
            "of": sum(record.n_questions for record in records),
            "reasons": {**frequent, **({"others": n_others} if n_others else {})},
            "reasons_by_kind": dict(kinds),
        },
        "empty": n_of(record.n_empty for record in records),
        # Those that were left out are counted as dropped.
        "missing": n_of(r.no_caption is not None and not r.n_dropped for r in records),
        "dropped": n_of(record.n_dropped for record in records),
        "judge": " + ".join(sorted({record.judge for record in records})),
    }


def _measured(members: Sequence[FinishedTask], metric: str, value: float | None) -> Document:
    """Return a metric of a task, or its mean over tasks, with its interval."""
    benchmark = members[0].benchmark
    if value is None:
        found = Measured()
    elif any(member.benchmark is not benchmark for member in members):
        found = Measured.none("the tasks are of several benchmarks")
    else:
        found = measured_over(benchmark, metric, [member.records for member in members])
        if found.low is not None and not isclose(value, found.value or nan, rel_tol=1e-6):
            # Such as a mean that weighs tasks by their captions, in a group of the user's own.
            found = Measured.none("the number is no plain mean of the tasks' numbers")
    has_runs = any(record.runs > 1 for member in members for record in member.records)
    return {
        "value": value,
        "standard_error": found.standard_error,
        **found.beside(has_runs=has_runs),
    }


def _scores(shown: Mapping[str, object]) -> dict[str, float | None]:
    """Return each metric that lmms-eval shows of a task, ``None`` without a value."""
    return {
        name.partition(",")[0]: value
        if isinstance(value, int | float) and isfinite(value)
        else None
        for name, value in shown.items()
        if "," in name and "_stderr" not in name
    }
