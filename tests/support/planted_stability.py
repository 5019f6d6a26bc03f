"""Official questions of every benchmark with verdicts planted on them, whose stability is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task, task_groups
from planted_runs import VERDICTS, PlantedCaption, Question, record_of, write_run

NAMES: Final = (
    "vdc_score",
    "vdc_rouge",
    "vidcapbench",
    "vcapsbench",
    "capquiz",
    "msvd_eval_combined",
)
"""A task or group of each benchmark, and of each kind of verdict."""

Asked = tuple[str, str, str, int]
"""Task, video, text, and how often that text stood before."""
Plan = Callable[[Asked, str], str]
"""What the judge runs say of a question about a captioner's caption: ``same``, ``differs`` or
``unscored``."""


def tasks_of_name(name: str) -> tuple[str, ...]:
    """The tasks of a group, or the task itself."""
    return task_groups().get(name, (name,))


def official_questions(settings: DataSettings, task: str) -> dict[Asked, Mapping[str, str]]:
    """Every question of a task with its groups in the breakdown, read as the task reads it."""
    benchmark = benchmark_of_task(task)
    questions: dict[Asked, Mapping[str, str]] = {}
    for doc in benchmark.read(settings, benchmark.tasks[task]):
        for asked, question in zip(
            _asked(benchmark, task, doc), benchmark.questions(doc), strict=True
        ):
            questions[asked] = benchmark.groups(doc, question, None)
    return questions


def plant(
    folder: Path,
    settings: DataSettings,
    name: str,
    plans: Mapping[str, Plan],
    *,
    n_runs: int = 3,
    leave_out: Sequence[str] = (),
) -> list[Path]:
    """Write a results folder for each captioner.

    Args:
        folder: Gets them.
        settings: Where the official files are.
        name: Task or group.
        plans: Captioner to what is said of its captions.
        n_runs: Judge runs.
        leave_out: Videos of which there are no captions.
    """
    tasks = tasks_of_name(name)
    groups = {} if tasks == (name,) else {name: tasks}
    for place, (captioner, plan) in enumerate(plans.items()):
        generator = random.Random(place)
        records = {
            task: [
                _record(benchmark_of_task(task), task, doc, captioner, plan, n_runs, generator)
                for doc in _docs(settings, task)
                if benchmark_of_task(task).video_id(doc) not in leave_out
            ]
            for task in tasks
        }
        write_run(folder / captioner, records, groups=groups)
    return [folder / captioner for captioner in plans]


def _docs(settings: DataSettings, task: str) -> list[dict[str, object]]:
    benchmark = benchmark_of_task(task)
    known: Task = benchmark.tasks[task]
    return [doc for doc in benchmark.read(settings, known) if benchmark.questions(doc)]


def _asked(benchmark: Benchmark[Any, Any], task: str, doc: Mapping[str, Any]) -> list[Asked]:
    texts: list[str] = []
    found = []
    for question in benchmark.questions(doc):
        text = benchmark.question_text(question)
        found.append((task, benchmark.video_id(doc), text, texts.count(text)))
        texts.append(text)
    return found


def _record(
    benchmark: Benchmark[Any, Any],
    task: str,
    doc: Mapping[str, Any],
    captioner: str,
    plan: Plan,
    n_runs: int,
    generator: random.Random,
) -> CaptionRecord:
    asked = _asked(benchmark, task, doc)
    kind = "vdc_rouge" if task.startswith("vdc_rouge") else benchmark.name
    columns = []
    for question in asked:
        first, second = generator.sample(list(VERDICTS[kind]), 2)
        fate = plan(question, captioner)
        others = {"same": first, "differs": second, "unscored": None}[fate]
        column = [others] + [first] * (n_runs - 1)
        generator.shuffle(column)
        columns.append(column)
    questions = [
        Question(text, benchmark.groups(doc, question, None))
        for (_, _, text, _), question in zip(asked, benchmark.questions(doc), strict=True)
    ]
    runs = [list(run) for run in zip(*columns, strict=True)]
    record = record_of(task, PlantedCaption(benchmark.video_id(doc), questions, runs))
    return replace(record, asked=[text for _, _, text, _ in asked])
