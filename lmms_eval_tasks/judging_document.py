"""Judging document of a run: scores with intervals, counts and costs, for a file and the screen.

It is of JSON's types, without ``NaN``: who reads it needs nothing of this package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from math import isclose, isfinite, nan
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.doubts import doubts_of
from lmms_eval_captions.lmms_eval_tasks.intervals import Measured, measured_over
from lmms_eval_captions.lmms_eval_tasks.reasons import reasons_of
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import certificate_of
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedTask, ThisRun

Document = dict[str, Any]
"""A document, or a part of one."""

_MOST_REASONS: Final = 1000
"""Different reasons of unscored questions that are kept of a task, the most frequent ones."""


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
    tasks: dict[str, Document] = {}
    for name, texts in ours.items():
        tasks[name] = {
            **_entry(name, this_run.tasks, results),
            "signature": texts.get("signature"),
            "breakdown": texts.get("breakdown"),
        }
    return {
        "finished": moment(finished_s),
        "seconds": round(finished_s - this_run.started_s, 1),
        "tasks": tasks,
        "judging": this_run.totals().to_json(),
        "warnings": list(this_run.warnings),
    }


def metrics_of(document: Mapping[str, Any]) -> dict[str, dict[str, Measured]]:
    """Each task and group of a judging document to its metrics; of ``--predict_only``, none."""
    return {
        task: {name: Measured.read(figures) for name, figures in entry.get("metrics", {}).items()}
        for task, entry in document["tasks"].items()
    }


def leaves_of(results: Mapping[str, Any], name: str) -> list[str]:
    """Return the tasks of a group and of the groups in it, each once, or the task itself.

    >>> leaves_of({"group_subtasks": {"all": ["a", "some"], "some": ["b", "a"]}}, "all")
    ['a', 'b']
    >>> leaves_of({"group_subtasks": {"all": ["all", "a"]}}, "all")
    ['a']
    """
    subtasks = results.get("group_subtasks", {})
    found: dict[str, None] = {}
    groups: set[str] = set()  # files may have been edited: a group may be in itself
    names = [name]
    while names:
        first = names.pop(0)
        members = subtasks.get(first)
        if members:
            names = [*(() if first in groups else members), *names]
            groups.add(first)
        else:
            found[first] = None
    return list(found)


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
    headline, means = next(iter(headlines)) if len(headlines) == 1 else (None, "")
    metrics = dict.fromkeys(metric for member in members for metric in member.benchmark.metrics)
    records = [record for member in members for record in member.records]
    if own is None:
        tasks = [member.records[0].task for member in members]
    else:
        tasks = [] if len(leaves) == 1 else leaves
    return {
        "benchmark": None if own is None else own.benchmark.name,
        "headline": headline,
        "headline_means": means,
        "metrics": {
            metric: _measured(members, metric, scores.get(metric))
            for metric in metrics
            if own is not None or metric in scores
        },
        **_counts(records),
        "doubts": [] if own is None else doubts_of(own.records),
        "note": "" if own is None else own.note,
        "tasks": tasks,
        **_sampled(members, scores.get(headline or "")),
    }


def _sampled(members: Sequence[FinishedTask], score: float | None) -> Document:
    """Return what a sample of the questions says about the headline; empty without one."""
    if len({id(member.benchmark) for member in members}) != 1:
        return {}
    certificate = certificate_of(members[0].benchmark, [member.records for member in members])
    if certificate is None:
        return {}
    if score is None:
        certificate = {**certificate, "value": None, "half_width": None}
    elif certificate["value"] is not None and not _is_same(certificate["value"], score):
        # Such as a mean that weighs tasks by their captions, in a group of the user's own.
        return {}
    return {"sampled": certificate}


def _counts(records: Sequence[CaptionRecord]) -> Document:
    reasons, kinds = reasons_of(records)
    frequent = dict(reasons.most_common(_MOST_REASONS))
    n_others = reasons.total() - sum(frequent.values())
    n_captions = len(records)
    return {
        "captions": n_captions,
        "unscored": {
            "n": sum(record.n_unscored for record in records),
            "of": sum(record.n_questions for record in records),
            "reasons": {**frequent, **({"others": n_others} if n_others else {})},
            "reasons_by_kind": dict(kinds),
        },
        "empty": {"n": sum(record.n_empty for record in records), "of": n_captions},
        # Those that were left out are counted as dropped.
        "missing": {
            "n": sum(r.no_caption is not None and not r.n_dropped for r in records),
            "of": n_captions,
        },
        "dropped": {"n": sum(record.n_dropped for record in records), "of": n_captions},
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
        if found.low is not None and not _is_same(value, found.value or nan):
            # Such as a mean that weighs tasks by their captions, in a group of the user's own.
            found = Measured.none("the number is no plain mean of the tasks' numbers")
    has_runs = any(record.runs > 1 for member in members for record in member.records)
    return {
        "value": value,
        "standard_error": found.standard_error,
        **found.beside(has_runs=has_runs),
    }


def _is_same(first: float, second: float) -> bool:
    return isclose(first, second, rel_tol=1e-6)


def _scores(shown: Mapping[str, object]) -> dict[str, float | None]:
    """Return each metric that lmms-eval shows of a task, ``None`` without a value."""
    return {
        name.partition(",")[0]: value
        if isinstance(value, int | float) and isfinite(value)
        else None
        for name, value in shown.items()
        if "," in name and "_stderr" not in name
    }
