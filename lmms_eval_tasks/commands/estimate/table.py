"""An estimate as text: a table, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.cost import JudgeMode, Prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.captions import CaptionArguments
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.duration import (
    FIRST_TOKEN_S,
    OUTPUT_TOKEN_S,
    Duration,
    in_words,
)
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.estimate import Estimate
from lmms_eval_captions.lmms_eval_tasks.request_counter import (
    N_ATTEMPTS,
    TYPICAL_ANSWER,
    TaskEstimate,
)
from lmms_eval_captions.lmms_eval_tasks.sampling.draw import FEW
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import can_be_sampled, name_of
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

_HEADER: Final = (
    "task", "judge", "runs", "questions", "calls", "input tokens", "output tokens", "cost",
    "in batches",
)  # fmt: skip
_N_TEXT_COLUMNS: Final = 2
_Z: Final = 1.96
_HALF: Final = 50.0
"""Standard deviation of verdicts in percent of which half are right."""
_MODES: Final[tuple[JudgeMode, ...]] = ("now", "batch")


def table_of(estimate: Estimate, prices: Prices) -> list[str]:
    """The lines of an estimate: a row for each task, their sum, and what was assumed."""
    rows = [_cells(task, prices, stored=estimate.captions is not None) for task in estimate.tasks]
    if len(estimate.tasks) > 1:
        rows.append(_sum(estimate.tasks, prices, stored=estimate.captions is not None))
    header = [*_HEADER, *(["in the store"] if estimate.captions is not None else [])]
    lines = text_table([header, *rows], n_left=_N_TEXT_COLUMNS)
    return [*lines, "", *_assumptions(estimate, prices)] if estimate.tasks else []


def _cells(counts: TaskEstimate, prices: Prices, *, stored: bool) -> list[str]:
    return [
        counts.task,
        counts.model,
        f"{counts.runs}",
        *_counts([counts]),
        *(_dollars(counts.cost_usd(prices, mode)) for mode in _MODES),
        *([f"{counts.n_stored:,}"] if stored else []),
    ]


def _sum(tasks: Sequence[TaskEstimate], prices: Prices, *, stored: bool) -> list[str]:
    costs = [[task.cost_usd(prices, mode) for task in tasks] for mode in _MODES]
    return [
        "all",
        "",
        "",
        *_counts(tasks),
        *(_dollars(None if None in cost else sum(c for c in cost if c)) for cost in costs),
        *([f"{sum(task.n_stored for task in tasks):,}"] if stored else []),
    ]


def _counts(tasks: Sequence[TaskEstimate]) -> list[str]:
    return [
        f"{sum(task.n_questions for task in tasks):,}",
        f"{sum(task.n_calls for task in tasks):,}",
        f"{sum(task.input_tokens for task in tasks):,.0f}",
        f"{sum(task.output_tokens for task in tasks):,.0f}",
    ]


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _assumptions(estimate: Estimate, prices: Prices) -> list[str]:
    reply_tokens = {
        name: tokens for task in estimate.tasks for name, tokens in task.reply_tokens.items()
    }
    outputs = ", ".join(f"{name} {tokens}" for name, tokens in sorted(reply_tokens.items()))
    return [
        f"Captions: {_captions(estimate)}.",
        *_time(estimate),
        f"Input: the real questions in the real prompts, {CHARS_PER_TOKEN:g} characters per token; "
        f"a first step's answer, part of the second step's prompt, has {len(TYPICAL_ANSWER)}.",
        f"Output tokens per reply: {outputs or 'none'}.",
        "Calls are exact but for replies that cannot be read (asked again, 3 times at most). Input "
        "tokens may be off by 20%, output tokens by half, by far more for a judge that reasons; "
        "without --captions it is the length of captions that moves the most.",
        f"Prices of {prices.as_of}; in batches (LMMS_CAPTIONS_JUDGE_MODE=batch) at "
        f"{prices.batch_factor:g} of them.",
        *_remarks(estimate, prices),
    ]


def _captions(estimate: Estimate) -> str:
    if estimate.captions is None:
        lengths = ", ".join(
            f"{task.task} {task.caption_chars / max(1, task.n_captions):,.0f}"
            for task in estimate.tasks
        )
        return f"a typical number of characters each ({lengths}); --captions FILE counts yours"
    n_judged = sum(task.n_captions for task in estimate.tasks)
    n_missing = sum(task.n_missing for task in estimate.tasks)
    mean_chars = sum(task.caption_chars for task in estimate.tasks) / max(1, n_judged)
    n_captions = estimate.n_distinct
    text = (
        f"{n_captions:,} of {estimate.captions.path}, {mean_chars:,.0f} characters on average, "
        f"judged {n_judged:,} times (tasks: {len(estimate.tasks)})"
    )
    if n_missing:
        text += f"; missing, counted in each task: {n_missing:,}, {_left(estimate.captions)}"
    return text


def _left(captions: CaptionArguments) -> str:
    """What a run does about captions that are not there."""
    if captions.missing == "drop":
        return "left out of their tasks (missing=drop)"
    if captions.missing == "skip":
        return "their questions left unscored (missing=skip)"
    return "where a run stops unless missing=skip or missing=drop; they are not counted here"


def _time(estimate: Estimate) -> Iterator[str]:
    settings = estimate.settings
    n_calls = sum(task.n_calls for task in estimate.tasks)
    if not n_calls:
        return
    if settings.mode == "batch":
        yield "Time: that of the provider's batches, which promise a reply within 24 hours."
        return
    duration = Duration.of_tasks(
        estimate.tasks,
        concurrency=settings.concurrency,
        reply_s=estimate.reply_s,
        rate=settings.rate,
    )
    rate_words = ""
    if settings.rate is not None:
        rate_words = f", at most {settings.rate:g} a second (LMMS_CAPTIONS_JUDGE_RATE)"
    rule = (
        f"{FIRST_TOKEN_S:g} s and {OUTPUT_TOKEN_S:g} s per output token; --seconds-per-reply gives "
        "what you measured"
        if estimate.reply_s is None
        else "--seconds-per-reply"
    )
    yield (
        f"Time: about {in_words(duration.seconds)}, for {n_calls:,} calls, {settings.concurrency} "
        f"at once (LMMS_CAPTIONS_JUDGE_CONCURRENCY){rate_words}, if a reply takes "
        f"{duration.reply_s:.3g} s: an assumption ({rule}). Replies in the store take no time; "
        "rate limits may take more."
    )


def _sampled(estimate: Estimate, precision: float) -> Iterator[tuple[str, float]]:
    """Each benchmark by its tasks, and the part of its questions that gives a share so precisely.

    That of a simple random sample of verdicts of which half are right.
    """
    by_benchmark: dict[int, list[TaskEstimate]] = {}
    for task in estimate.tasks:
        by_benchmark.setdefault(id(benchmark_of_task(task.task)), []).append(task)
    needed = (_Z * _HALF / precision) ** 2
    for tasks in by_benchmark.values():
        n = sum(task.n_questions / task.runs for task in tasks)
        name = tasks[0].task if len(tasks) == 1 else f"{tasks[0].task} ... {tasks[-1].task}"
        if can_be_sampled(benchmark_of_task(tasks[0].task)) and n > 0:
            yield name, 1.0 if n <= FEW else needed / (needed + n)


def _remarks(estimate: Estimate, prices: Prices) -> Iterator[str]:
    for task in estimate.tasks:
        if task.why_nan:
            yield f"{task.task}: no score is possible and nothing is asked: {task.why_nan}."
    n_pictures = sum(task.n_pictures for task in estimate.tasks)
    if n_pictures:
        yield f"{n_pictures:,} pictures, each counted as the most tokens it can have."
    if estimate.settings.ask_again:
        n_again = sum(task.n_again for task in estimate.tasks)
        counted = "" if estimate.captions else " (counted with --captions alone)"
        yield (
            f"LMMS_CAPTIONS_ASK_AGAIN=1: {n_again:,} of the calls{counted} are for what the store "
            f"holds unreadable replies to alone; each of them may become {N_ATTEMPTS}."
        )
    precision = estimate.settings.precision
    if precision is not None:
        cheap = estimate.settings.cheap_judge
        yield (
            f"LMMS_CAPTIONS_PRECISION={precision:g}: this is all that there is to ask. Of "
            "shares in percent, a run asks about "
            + ", ".join(f"{part:.0%} of {name}" for name, part in _sampled(estimate, precision))
            + (
                f", and fewer of them the closer {name_of(cheap)} is to the judge, which is asked "
                "all and not counted here."
                if cheap
                else ", where half of the verdicts are right; fewer where most or hardly any are."
            )
        )
    unknown = {task.model for task in estimate.tasks if task.cost_usd(prices, "now") is None}
    if unknown:
        names = ", ".join(sorted(unknown))
        yield f"No price is known of {names}: give one in LMMS_CAPTIONS_PRICES."
    if any(is_offline(task.model) for task in estimate.tasks):
        yield "The judge lexical sends nothing: name another one with --judge."
