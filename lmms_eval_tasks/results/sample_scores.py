"""Scores of single captions where lmms-eval reads them, and its ``--baseline`` for our tasks.

lmms-eval (0.7.3) looks at two places. ``Stderr_CLT`` is the standard error of ``score`` in a
metric's items. And ``--baseline`` compares ``score`` of the samples with that of another run's
sample log: its mean times 100 is taken for the metric, so a sample's ``score`` is a hundredth of
what the caption contributes to the headline. A caption that does not count has neither. Of a
baseline it reads one file for all tasks, takes 0 for a caption where it finds no number, and prints
one comparison, that of ``score``, next to every metric of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files import json_lines
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.results.intervals import contributions
from lmms_eval_captions.lmms_eval_tasks.results.scoring import has_score
from lmms_eval_captions.lmms_eval_tasks.signature import UNAVAILABLE
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.paths import newest_logs

SCORE: Final = "score"
_PERCENT: Final = 100.0
_DIGITS: Final = 12
"""Leaves out the noise of rounding, which is a difference to who compares equal captions."""
_JUDGING: Final = ("judge", "runs", "protocol", "questions")
"""Fields of an item that two captions must share to be comparable, next to its ``extras``."""
_NAME: Final = "paired_baseline"
"""Key of the baseline's name in lmms-eval's results; missing if nothing was compared."""


def score_items(
    benchmark: Benchmark[Any, Any], metric: str, items: Sequence[PendingRecord]
) -> None:
    """Put into each item what its caption contributes to the metric, in the metric's unit."""
    records = [item.record for item in items]
    values = contributions(benchmark, metric, records) if has_score(records) else None
    for item, value in zip(items, values or [None] * len(items), strict=True):
        item.pop(SCORE, None)
        if value is not None:
            item[SCORE] = round(value, _DIGITS)


def score_samples(
    benchmark: Benchmark[Any, Any], samples: Sequence[MutableMapping[str, Any]]
) -> None:
    """Give every logged sample of an aggregated task its ``score``, or none.

    Items that came from other ranks are copies of those that were aggregated: they are scored here.
    """
    logged = [sample for sample in samples if isinstance(sample.get(benchmark.headline), Mapping)]
    for metric in benchmark.metrics:
        items: list[PendingRecord] = [sample[metric] for sample in logged if metric in sample]
        if not any(SCORE in item for item in items):
            score_items(benchmark, metric, items)
    for sample in logged:
        item = sample[benchmark.headline]
        if SCORE in item:
            sample[SCORE] = round(item[SCORE] / _PERCENT, _DIGITS)
            THIS_RUN.scored.setdefault(item["task"], {})[sample["doc_id"]] = item
        else:
            # lmms-eval's loader takes 0 for a line without a score that has a target. The video
            # stands in the items, too.
            sample["target"] = ""


@contextmanager
def compared(results: MutableMapping[str, Any]) -> Iterator[None]:
    """Have lmms-eval's results name the metric that was compared, and the table mark no other.

    Once they are saved, metrics that were not compared stand apart, so that the table shows no
    difference and no star of them.
    """
    tables: MutableMapping[str, MutableMapping[str, Any]] = results.get("results", {})
    ours = {task: of for task, of in our_benchmarks().items() if _NAME in tables.get(task, {})}
    for task, benchmark in ours.items():
        tables[task][_NAME] = f"{tables[task][_NAME]} ({benchmark.headline})"
    yield
    rows: dict[str, Any] = {}
    for name, metrics in tables.items():
        rows[name] = dict(metrics)
        if name not in ours:
            continue
        # A row is shown under its alias, and a name can be used once.
        apart = rows[f"{name} "] = {"alias": metrics.get("alias", name)}
        for key in metrics:
            metric, comma, _ = key.partition(",")
            if comma and metric.partition("_stderr")[0] != ours[name].headline:
                apart[key] = rows[name].pop(key)
        for of_tasks in (results.get("n-shot"), results.get("higher_is_better")):
            if of_tasks and name in of_tasks:
                of_tasks[f"{name} "] = of_tasks[name]
    if ours:
        results["results"] = rows


def baseline_log(path: Path, task: str) -> Path:
    """Return the sample log that a task is compared with, of a folder the newest one.

    Raises:
        CaptionError: If there is none, or it is of another task or data, or has no scores.
    """
    if path.is_dir():
        logs = newest_logs(path)
        if task not in logs:
            raise CaptionError(
                f"{path}: expected a sample log of {task} to compare with, found those of "
                f"{listed(logs)}; give a folder of a run of {task} with --log_samples"
            )
        path = logs[task]
    then: dict[object, Mapping[str, object]] = {}
    for sample in (line for _, line in json_lines(path) if isinstance(line, dict)):
        item = sample.get("unscored")
        logged = item.get("task") if isinstance(item, dict) else task
        if logged != task:
            raise CaptionError(
                f"{path}: expected a sample log of {task} to compare with, got one of {logged!r}; "
                "give the run's folder, or one task and its log"
            )
        judged = sample.get(our_benchmarks()[task].headline)
        if isinstance(sample.get(SCORE), int | float) and isinstance(judged, dict):
            then[sample.get("doc_id")] = judged
    if not then:
        raise CaptionError(
            f"{path}: expected a sample log with a score for each caption, found none: it is of an "
            "earlier version, of --predict_only, or had no score. Judge its captions again with "
            f"--model caption_file --model_args path={path}; stored verdicts cost nothing"
        )
    _compare_judging(path, task, then)
    return path


def _compare_judging(path: Path, task: str, then: Mapping[object, Mapping[str, object]]) -> None:
    """Raise if a baseline is of other videos; warn if its captions were judged otherwise."""
    other: set[str] = set()
    for number, item in THIS_RUN.scored.get(task, {}).items():
        item_then = then.get(number, item)
        video, video_then = item["video_id"], item_then.get("video_id")
        # lmms-eval takes documents of one number for one.
        if video_then != video:
            raise CaptionError(
                f"{path}: expected a run over the same data to compare with, but document {number} "
                f"is video {video_then!r:.60} there and {video!r:.60} here; judge both with one "
                "LMMS_CAPTIONS_DATA"
            )
        now, before = _judging(item), _judging(item_then)
        other.update(name for name in {**now, **before} if now.get(name) != before.get(name))
    if other:
        THIS_RUN.warn(
            f"{task}: the --baseline was judged otherwise than this run (other "
            f"{', '.join(sorted(other))}): the difference is not the captions' alone. Judge both "
            "in one way"
        )


def _judging(item: Mapping[str, object]) -> dict[str, object]:
    """Return what affects a caption's score, except its words."""
    extras = item.get("extras")
    named = {name: item.get(name) for name in _JUDGING}
    more = extras if isinstance(extras, dict) else {}
    # A metric that is unavailable is not compared.
    return named | {name: value for name, value in more.items() if value != UNAVAILABLE}
