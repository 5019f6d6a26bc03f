"""The group ``vidcapbench``: AE and HE over all their pairs together, named by its YAML file.

lmms-eval hands a group's aggregation the scores of its tasks and their numbers of documents. A
micro average needs what was counted, so the aggregations of the tasks, which come first and in the
same process, leave their records here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from statistics import fmean
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.breakdown import verdicts_by_run
from lmms_eval_captions.lmms_eval_tasks.judging import Record
from lmms_eval_captions.lmms_eval_tasks.scoring import mean_over_runs
from lmms_eval_captions.metrics.vidcapbench_acc import vidcapbench_acc
from lmms_eval_captions.metrics.vidcapbench_con import vidcapbench_con
from lmms_eval_captions.metrics.vidcapbench_cov import vidcapbench_cov
from lmms_eval_captions.metrics.vidcapbench_pre import vidcapbench_pre

_NAME: Final = "vidcapbench"
_TASKS: Final = ("vidcapbench_ae", "vidcapbench_he")
_FINISHED: Final[dict[str, list[Record]]] = {}
"""Task to its captions' records, of the latest run in this process."""


def keep_for_group(records: Sequence[Record]) -> None:
    """Keep what the group counts of a task that has been judged.

    Args:
        records: Resolved items of the task's ``acc``.
    """
    if records:
        kept = [{name: item[name] for name in item if name != "judgements"} for item in records]
        _FINISHED[str(records[0]["task"])] = [{**item, "task": _NAME} for item in kept]


def group_acc(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``acc`` in percent over all pairs of both tasks, mean over judge runs."""
    return _score("acc", _records("acc"), vidcapbench_acc)


def group_pre(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``pre`` in percent over all pairs of both tasks, mean over judge runs."""
    return _score("pre", _records("pre"), vidcapbench_pre)


def group_cov(_values: Sequence[float], _sizes: Sequence[int], _weighted: bool) -> float:
    """``cov`` in percent over all pairs of both tasks, mean over judge runs."""
    return _score("cov", _records("cov"), vidcapbench_cov)


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
    videos: dict[str, list[int]] = {}
    for item in records:
        n_tokens = item["n_tokens"]
        if isinstance(n_tokens, int):
            videos.setdefault(str(item["video_id"]), []).append(n_tokens)
    tokens = [fmean(counts) for counts in videos.values()]
    return _score("con", records, partial(vidcapbench_con, n_tokens=tokens))


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


def _score(
    metric: str, records: Sequence[Record], score: Callable[[Sequence[Any]], float]
) -> float:
    if not records:
        return nan
    return mean_over_runs(metric, records, lambda: list(map(score, verdicts_by_run(records))))
