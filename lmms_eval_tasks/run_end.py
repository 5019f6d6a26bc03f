"""The end of a run, as lmms-eval saves its results: ours are written beside them.

lmms-eval has no hook there, so its :class:`EvaluationTracker` is wrapped (:mod:`patches`), which
saves lmms-eval's own results whatever happens here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loguru import logger

from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.judging_document import (
    Document,
    judging_document,
    leaves_of,
    metrics_of,
    moment,
)
from lmms_eval_captions.lmms_eval_tasks.results_folder import OURS
from lmms_eval_captions.lmms_eval_tasks.run_record import append_to_record
from lmms_eval_captions.lmms_eval_tasks.saved_results import (
    blank_what_is_unavailable,
    name_judge,
    with_intervals,
)
from lmms_eval_captions.lmms_eval_tasks.scoring import (
    NOT_JUDGED,
    signature_of,
    signatures_of_tasks,
)
from lmms_eval_captions.lmms_eval_tasks.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedRun
from lmms_eval_captions.lmms_eval_tasks.verdict_file import verdict_path, write_verdicts


@contextmanager
def completed(
    tracker: Any,  # noqa: ANN401 - lmms-eval's own
    results: MutableMapping[str, Any],
    datetime_str: str,
) -> Iterator[None]:
    """Complete lmms-eval's results with ours, and record the run once they are saved.

    Args:
        tracker: lmms-eval's results tracker, which knows the folder and when the run started.
        results: See :func:`complete`.
        datetime_str: Time of its end, as lmms-eval writes it.
    """
    folder = None
    if tracker.output_path:
        folder = Path(tracker.output_path) / (
            tracker.general_config_tracker.model_name_sanitized or ""
        )
    run_s = time.perf_counter() - tracker.general_config_tracker.start_time
    THIS_RUN.started_s = time.time() - run_s
    try:
        run = complete(results, folder=folder, stamp=datetime_str.replace(":", "-"))
        with with_intervals(results, {} if run is None else metrics_of(run.document)):
            yield
        if run is not None:
            THIS_RUN.finished.append(run)
            append_to_record(run)
    finally:
        THIS_RUN.clear()


def complete(
    results: MutableMapping[str, Any], *, folder: Path | None, stamp: str
) -> FinishedRun | None:
    """Write the run's verdicts, breakdowns and judging document, and name them in its results.

    Args:
        results: lmms-eval's results of the run, about to be saved and printed; changed in place.
        folder: Where they are saved, ``None`` without ``--output_path``.
        stamp: How the names of the run's files begin.

    Returns:
        The run as it is shown on the screen; ``None`` where no task of ours was in it.
    """
    if results.get("config", {}).get("resolved_cli_args", {}).get("predict_only"):
        document = _predicted(results, folder=folder, stamp=stamp)
        return FinishedRun(document, folder, stamp) if document["tasks"] else None
    ours = dict(_ours(results))
    if not ours:
        return None
    results[OURS] = {"judging": None, "tasks": ours}
    for task, finished in THIS_RUN.tasks.items():
        name_judge(results, task, finished)
        blank_what_is_unavailable(results, task, finished)
    for warning in THIS_RUN.totals().warnings():
        logger.warning("{}", warning)
        THIS_RUN.warn(warning)
    captions = SESSION.captions().path
    head = _head(results, None if captions is None else str(captions))
    for task, breakdown in THIS_RUN.breakdowns.items():
        ours.setdefault(task, {})["breakdown"] = _write(
            {**head, **breakdown}, "breakdown", f"_{task}", folder=folder, stamp=stamp
        )
    _write_verdicts(head, ours, folder=folder, stamp=stamp)
    document = {
        **head,
        **judging_document(results, THIS_RUN, ours=ours, finished_s=time.time()),
    }
    results[OURS]["judging"] = _write(document, "judging", "", folder=folder, stamp=stamp)
    return FinishedRun(document, folder, stamp)


def _ours(results: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield tasks and groups of ours with their signatures, in lmms-eval's order."""
    for name in results["results"]:
        leaves = leaves_of(results, name)
        if not all(leaf in our_benchmarks() for leaf in leaves):
            continue
        finished = [THIS_RUN.tasks[leaf] for leaf in leaves if leaf in THIS_RUN.tasks]
        signatures = [signature_of(task.records, task.args) for task in finished]
        sizes = [len(task.records) for task in finished]
        if leaves == [name]:
            yield (
                name,
                {
                    "signature": signatures[0] if signatures else NOT_JUDGED,
                    "breakdown": "none: there is no score",
                },
            )
        elif "unscored,none" in results["results"][name]:
            yield name, {"signature": signatures_of_tasks(signatures, sizes, False)}


def _head(results: Mapping[str, Any], captions: str | None) -> Document:
    """What every file of ours begins with."""
    config = results.get("config", {})
    return {
        "model": config.get("model"),
        "model_args": config.get("model_args"),
        "captions": captions,
        "started": moment(THIS_RUN.started_s),
    }


def _predicted(results: Mapping[str, Any], *, folder: Path | None, stamp: str) -> Document:
    """The document of a run with ``--predict_only``: where the captions of our tasks are."""
    logs = {
        task: {"samples": None if folder is None else f"{folder / stamp}_samples_{task}.jsonl"}
        for task in results["results"]
        if task in our_benchmarks()
    }
    return {"predict_only": True, **_head(results, None), "tasks": logs}


def _write_verdicts(
    head: Document, ours: Mapping[str, Mapping[str, str]], *, folder: Path | None, stamp: str
) -> None:
    """Write what was judged, for commands that compare runs, beside lmms-eval's results."""
    if folder is None:
        return
    for task, finished in THIS_RUN.tasks.items():
        benchmark = finished.benchmark
        if task == benchmark.pooled_group:
            continue  # its tasks' verdicts are those of the group
        path = verdict_path(folder, stamp, task)
        signature = ours.get(task, {}).get("signature")
        try:
            write_verdicts(
                path,
                {**head, "task": task, "signature": signature},
                benchmark,
                finished.records,
            )
        except OSError as error:
            logger.error(
                "verdicts of {} cannot be written to {}: {}; compare, stability and agree need "
                "them or the sample log: mend that and run again, nothing is asked twice",
                task,
                path,
                error,
            )


def _write(
    document: Mapping[str, object], kind: str, suffix: str, *, folder: Path | None, stamp: str
) -> str:
    """Write a file of ours, whole, beside lmms-eval's results.

    Returns:
        The file's name, or why there is none.
    """
    if folder is None:
        return "none: lmms-eval has no --output_path to write it to"
    path = folder / f"{stamp}_{kind}{suffix}.json"
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as error:
        logger.error("{} cannot be written to {}: {}", kind, path, error)
        return f"none: {folder} cannot be written to ({error}); mend that and run again"
    return path.name
