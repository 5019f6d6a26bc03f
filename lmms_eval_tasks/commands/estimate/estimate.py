"""What judging would take, before anything is sent: calls, tokens and cost.

The protocols themselves ask: they are handed an ``ask`` that counts requests in place of sending
them, so that prompts and steps are those of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.anchors import (
    LEAST_CAPTIONS,
    captions_of,
    choose_questions,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import (
    CaptionedDocument,
    RequestCounter,
    TaskEstimate,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.model_wrappers.caption_files.records import CaptionTable, open_captions
from lmms_eval_captions.model_wrappers.no_caption import says_nothing

_WORD: Final = "word "


@dataclass(slots=True)
class Estimate:
    """What all tasks take."""

    tasks: list[TaskEstimate] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line for each task that cannot be estimated."""
    captions: Path | None = None
    ask_again: bool = False
    """Whether what the store holds unreadable replies to alone is asked anew."""


def estimate(settings: Settings, tasks: Sequence[str], *, captions: Path | None = None) -> Estimate:
    """Count what a run of these tasks would ask.

    Args:
        settings: The run's settings: judge, runs, data, cache.
        tasks: Names of tasks.
        captions: File of captions or folder of sample logs; without, captions of typical length.

    Raises:
        CaptionError: If the captions cannot be read.
        SettingsError: If the settings or the prices cannot be used.
    """
    result = Estimate(captions=captions, ask_again=settings.ask_again)
    table_of_task = None if captions is None else open_captions(captions)
    counter = RequestCounter(
        load_prices(settings.prices),
        settings.cache / "replies",
        alias=settings.alias,
        ask_again=settings.ask_again,
    )
    for name in tasks:
        benchmark = benchmark_of_task(name)
        config = JudgeConfig.build(benchmark.judge_defaults, settings)
        counts = TaskEstimate(name, config.model, config.runs, benchmark.output_tokens)
        try:
            table = None if table_of_task is None else table_of_task(name)
            documents = _captioned(benchmark, benchmark.tasks[name], settings, table, counts)
            asyncio.run(counter.count(counts, documents, config, is_real=table is not None))
        except CaptionsError as error:
            result.problems.append(f"{name}: {error}")
        else:
            result.tasks.append(counts)
    counter.close()
    return result


def _captioned(
    benchmark: Benchmark[Any, Any],
    task: Task,
    settings: Settings,
    table: CaptionTable | None,
    counts: TaskEstimate,
) -> Iterator[CaptionedDocument]:
    """Each document with the caption that a run would judge."""
    typical = (_WORD * (task.caption_chars // len(_WORD) + 1))[: task.caption_chars]
    documents = benchmark.read(settings, task)
    for doc in documents:
        caption: str | None = typical
        names = benchmark.video_names(doc)
        if table is not None:
            texts = (table.find(name, task.aspect) for name in names)
            # lmms-eval strips what it hands to a task.
            caption = next((text.strip() for text in texts if text is not None), None)
        if caption is None:
            counts.n_missing += 1
        elif not says_nothing(caption):
            counts.n_captions += 1
            counts.caption_chars += len(caption)
            questions = [benchmark.unseen(question) for question in benchmark.questions(doc)]
            yield CaptionedDocument(f"{names[0]} {task.aspect}", caption, questions, benchmark.ask)
    if counts.n_captions >= LEAST_CAPTIONS:
        yield from _anchors(benchmark, documents)


def _anchors(
    benchmark: Benchmark[Any, Any], documents: Sequence[Mapping[str, object]]
) -> Iterator[CaptionedDocument]:
    """What the judge is also asked, with captions of our own."""
    check = benchmark.judge_check
    if check is not None:
        for question in choose_questions(check, map(benchmark.questions, documents)):
            unseen = benchmark.unseen(question)
            for text in captions_of(check, question):
                yield CaptionedDocument(text, text, [unseen], benchmark.ask, is_anchor=True)
