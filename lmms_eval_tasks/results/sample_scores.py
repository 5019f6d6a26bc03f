"""Scores of single captions where lmms-eval reads them, and its ``--baseline`` for our tasks.

lmms-eval (0.7.3) looks at two places. ``Stderr_CLT`` is the standard error of ``score`` in a
metric's items. And ``--baseline`` compares ``score`` of the samples with that of another run's
sample log: its mean times 100 is taken for the metric, so a sample's ``score`` is a hundredth of
what the caption contributes to the headline. A caption that does not count has neither.

For a baseline it reads one file for all tasks of a run, takes 0 for a caption where it finds no
number, and prints one comparison, that of ``score``, next to every metric of a task. Here like is
compared with like, or the reason is given why not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files import json_lines
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.results.intervals import contributions
from lmms_eval_captions.lmms_eval_tasks.results.scoring import has_score
from lmms_eval_captions.lmms_eval_tasks.signature import UNAVAILABLE, join_fields
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.model_wrappers.caption_files.columns import listed
from lmms_eval_captions.model_wrappers.caption_files.paths import newest_logs

SCORE: Final = "score"
_PERCENT: Final = 100.0
_DIGITS: Final = 12
"""Leaves out the noise of rounding, which is a difference to who compares equal captions."""
_NAME: Final = "paired_baseline"
"""Key of the baseline's name in lmms-eval's results; missing if nothing was compared."""
_JUDGING: Final = ("judge", "runs", "protocol")
"""Fields that two judged captions must share to be comparable, next to
the further fields of their signatures."""
_READ: Final = (*_JUDGING, "extras", "questions", "video_id")

Documents = Mapping[object, Mapping[str, object]]
"""lmms-eval's number of a document to what is known of how its caption was judged."""


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
        value = sample[benchmark.headline].get(SCORE)
        if value is None:
            # lmms-eval's loader takes 0 for a line without a score that has a target. The video
            # stands in the items, too.
            sample["target"] = ""
        else:
            sample[SCORE] = round(value / _PERCENT, _DIGITS)
            task = sample[benchmark.headline]["task"]
            documents = THIS_RUN.documents.setdefault(task, {})
            documents[sample["doc_id"]] = sample[benchmark.headline]


@contextmanager
def compared(results: MutableMapping[str, Any]) -> Iterator[None]:
    """Have lmms-eval's results name the metric that was compared, and the table mark no other.

    Once they are saved, metrics that were not compared stand apart, so that the table shows no
    difference and no star of them.
    """
    tables: MutableMapping[str, MutableMapping[str, Any]] = results.get("results", {})
    compared_tasks = [task for task in tables if task in our_benchmarks() and _NAME in tables[task]]
    for task in compared_tasks:
        tables[task][_NAME] = f"{tables[task][_NAME]} ({our_benchmarks()[task].headline})"
    yield
    rows: dict[str, Any] = {}
    for name, metrics in tables.items():
        rows[name] = metrics
        if name in compared_tasks:
            headline = our_benchmarks()[name].headline
            others = {
                key: value
                for key, value in metrics.items()
                if "," in key and key.partition(",")[0].partition("_stderr")[0] != headline
            }
            rows[name] = {key: value for key, value in metrics.items() if key not in others}
            # A row is shown under its alias, and a name can be used once.
            rows[f"{name} "] = {"alias": metrics.get("alias", name), **others}
            for of_tasks in (results.get("n-shot"), results.get("higher_is_better")):
                if of_tasks and name in of_tasks:
                    of_tasks[f"{name} "] = of_tasks[name]
    if compared_tasks:
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
    then, now = _scored(path, task), THIS_RUN.documents.get(task, {})
    for number, judged in now.items():
        # lmms-eval takes documents of one number for one.
        video, video_then = judged["video_id"], then.get(number, judged)["video_id"]
        if video != video_then:
            raise CaptionError(
                f"{path}: expected a run over the same data to compare with, but document {number} "
                f"is video {video_then!r:.60} there and {video!r:.60} here; judge both with one "
                "LMMS_CAPTIONS_DATA"
            )
    _warn_of_other_judging(task, then, now)
    return path


def _scored(path: Path, task: str) -> Documents:
    """Return how the captions of a sample log's scored lines were judged."""
    headline = our_benchmarks()[task].headline
    scored: dict[object, Mapping[str, object]] = {}
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
        score, judged = sample.get(SCORE), sample.get(headline)
        if isinstance(score, int | float) and isinstance(judged, dict):
            scored[sample.get("doc_id")] = {name: judged.get(name) for name in _READ}
    if scored:
        return scored
    raise CaptionError(
        f"{path}: expected a sample log with a score for each caption, found none: it is of an "
        "earlier version, of --predict_only, or had no score. Judge its captions again with "
        f"--model caption_file --model_args path={path}; stored verdicts cost nothing"
    )


def _warn_of_other_judging(task: str, then: Documents, now: Documents) -> None:
    common = [number for number in now if number in then]
    was, is_now = (_judging([of[number] for number in common]) for of in (then, now))
    other = [
        f"{name} {was.get(name, 'none')!r:.60}, now {is_now.get(name, 'none')!r:.60}"
        for name in dict.fromkeys((*is_now, *was))
        if was.get(name) != is_now.get(name)
    ]
    n_other = sum(
        now[number].get("questions") != then[number].get("questions") for number in common
    )
    if n_other:
        other.append(f"other questions about {n_other:,} of {len(common):,} videos")
    if other:
        words = (
            f"{task}: the --baseline was judged otherwise than this run ({', '.join(other)}): the "
            "difference is not the captions' alone. Judge both in one way"
        )
        logger.warning("{}", words)
        THIS_RUN.warn(words)


def _judging(captions: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return all that affects the captions' scores, except their words."""
    values: dict[str, set[str]] = {}
    for judged in captions:
        extras = judged.get("extras")
        named = {name: judged.get(name) for name in _JUDGING}
        for name, value in {**named, **(extras if isinstance(extras, dict) else {})}.items():
            if value != UNAVAILABLE:  # of a metric that is not compared
                values.setdefault(name, set()).add(str(value))
    return join_fields(values)
