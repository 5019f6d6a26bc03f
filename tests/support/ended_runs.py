"""The end of a run as lmms-eval has it: its results, handed to its own results tracker."""

from __future__ import annotations

import inspect
import json
import types
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.loggers import evaluation_tracker

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.integration.patches import apply_patches
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

STAMP = "20260102_030405"
Results = dict[str, Any]


def judge(task: str, captions: Sequence[str], docs: Sequence[Mapping[str, Any]]) -> Results:
    hooks = hooks_of(benchmark_of_task(task))
    items = [
        hooks.process_results(doc, [caption]) for doc, caption in zip(docs, captions, strict=False)
    ]
    columns: dict[str, list[PendingRecord]] = {
        name: [item[name] for item in items] for name in items[0]
    }
    values: dict[str, object] = {
        metric: hooks.aggregate(metric)(columns[metric], args=Namespace())
        for metric in hooks.benchmark.metrics
    }
    values["unscored"] = hooks.aggregate_unscored(columns["unscored"])
    return shown(task, values)


def shown(task: str, values: Mapping[str, object]) -> Results:
    """A task's metrics as lmms-eval keeps them, each with its three standard errors."""
    metrics: Results = {"alias": task}
    for name, value in values.items():
        metrics[f"{name},none"] = value
        for kind in ("stderr", "stderr_clt", "stderr_clustered"):
            metrics[f"{name}_{kind},none"] = "N/A"
    return metrics


def results_of(tasks: Mapping[str, Results], groups: Mapping[str, Sequence[str]] = {}) -> Results:
    """lmms-eval's results of a run over these tasks and groups."""
    metadata = {"version": 1, "judge": {"model": "the paper's", "runs": 7}}
    return {
        "results": {name: dict(metrics) for name, metrics in tasks.items()},
        "groups": {name: dict(tasks[name]) for name in groups},
        "group_subtasks": {**dict.fromkeys(tasks, ()), **groups},
        "configs": {name: {"metadata": metadata} for name in tasks if name not in groups},
        "config": {"model": "a-model", "model_args": "path=c.jsonl", "resolved_cli_args": {}},
        "n-shot": {},
        "higher_is_better": {},
    }


class Tracker:
    """lmms-eval's results tracker, with our part of a run's end.

    Args:
        output: As ``--output_path``.
        later_version: Saves with one argument more than lmms-eval 0.7.3 has.
    """

    def __init__(self, output: Path | None, *, later_version: bool = False) -> None:
        theirs = evaluation_tracker.EvaluationTracker
        real = save = inspect.unwrap(theirs.save_results_aggregated)
        self._more = {"run_id": 7} if later_version else {}
        if later_version:

            def save(
                self: Any, results: Results, samples: Any, datetime_str: str, run_id: int
            ) -> None:
                real(self, results, samples, datetime_str)

        own = type("EvaluationTracker", (theirs,), {"save_results_aggregated": save})
        apply_patches(_module(own))
        self._tracker = own(output_path=None if output is None else str(output))
        self._tracker.general_config_tracker.log_experiment_args("a", "model=m", "", "", False)
        self.folder = None if output is None else output / "m"

    def save(self, results: Results) -> Results:
        """Have the results saved, and what is in the file then."""
        with warnings.catch_warnings():
            # lmms-eval leaves the file open.
            warnings.simplefilter("ignore", ResourceWarning)
            self._tracker.save_results_aggregated(
                results=results, samples={}, datetime_str=STAMP, **self._more
            )
        return {} if self.folder is None else self.read("results")

    def read(self, kind: str) -> Results:
        """A file of the run, which must be plain JSON unless it is lmms-eval's own."""
        assert self.folder is not None
        text = (self.folder / f"{STAMP}_{kind}.json").read_text(encoding="utf-8")
        document: Results = (
            json.loads(text) if kind == "results" else json.loads(text, parse_constant=_no_constant)
        )
        return document


def _module(tracker: type) -> types.ModuleType:
    module = types.ModuleType(evaluation_tracker.__name__)
    vars(module)["EvaluationTracker"] = tracker
    return module


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
