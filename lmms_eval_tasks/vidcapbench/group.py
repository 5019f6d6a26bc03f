"""The group ``vidcapbench``: AE and HE over all their pairs together, named by its YAML file.

lmms-eval hands a group's aggregation the scores of its tasks and their numbers of documents. A
micro average needs what was counted, so the aggregations of the tasks, which come first and in the
same process, leave their records here, and the command line, which says where results are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.breakdown import verdicts_by_run
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record
from lmms_eval_captions.lmms_eval_tasks.scoring import mean_over_runs
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.report import metrics_of, report

if TYPE_CHECKING:
    import argparse

_NAME: Final = "vidcapbench"
_TASKS: Final = ("vidcapbench_ae", "vidcapbench_he")
_FINISHED: Final[dict[str, list[Record]]] = {}
"""Task to its captions' records, of the latest run in this process."""
_ARGS: Final[dict[str, argparse.Namespace | None]] = {}
"""Task to the command line that it was aggregated under: groups' aggregations are not told it."""
_NOTE: Final = (
    "all pairs of VidCapBench-AE and VidCapBench-HE together; HE holds pairs that judges grade "
    "unstably and that are meant to be judged by people (section 3.4)"
)


def keep_for_group(records: Sequence[Record], args: argparse.Namespace | None) -> None:
    """Keep what the group counts of a task that has been judged.

    Args:
        records: Resolved items of the task's ``acc``.
        args: lmms-eval's command line.
    """
    if records:
        kept = [{name: item[name] for name in item if name != "judgements"} for item in records]
        _ARGS[str(records[0]["task"])] = args
        _FINISHED[str(records[0]["task"])] = [{**item, "task": _NAME} for item in kept]


def group_acc(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``acc`` in percent over all pairs of both tasks; also writes and shows the breakdown."""
    records = _records("acc")
    acc = _score("acc", records)
    if not isnan(acc):
        report(records, n_tokens=_tokens(records), note=_NOTE, args=_ARGS[_TASKS[0]])
    return acc


def group_pre(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``pre`` in percent over all pairs of both tasks, mean over judge runs."""
    return _score("pre", _records("pre"))


def group_cov(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``cov`` in percent over all pairs of both tasks, mean over judge runs."""
    return _score("cov", _records("cov"))


def group_con(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``con``: accuracy over all pairs of both tasks, tokens over all videos, each counted once.

    A video that is in both tasks has a caption in each; its tokens are their mean. A caption that
    is not there has none.
    """
    records = _records("con")
    reason = next((item["con_reason"] for item in records if "con_reason" in item), None)
    if reason is not None:
        logger.error("{} con is nan, all other metrics stand: {}", _NAME, reason)
        return nan
    return _score("con", records)


def _tokens(records: Sequence[Record]) -> list[float]:
    """T5 tokens of every video; none where they cannot be counted."""
    if any("con_reason" in item for item in records):
        return []
    videos: dict[str, list[int]] = {}
    for item in records:
        n_tokens = item["n_tokens"]
        if isinstance(n_tokens, int):
            videos.setdefault(str(item["video_id"]), []).append(n_tokens)
    return [fmean(counts) for counts in videos.values()]


def _records(metric: str) -> list[Record]:
    """The records of both tasks, none (and an error logged) where one of them is not at hand."""
    missing = [task for task in _TASKS if task not in _FINISHED]
    if missing:
        logger.error(
            "{} {} is nan: it is counted over the pairs of {}, and {} was not aggregated in this "
            "process. Run both tasks in one run: --tasks {}",
            _NAME,
            metric,
            " and ".join(_TASKS),
            " and ".join(missing),
            _NAME,
        )
        return []
    return [item for task in _TASKS for item in _FINISHED[task]]


def _score(metric: str, records: Sequence[Record]) -> float:
    if not records:
        return nan
    score = metrics_of(_tokens(records))[metric]
    return mean_over_runs(metric, records, lambda: list(map(score, verdicts_by_run(records))))
