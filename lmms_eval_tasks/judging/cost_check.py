"""Expected cost of judging, checked against the limit before the first request is paid.

Estimates come from at most ``MOST_DOCUMENTS`` documents of a task: before captioning with captions
of typical length, and once they are written with the captions themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.lmms_eval_tasks.judging.request_counter import (
    CaptionedDocument,
    RequestCounter,
    TaskEstimate,
)
from lmms_eval_captions.model_wrappers.no_caption import says_nothing

MOST_DOCUMENTS: Final = 200


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """Expected cost of the tasks of a run."""

    n_calls: float = 0.0
    usd: float = 0.0

    def plus(self, n_calls: float, usd: float) -> ExpectedCost:
        """Return the sum with one more task."""
        return ExpectedCost(self.n_calls + n_calls, self.usd + usd)

    @property
    def words(self) -> str:
        """Requests and dollars, in half a sentence."""
        return f"about {self.n_calls:,.0f} requests, about ${self.usd:,.2f}"


WAYS_OUT: Final = (
    "Raise the limit (LMMS_CAPTIONS_MAX_COST, or none), take a cheaper judge (LMMS_CAPTIONS_JUDGE) "
    "or judge a sample of the questions (LMMS_CAPTIONS_PRECISION=0.5)"
)


def typical_caption(task: Task) -> str:
    """Return a caption of the length that is typical for a task."""
    return ("word " * (task.caption_chars // 5 + 1))[: task.caption_chars]


def expected_cost(
    benchmark: Benchmark[Any, Any],
    docs: Sequence[Doc],
    settings: JudgeSettings,
    captions: Mapping[int, str] | None = None,
) -> tuple[float, float] | None:
    """Estimate the number of requests and the US dollars that judging a task takes.

    Args:
        benchmark: The task's.
        docs: Documents of the task, at least one.
        settings: Those of the run.
        captions: Index of a document to its caption; ``None`` for captions of typical length.

    Returns:
        ``None`` if nothing is limited: without a limit, with a sample of questions (which ends at
        the limit), without a known price.
    """
    config, prices = benchmark.judge_config(settings), load_prices(settings.prices)
    if settings.max_cost_usd is None or settings.precision is not None:
        return None
    if not config.asks_endpoint or prices.price(config.model) is None:
        return None
    task, is_real = benchmark.task_of(docs[0]), captions is not None
    if captions is None:
        captions = dict.fromkeys(range(len(docs)), typical_caption(task))
    said = [(docs[index], text) for index, text in captions.items() if not says_nothing(text)]
    chosen = said[:: -(-len(said) // MOST_DOCUMENTS) or 1]

    def captioned() -> Iterator[CaptionedDocument]:
        for doc, caption in chosen:
            name = f"{benchmark.video_names(doc)[0]} {task.aspect}"
            questions = [benchmark.unseen(question) for question in benchmark.questions(doc)]
            yield CaptionedDocument(name, caption, questions, benchmark.ask)

    counts = TaskEstimate(task.name, config.model, config.runs, benchmark.output_tokens)
    counter = RequestCounter(
        prices,
        settings.cache / "replies",
        ask_again=settings.ask_again,
        endpoints=settings.serving_endpoints,
    )
    asyncio.run(counter.count(counts, captioned(), config, is_real=is_real))
    counter.close()
    scale = len(said) / max(1, len(chosen))
    return scale * counts.n_calls, scale * (counts.cost_usd(prices, settings.mode) or 0.0)


def require_within_limit(
    tasks: Sequence[tuple[Benchmark[Any, Any], Sequence[Doc]]], settings: JudgeSettings
) -> None:
    """Log what judging these documents is going to cost.

    Raises:
        SettingsError: If it is above the limit.
    """
    expected = ExpectedCost()
    for benchmark, docs in tasks:
        if docs and (cost := expected_cost(benchmark, docs, settings)):
            expected = expected.plus(*cost)
    if not expected.n_calls or settings.max_cost_usd is None:
        return
    words = f"judging takes {expected.words} (limit ${settings.max_cost_usd:g})"
    if expected.usd > settings.max_cost_usd:
        raise SettingsError(f"{words}: nothing was asked. {WAYS_OUT}")
    if settings.rank == 0:
        logger.info("{}, by prices of {}", words, load_prices(settings.prices).as_of)
