"""``--baseline`` of lmms-eval for our tasks: it compares like with like, or says why it does not.

lmms-eval (0.7.3) reads one file for all tasks of a run, takes 0 for a caption where it finds no
number, and prints one comparison, that of the samples' ``score``, beside every metric of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files.bounded_files import json_lines
from lmms_eval_captions.lmms_eval_tasks.sample_scores import SCORE
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.sample_logs import newest_logs

_NAME: Final = "paired_baseline"
"""Where lmms-eval's results have the baseline's name; without one, nothing was compared."""
_JUDGING: Final = ("judge", "runs", "protocol")
"""What two judged captions must have in common for a difference to be the captions' own."""


@contextmanager
def compared(results: Mapping[str, Any]) -> Iterator[None]:
    """Have lmms-eval's results name the metric that was compared, and the table no other.

    Args:
        results: lmms-eval's of the run; changed in place: once they are saved, what is not compared
            is text, of which the table shows no difference.
    """
    tables = _compared(results)
    for task, metrics in tables.items():
        metrics[_NAME] = f"{metrics[_NAME]} ({our_benchmarks()[task].headline})"
    yield
    for task, metrics in tables.items():
        _hide_differences(metrics, of_all_but=our_benchmarks()[task].headline)


def baseline_log(path: Path, task: str) -> Path:
    """The sample log that a task is compared with.

    Args:
        path: A sample log, or a folder, whose newest log of the task is taken.
        task: One of ours.

    Raises:
        CaptionError: If there is none, or it is of another task, or has no scores.
    """
    if path.is_dir():
        logs = newest_logs(path)
        if task not in logs:
            raise CaptionError(
                f"{path}: expected a sample log of {task} to compare with, found those of "
                f"{listed(logs)}; give a folder of a run of {task} with --log_samples"
            )
        path = logs[task]
    judged = _first_scored(path, task)
    now = THIS_RUN.tasks.get(task)
    if now is not None:
        _warn_of_other_judging(path, judged, now.records[0].head())
    return path


def _first_scored(path: Path, task: str) -> Mapping[str, object]:
    """What the first scored line of a sample log says of its caption's judging."""
    headline = our_benchmarks()[task].headline
    for _, sample in json_lines(path):
        if not isinstance(sample, dict):
            continue
        item = sample.get("unscored")
        logged = item.get("task") if isinstance(item, dict) else task
        if logged != task:
            raise CaptionError(
                f"{path}: expected a sample log of {task} to compare with, got one of {logged!r}; "
                "give the run's folder, or one task and its log"
            )
        score = sample.get(SCORE)
        if isinstance(score, int | float) and isinstance(sample.get(headline), dict):
            judged: Mapping[str, object] = sample[headline]
            return judged
    raise CaptionError(
        f"{path}: expected a sample log with a score for each caption, found none: it is of an "
        "earlier version, of --predict_only, or had no score. Judge its captions again with "
        f"--model caption_file --model_args path={path}; stored verdicts cost nothing"
    )


def _warn_of_other_judging(
    path: Path, judged: Mapping[str, object], now: Mapping[str, object]
) -> None:
    other = [name for name in _JUDGING if judged.get(name) != now[name]]
    if other:
        logger.warning(
            "--baseline {} was judged otherwise than this run ({}): the difference is not the "
            "captions' alone. Judge both with one judge",
            path,
            ", ".join(f"{name} {judged.get(name)!r}, now {now[name]!r}" for name in other),
        )


def _compared(results: Mapping[str, Any]) -> dict[str, MutableMapping[str, Any]]:
    """Those of our tasks that were compared with a baseline."""
    tables: Mapping[str, MutableMapping[str, Any]] = results.get("results", {})
    return {
        task: metrics
        for task, metrics in tables.items()
        if task in our_benchmarks() and _NAME in metrics
    }


def _hide_differences(metrics: MutableMapping[str, Any], *, of_all_but: str) -> None:
    """Let the table show metrics without what it would take for their difference.

    It subtracts the baseline's headline from every number, and leaves texts alone.
    """
    for key, value in metrics.items():
        name, comma, _ = key.partition(",")
        if comma and name != of_all_but and "_stderr" not in name:
            if isinstance(value, float):
                metrics[key] = f"{value:.4f}"
            elif isinstance(value, int):
                metrics[key] = str(value)
