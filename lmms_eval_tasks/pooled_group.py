"""A group whose numbers are those of all its tasks' questions together, not a mean of its tasks.

lmms-eval hands a group's aggregation the scores of its tasks. The counts that pooling needs are in
the records, which the tasks' aggregations leave in ``THIS_RUN``: they come first, in this process.
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
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of, sum_over_tasks
from lmms_eval_captions.lmms_eval_tasks.signature import digest_of_all
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN, FinishedTask


class PooledGroup:
    """Hooks of a group that has all tasks of a benchmark.

    Args:
        benchmark: The benchmark.
        name: Name of the group.
        note: A remark that readers of its numbers need.
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
            return nan
        records = []
        for task in tasks:
            task_records = THIS_RUN.tasks[task].records
            digest = digest_of_all([r.questions for r in task_records if r.questions])
            records += [
                replace(record, task=self._name, questions=record.questions and digest)
                for record in task_records
            ]
        score = score_of(self._benchmark, metric, records)
        if metric == self._benchmark.headline and records:
            # Groups' aggregations do not receive the command line.
            args = THIS_RUN.tasks[tasks[0]].args
            report(FinishedTask(self._benchmark, records, args, self._note))
        return score
