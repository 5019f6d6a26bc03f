"""A group whose numbers are those of all its tasks' questions together, not a mean of its tasks.

lmms-eval hands a group's aggregation the scores of its tasks and their numbers of documents. What
was counted is not in them, so the tasks' aggregations, which come first and in the same process,
leave their records in ``THIS_RUN``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.breakdown import report
from lmms_eval_captions.lmms_eval_tasks.hooks import UNSCORED, metric_list_of_group
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of, sum_over_tasks
from lmms_eval_captions.lmms_eval_tasks.signature import digest_of_all
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedTask


class PooledGroup:
    """The hooks of such a group, which has all tasks of a benchmark.

    Args:
        benchmark: Which one.
        name: The group's.
        note: What a reader must know about its numbers.
    """

    def __init__(self, benchmark: Benchmark[Any, Any], name: str, *, note: str) -> None:
        self._benchmark = benchmark
        self._name = name
        self._note = note

    def __repr__(self) -> str:
        # lmms-eval writes the text of every hook into its results: no address belongs there.
        return f"hooks of the group {self._name}"

    def __deepcopy__(self, _memo: object) -> PooledGroup:
        # lmms-eval copies a group's configuration, hooks and all.
        return self

    @property
    def group_metric_list(self) -> list[dict[str, object]]:
        """The metrics of the group, as its YAML file lists them."""
        pooled: dict[str, object] = {
            name: partial(self._aggregate, name) for name in self._benchmark.metrics
        }
        return metric_list_of_group({**pooled, UNSCORED: sum_over_tasks})

    def _aggregate(
        self, metric: str, _values: Sequence[float], _sizes: Sequence[int], _weighted: bool
    ) -> float:
        records = self._records(metric)
        if not records:
            return nan
        as_one = self._as_one(records)
        score = score_of(self._benchmark, metric, as_one)
        if metric == self._benchmark.headline:
            # Groups' aggregations are not told the command line.
            args = THIS_RUN.tasks[records[0].task].args
            report(FinishedTask(self._benchmark, as_one, args, self._note))
        return score

    def _as_one(self, records: Sequence[CaptionRecord]) -> list[CaptionRecord]:
        """Records of all tasks as those of one, whose signature is the group's."""
        of_task: dict[str, list[str]] = {}
        for record in records:
            if record.questions:
                of_task.setdefault(record.task, []).append(record.questions)
        digests = {task: digest_of_all(questions) for task, questions in of_task.items()}
        return [
            replace(record, task=self._name, questions=record.questions and digests[record.task])
            for record in records
        ]

    def _records(self, metric: str) -> list[CaptionRecord]:
        """The records of all tasks, none (and an error logged) where one of them is not at hand."""
        tasks = list(self._benchmark.tasks)
        missing = [task for task in tasks if task not in THIS_RUN.tasks]
        if missing:
            logger.error(
                "{} {} is nan: it is counted over the pairs of {}, and {} was not aggregated in "
                "this process. Run both tasks in one run: --tasks {}",
                self._name,
                metric,
                " and ".join(tasks),
                " and ".join(missing),
                self._name,
            )
            return []
        return [record for task in tasks for record in THIS_RUN.tasks[task].records]
