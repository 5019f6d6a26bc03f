"""What judging would take, before anything is sent: calls, tokens and cost.

The protocols themselves ask: they are handed an ``ask`` that counts requests in place of sending
them, so that prompts and steps are those of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.anchors import (
    LEAST_CAPTIONS,
    captions_of,
    choose_questions,
)
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.captions import (
    CaptionArguments,
    GivenCaptions,
)
from lmms_eval_captions.lmms_eval_tasks.known_shares import known_share
from lmms_eval_captions.lmms_eval_tasks.request_counter import (
    CaptionedDocument,
    RequestCounter,
    TaskEstimate,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.model_wrappers.no_caption import NoCaption, says_nothing

_WORD: Final = "word "


@dataclass(slots=True)
class Estimate:
    """What all tasks take."""

    settings: Settings
    """The run's."""
    tasks: list[TaskEstimate] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line for each task that cannot be estimated."""
    captions: CaptionArguments | None = None
    n_distinct: int = 0
    """Captions of the file that are judged, each once, however many tasks judge it."""
    reply_s: float | None = None
    """Seconds that a reply takes, ``None`` where its output tokens are to tell."""


def estimate(
    settings: Settings, tasks: Sequence[str], *, captions: CaptionArguments | None = None
) -> Estimate:
    """Count what a run of these tasks would ask.

    Args:
        settings: The run's settings: judge, runs, data, cache.
        tasks: Names of tasks.
        captions: Where captions are; without, captions of typical length.

    Raises:
        CaptionError: If the captions cannot be read.
        SettingsError: If the settings or the prices cannot be used.
    """
    result = Estimate(settings, captions=captions)
    given = None if captions is None else GivenCaptions(captions)
    counter = RequestCounter(
        load_prices(settings.prices),
        settings.cache / "replies",
        ask_again=settings.ask_again,
        endpoints=settings.serving_endpoints,
    )
    for name in tasks:
        benchmark = benchmark_of_task(name)
        config = benchmark.judge_config(settings)
        counts = TaskEstimate(name, config.model, config.runs, benchmark.output_tokens)
        try:
            task = benchmark.tasks[name]
            documents = _captioned(benchmark, task, settings, given, counts)
            asyncio.run(counter.count(counts, documents, config, is_real=given is not None))
        except CaptionsError as error:
            result.problems.append(f"{name}: {error}")
        else:
            result.tasks.append(counts)
            if captions is not None and counts.n_missing and _stops(captions):
                result.problems.append(
                    f"{name}: {counts.n_missing:,} captions are missing in {captions.path}: a run "
                    "stops there; add them, or give missing=skip or missing=drop"
                )
    result.n_distinct = 0 if given is None else len(given.distinct)
    counter.close()
    return result


def _captioned(
    benchmark: Benchmark[Any, Any],
    task: Task,
    settings: Settings,
    given: GivenCaptions | None,
    counts: TaskEstimate,
) -> Iterator[CaptionedDocument]:
    """Each document with the caption that a run would judge."""
    typical = (_WORD * (task.caption_chars // len(_WORD) + 1))[: task.caption_chars]
    docs = benchmark.read(settings, task)
    captions = [typical] * len(docs) if given is None else given.of_task(benchmark, task, docs)
    counts.n_missing = sum(isinstance(caption, NoCaption) for caption in captions)
    if given is not None and given.arguments.missing != "error":
        counts.why_nan = _why_nan(benchmark, docs, captions, settings.max_unscored)
    for doc, caption in zip(docs, captions, strict=True):
        names = benchmark.video_names(doc)
        if not says_nothing(caption) and not counts.why_nan:
            counts.n_captions += 1
            counts.caption_chars += len(caption)
            questions = [benchmark.unseen(question) for question in benchmark.questions(doc)]
            yield CaptionedDocument(f"{names[0]} {task.aspect}", caption, questions, benchmark.ask)
    if counts.n_captions >= LEAST_CAPTIONS:
        yield from _anchors(benchmark, docs)


def _stops(captions: CaptionArguments) -> bool:
    """Whether a run with these arguments stops at a missing caption."""
    return captions.missing == "error" and not captions.is_plain


def _why_nan(
    benchmark: Benchmark[Any, Any],
    docs: Sequence[Doc],
    captions: Sequence[str],
    max_unscored: float,
) -> str:
    """Why a run asks the judge nothing, empty where it does ask."""
    known = known_share(benchmark, docs, dict(enumerate(captions)), rank=0, world_size=1)
    return known.words(max_unscored) if known and known.is_nan(max_unscored) else ""


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
