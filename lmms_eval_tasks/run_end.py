"""The end of a run, as lmms-eval saves its results: ours are written beside them.

lmms-eval has no hook there, so its :class:`EvaluationTracker` is wrapped (see :mod:`plugin`).
Nothing here may raise: lmms-eval's own results are worth more than ours.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.files.atomic_write import write_atomically
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN

OURS: Final = "lmms_eval_captions"
"""Key of a results file under which this package's own words stand."""
_MOVED: Final = ("signature", "breakdown")
"""Metrics that are no numbers: they leave lmms-eval's table."""


def wrap_tracker(trackers: ModuleType) -> None:
    """Have what lmms-eval's results tracker saves completed with what is ours.

    Args:
        trackers: ``lmms_eval.loggers.evaluation_tracker``.

    Raises:
        AttributeError: If this version of lmms-eval has no such tracker.
    """
    tracker = trackers.EvaluationTracker
    save_aggregated = tracker.save_results_aggregated

    @functools.wraps(save_aggregated)
    def save_results_aggregated(
        self: Any,  # noqa: ANN401 - lmms-eval's own
        results: dict[str, Any],
        samples: dict[str, Any],
        datetime_str: str,
    ) -> None:
        folder = None
        if self.output_path:
            name = self.general_config_tracker.model_name_sanitized or ""
            folder = Path(self.output_path) / name
        complete(results, folder=folder, stamp=datetime_str.replace(":", "-"))
        save_aggregated(self, results=results, samples=samples, datetime_str=datetime_str)
        THIS_RUN.clear()

    tracker.save_results_aggregated = save_results_aggregated


def complete(results: MutableMapping[str, Any], *, folder: Path | None, stamp: str) -> None:
    """Take our words out of the metrics, and write the breakdowns.

    Args:
        results: lmms-eval's results of the run, about to be saved and printed; changed in place.
        folder: Where they are saved, ``None`` without ``--output_path``.
        stamp: How the names of the run's files begin.
    """
    ours: dict[str, dict[str, str]] = {}
    for tables in (results.get("results", {}), results.get("groups", {})):
        for task, metrics in tables.items():
            for name in _MOVED:
                value = metrics.pop(f"{name},none", None)
                metrics.pop(f"{name}_stderr,none", None)
                metrics.pop(f"{name}_stderr_clt,none", None)
                metrics.pop(f"{name}_stderr_clustered,none", None)
                if value is not None:
                    ours.setdefault(task, {})[name] = value
    if not ours:
        return
    for task, breakdown in THIS_RUN.breakdowns.items():
        path = _write(breakdown, task=task, folder=folder, stamp=stamp)
        ours.setdefault(task, {})["breakdown"] = path
    results[OURS] = {"tasks": ours}


def _write(breakdown: Mapping[str, object], *, task: str, folder: Path | None, stamp: str) -> str:
    """Write a task's full breakdown as one JSON file beside lmms-eval's results.

    Returns:
        The file's name, or why there is none.
    """
    if folder is None:
        return "none: lmms-eval has no --output_path to write it to"
    path = folder / f"{stamp}_breakdown_{task}.json"
    try:
        write_atomically(path, json.dumps(breakdown, indent=2, ensure_ascii=False).encode("utf-8"))
    except OSError as error:
        logger.error("the breakdown of {} cannot be written to {}: {}", task, path, error)
        return f"none: {path.parent} cannot be written to ({error}); mend that and run again"
    return path.name
