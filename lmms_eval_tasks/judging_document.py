"""Judging document of a run: scores with intervals, counts and costs, for a file and the screen.

It is of JSON's types, without ``NaN``: who reads it needs nothing of this package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from math import isclose, isfinite, nan
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.intervals import Measured, measured_over
from lmms_eval_captions.lmms_eval_tasks.judge_doubts import doubts_of
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import certificate_of
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedTask, ThisRun

Document = dict[str, Any]
"""A document, or a part of one."""

_SAME: Final = 1e-6
"""Relative difference up to which two numbers are one."""
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

    Args:
        results: lmms-eval's results of the run.
        this_run: What was aggregated, and when it started.
        ours: Signature and breakdown of each task and group of ours, in lmms-eval's order.
        finished_s: Seconds since the epoch.
    """
    finished = this_run.tasks
    tasks: dict[str, Document] = {}
    for name, words in ours.items():
        scores = _scores(results["results"].get(name, {}))
        if name in finished:
            entry = _of_task(finished[name], scores, leaves_of(results, name))
        else:
            members = [task for task in leaves_of(results, name) if task in finished]
            entry = _of_group([finished[task] for task in members], scores)
        tasks[name] = {
            **entry,
            "signature": words.get("signature"),
            "breakdown": words.get("breakdown"),
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
    """The tasks of a group and of the groups in it, each once, or the task itself.

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
    """A moment since the epoch, as ISO 8601 has it, in UTC.

    >>> moment(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _of_task(
    finished: FinishedTask, scores: Mapping[str, float | None], leaves: Sequence[str]
) -> Document:
    """Return the entry of a task, or of a group whose questions are pooled."""
    benchmark = finished.benchmark
    return {
        "benchmark": benchmark.name,
        "headline": benchmark.headline,
        "headline_means": benchmark.headline_means,
        "metrics": {name: _measured([finished], name, scores) for name in benchmark.metrics},
        **_counts([finished]),
        "doubts": doubts_of(finished.records),
        "note": finished.note,
        "tasks": [] if len(leaves) == 1 else leaves,
        **_sampled(benchmark, [finished], scores.get(benchmark.headline)),
    }


def _of_group(members: Sequence[FinishedTask], scores: Mapping[str, float | None]) -> Document:
    """Return the entry of a group whose numbers are means of its tasks' numbers."""
    headlines = {(m.benchmark.headline, m.benchmark.headline_means) for m in members}
    headline, means = next(iter(headlines)) if len(headlines) == 1 else (None, "")
    names = dict.fromkeys(name for member in members for name in member.benchmark.metrics)
    return {
        "benchmark": None,
        "headline": headline,
        "headline_means": means,
        "metrics": {name: _measured(members, name, scores) for name in names if name in scores},
        **_counts(members),
        "doubts": [],
        "note": "",
        "tasks": [member.records[0].task for member in members],
        **(_sampled(members[0].benchmark, members, scores.get(headline or "")) if members else {}),
    }


def _sampled(
    benchmark: Benchmark[Any, Any], members: Sequence[FinishedTask], score: float | None
) -> Document:
    """Return what a sample of the questions says about the headline; empty without one.

    Args:
        benchmark: Of the first of them.
        members: The tasks.
        score: The headline as lmms-eval has it.
    """
    if any(member.benchmark is not benchmark for member in members):
        return {}
    certificate = certificate_of(benchmark, [member.records for member in members])
    if certificate is None:
        return {}
    if score is None:
        certificate = {**certificate, "value": None, "half_width": None}
    elif certificate["value"] is not None and not isclose(
        certificate["value"], score, rel_tol=_SAME
    ):
        # Such as a mean that weighs tasks by their captions, in a group of the user's own.
        return {}
    return {"sampled": certificate}


def _counts(finished: Sequence[FinishedTask]) -> Document:
    """Return the counts of a task, or of the tasks of a group together."""
    records = [record for task in finished for record in task.records]
    reasons: Counter[str] = Counter()
    for record in records:
        reasons.update(record.reasons)
    n_captions = len(records)
    n_unscored = sum(record.n_unscored for record in records)
    n_questions = sum(record.n_questions for record in records)
    # Those that were left out are told as dropped.
    n_missing = sum(record.no_caption is not None and not record.n_dropped for record in records)
    return {
        "captions": n_captions,
        "unscored": {**_share(n_unscored, n_questions), "reasons": _most_frequent(reasons)},
        "empty": _share(sum(record.n_empty for record in records), n_captions),
        "missing": _share(n_missing, n_captions),
        "dropped": _share(sum(record.n_dropped for record in records), n_captions),
        "judge": " + ".join(sorted({record.judge for record in records})),
    }


def _measured(
    members: Sequence[FinishedTask], metric: str, scores: Mapping[str, float | None]
) -> Document:
    """A metric of a task, or the mean of it over tasks, and how sure it is."""
    value = scores.get(metric)
    found = Measured() if value is None else _found(members, metric)
    if found.low is not None and not isclose(value or 0.0, found.value or nan, rel_tol=_SAME):
        # Such as a mean that weighs tasks by their captions, in a group of the user's own.
        found = Measured.none("the number is no plain mean of the tasks' numbers")
    has_runs = any(record.runs > 1 for member in members for record in member.records)
    return {
        "value": value,
        "standard_error": found.standard_error,
        **found.beside(has_runs=has_runs),
    }


def _found(members: Sequence[FinishedTask], metric: str) -> Measured:
    """The plain mean of a metric over tasks, with its interval."""
    benchmark = members[0].benchmark
    if any(member.benchmark is not benchmark for member in members):
        return Measured.none("the tasks are of several benchmarks")
    return measured_over(benchmark, metric, [member.records for member in members])


def _scores(shown: Mapping[str, object]) -> dict[str, float | None]:
    """Each metric that lmms-eval shows of a task, ``None`` for what has no value."""
    return {
        name.partition(",")[0]: value
        if isinstance(value, int | float) and isfinite(value)
        else None
        for name, value in shown.items()
        if "," in name and "_stderr" not in name
    }


def _share(n: int, of: int) -> Document:
    return {"n": n, "of": of}


def _most_frequent(reasons: Counter[str]) -> dict[str, int]:
    shown = dict(reasons.most_common(_MOST_REASONS))
    n_others = reasons.total() - sum(shown.values())
    return {**shown, **({"others": n_others} if n_others else {})}
