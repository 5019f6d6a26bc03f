"""The hooks of a benchmark's tasks, as lmms-eval calls them, out of its record."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import ceil, nan
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from loguru import logger

from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import data_settings, read_judge_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.judge_check import choose_questions
from lmms_eval_captions.lmms_eval_tasks.judging.expected import require_within_limit, why_not_ask
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION, submit
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import (
    THIS_RUN,
    AccountedRecord,
    FinishedTask,
)
from lmms_eval_captions.lmms_eval_tasks.records import Kind, PendingRecord
from lmms_eval_captions.lmms_eval_tasks.results.breakdown import report
from lmms_eval_captions.lmms_eval_tasks.results.sample_scores import score_items
from lmms_eval_captions.lmms_eval_tasks.results.scoring import (
    score_of,
    sum_over_tasks,
    total_unscored,
)
from lmms_eval_captions.lmms_eval_tasks.run_guard import require_judge_of
from lmms_eval_captions.lmms_eval_tasks.signature import digest_of_all
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS

if TYPE_CHECKING:
    from datasets import Dataset

Q = TypeVar("Q")
J = TypeVar("J", bound=Judgement)
Message = dict[str, object]
Aggregation = Callable[..., float]
"""Aggregation of a metric's items; lmms-eval adds its command line as ``args``."""
UNSCORED: Final = "unscored"

_FINDING_OUT: Final = threading.Lock()
"""lmms-eval hands captions in by several threads."""


class Hooks(Generic[Q, J]):
    """Hooks that the YAML files of a benchmark name."""

    def __init__(self, benchmark: Benchmark[Q, J]) -> None:
        self.benchmark = benchmark
        self._why_not: dict[str, Callable[[], tuple[str, Kind] | None]] = {}

    def __repr__(self) -> str:
        # lmms-eval writes the text of every hook into its results: no address belongs there.
        return f"hooks of {self.benchmark.name}"

    def __deepcopy__(self, _memo: object) -> Hooks[Q, J]:
        # lmms-eval copies a task's configuration, hooks and all.
        return self

    def process_docs(self, stub: Dataset) -> Dataset:
        """Documents of the task that the stub's one row names.

        Raises:
            CaptionsError: If the data or a setting cannot be used, or the judge cannot be asked.
        """
        from datasets import Dataset

        return Dataset.from_list(self.documents(self.benchmark.task_of(stub[0])))

    def documents(self, task: Task) -> list[Doc]:
        """Return the documents of a task, and prepare the run for it; see :meth:`process_docs`."""
        if task.note:
            logger.log(task.note_level, task.note)
        # What was known of an earlier run's captions is not of these.
        self._why_not.pop(task.name, None)
        require_judge_of(self.benchmark)
        RUN_CAPTIONS.expect(task.name, lambda doc: (self.benchmark.video_id(doc), task.aspect))
        documents = self.benchmark.read(data_settings(), task)
        check = self.benchmark.judge_check
        if check is not None:
            questions = choose_questions(check, map(self.benchmark.questions, documents))
            SESSION.anchors.prepare(task.name, questions)
        return list(documents)

    def doc_to_visual(self, doc: Doc) -> list[str]:
        """Path of the document's video, looked up when a captioner asks for it."""
        return [str(self.benchmark.video_path(data_settings(), doc))]

    def doc_to_text(
        self, doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None
    ) -> str:
        """Caption prompt, ours or the user's, between a model's own texts around it."""
        around = lmms_eval_specific_kwargs or {}
        prompt = self.benchmark.instruction(doc, Prompts(data_settings().prompts))
        return f"{around.get('pre_prompt', '')}{prompt}{around.get('post_prompt', '')}"

    def doc_to_messages(
        self, doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None
    ) -> list[Message]:
        """One turn of the user's: the clip as a video, whatever its name, and the prompt.

        Left to itself, lmms-eval 0.7.3 hands ``.webm`` over as sound and ``.gif`` as a picture.
        """
        content: list[Message] = [
            {"type": "video", "url": path} for path in self.doc_to_visual(doc)
        ]
        content.append({"type": "text", "text": self.doc_to_text(doc, lmms_eval_specific_kwargs)})
        return [{"role": "user", "content": content}]

    def doc_to_target(self, doc: Doc) -> str:
        """The video's id: it makes a sample log readable again, also one without verdicts."""
        return self.benchmark.video_id(doc)

    def process_results(self, doc: Doc, results: Sequence[str]) -> dict[str, PendingRecord]:
        """Submit one caption; the items fill in place once it is judged."""
        why_not_ask = self._why_not.get(self.benchmark.task_of(doc).name)
        with _FINDING_OUT:
            why_not = None if why_not_ask is None else why_not_ask()
        judged = submit(self.benchmark, doc, whole(results[0]), why_not=why_not)
        items = {
            name: PendingRecord(lambda name=name: judged().item(self.benchmark, name))  # type: ignore[misc] # one for each
            for name in self.benchmark.metrics
        }
        # One is enough to take along what this rank has asked.
        headline = self.benchmark.headline
        items[headline] = AccountedRecord(lambda: judged().item(self.benchmark, headline))
        items[UNSCORED] = PendingRecord(lambda: (judged().record, judged().record.head()))
        return items

    @property
    def metric_list(self) -> list[dict[str, object]]:
        """The metrics of a task, as its YAML file lists them."""
        metrics: list[dict[str, object]] = [
            {
                "metric": name,
                "aggregation": self.aggregate(name),
                "higher_is_better": metric.higher_is_better,
            }
            for name, metric in self.benchmark.metrics.items()
        ]
        unscored = {"metric": UNSCORED, "aggregation": self.aggregate_unscored}
        return [*metrics, {**unscored, "higher_is_better": False}]

    @property
    def group_metric_list(self) -> list[dict[str, object]]:
        """The metrics of a group of all tasks, whose scores are plain means of theirs."""
        means: dict[str, object] = dict.fromkeys(self.benchmark.metrics, "mean")
        return metric_list_of_group({**means, UNSCORED: sum_over_tasks})

    def hook(self, name: str) -> Any:  # noqa: ANN401 - of any type that a hook has
        """Return a hook by its name, for the YAML files."""
        return getattr(self, name)

    def see_captions(self, docs: Sequence[Doc], captions: Mapping[int, str]) -> None:
        """See all captions of a task in this process, by index, before any is judged."""
        task = self.benchmark.task_of(docs[0]).name
        # The judge's settings are read when the first caption is handed in, not earlier.
        self._why_not[task] = cache(partial(why_not_ask, self.benchmark, docs, captions))

    def aggregate(self, metric: str) -> Aggregation:
        """The aggregation of one of the benchmark's metrics."""
        return partial(self._aggregate, metric)

    def aggregate_unscored(self, items: Sequence[PendingRecord]) -> int:
        """Return the number of questions without a verdict, over all captions and judge runs."""
        return total_unscored([item.record for item in items])

    def _aggregate(
        self, name: str, items: Sequence[PendingRecord], args: argparse.Namespace | None = None
    ) -> float:
        """Return a metric; the headline also reports the task and keeps it for the end."""
        records = [item.record for item in items]
        # lmms-eval takes the standard error of what is in the items once this returns.
        score_items(self.benchmark, name, items)
        score = score_of(self.benchmark, name, records)
        if name == self.benchmark.headline and records:
            task = records[0].task
            SESSION.anchors.forget(task)
            report(FinishedTask(self.benchmark, records, args, self.benchmark.tasks[task].note))
        return score


class PooledGroup(Hooks[Any, Any]):
    """Hooks of a group whose numbers are those of all questions, not a mean of its tasks.

    lmms-eval hands a group's aggregation the scores of its tasks. The records that pooling needs
    are those that the tasks' aggregations, which come first, leave in ``THIS_RUN``.
    """

    def __init__(self, benchmark: Benchmark[Any, Any], name: str, *, note: str) -> None:
        super().__init__(benchmark)
        self._name = name
        self._note = note

    def __repr__(self) -> str:
        return f"hooks of the group {self._name}"

    @property
    def group_metric_list(self) -> list[dict[str, object]]:
        """The metrics of the group, as its YAML file lists them."""
        pooled = {name: partial(self._pool, name) for name in self.benchmark.metrics}
        return metric_list_of_group({**pooled, UNSCORED: sum_over_tasks})

    def _pool(
        self, metric: str, _values: Sequence[float], _sizes: Sequence[int], _weighted: bool
    ) -> float:
        tasks = list(self.benchmark.tasks)
        missing = [task for task in tasks if task not in THIS_RUN.tasks]
        if missing:
            logger.error(
                f"{self._name} {metric} is nan: it is counted over the pairs of "
                f"{' and '.join(tasks)}, and {' and '.join(missing)} was not aggregated in this "
                f"process. Run both tasks in one run: --tasks {self._name}"
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
        score = score_of(self.benchmark, metric, records)
        if metric == self.benchmark.headline and records:
            # Groups' aggregations do not receive the command line.
            args = THIS_RUN.tasks[tasks[0]].args
            report(FinishedTask(self.benchmark, records, args, self._note))
        return score


def metric_list_of_group(aggregations: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the metrics of a group, as its YAML file lists them."""
    return [
        {"metric": name, "aggregation": aggregation, "weight_by_size": False}
        for name, aggregation in aggregations.items()
    ]


def hooks_of(benchmark: Benchmark[Q, J]) -> Hooks[Q, J]:
    """The hooks of a benchmark; a hook written by hand takes the place of one by its name."""
    return Hooks(benchmark)


def hooks_in(task: Any) -> Hooks[Any, Any] | None:  # noqa: ANN401 - lmms-eval's
    """Return our hooks of one of lmms-eval's tasks; ``--predict_only`` removes them."""
    hooks = getattr(task.config.process_results, "__self__", None)
    return hooks if isinstance(hooks, Hooks) else None


def require_answerable(model: object, tasks: object, limit: float | None = None) -> None:
    """Raise SettingsError if a captioner of ours cannot answer a task, or judging costs too much.

    ``limit`` is the number of documents of each task, or their share below 1.
    """
    from lmms_eval_captions.model_wrappers.base import CaptionModel, require_answers

    each = dict(_each(tasks)) if isinstance(tasks, dict) else {}
    if isinstance(model, CaptionModel):
        kinds = {name: getattr(task, "OUTPUT_TYPE", None) for name, task in each.items()}
        require_answers(model, {name: k for name, k in kinds.items() if isinstance(k, str)})
    if not THIS_RUN.will_judge or getattr(model, "has_captions", False):
        return
    ours = []
    for task in each.values():
        if (hooks := hooks_in(task)) is not None:
            docs = list(task.eval_docs)
            n = None if limit is None else ceil(limit * len(docs) if limit < 1 else limit)
            ours.append((hooks.benchmark, docs[:n]))
    if ours:
        require_within_limit(ours, read_judge_settings())


def _each(tasks: dict[object, object]) -> Iterator[tuple[str, Any]]:
    """Each task by name."""
    for name, task in tasks.items():
        if isinstance(task, dict):
            yield from _each(task)
        else:
            yield str(name), task
