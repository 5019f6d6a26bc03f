"""The command ``estimate``: calls, tokens and cost of a run before anything is sent."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Final

from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.judges.endpoint.cost import Prices, load_prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN
from lmms_eval_captions.judges.endpoint.request import is_offline
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.estimate import (
    Captioner,
    CaptionFile,
    CaptioningEstimate,
    Estimate,
    estimate_captions,
)
from lmms_eval_captions.lmms_eval_tasks.estimate import estimate as estimate_judging
from lmms_eval_captions.lmms_eval_tasks.judging.expected import (
    N_ATTEMPTS,
    TYPICAL_ANSWER,
    TaskEstimate,
)
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import split_address
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import FEW, can_be_sampled
from lmms_eval_captions.lmms_eval_tasks.sentence import MOST, sentence
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task, tasks_of

_FIRST_TOKEN_S: Final = 1.0
"""Assumed seconds until a reply begins."""
_OUTPUT_TOKEN_S: Final = 0.02
"""Assumed seconds per output token."""
_NEEDED: Final = (1.96 * 50.0) ** 2
"""Questions that give a share of 50% within 1 point (95%), out of infinitely many."""
_MISSING: Final = {
    "drop": "left out of their tasks (missing=drop)",
    "skip": "their questions left unscored (missing=skip)",
}


def estimate(arguments: Namespace) -> int:
    """Print an estimate of captioning, if it is asked for, and of judging."""
    if bool(arguments.build) == bool(arguments.tasks):
        raise SettingsError("estimate: expected either --tasks NAMES or --build KIND")
    if arguments.build:
        from lmms_eval_captions.cli.build import estimate_build

        return estimate_build(arguments.build)
    settings = read_settings()
    prices = load_prices(settings.prices)
    captions = CaptionFile.parse(arguments.captions) if arguments.captions else None
    tasks = tasks_of(arguments.tasks)
    lines: list[str] = []
    if arguments.captioner:
        captioner = Captioner.parse(arguments.captioner, prices)
        rows = estimate_captions(settings, tasks, captioner)
        lines += [*_captioning_lines(rows, captioner, prices), ""]
    result = estimate_judging(settings, tasks, captions=captions)
    if result.tasks:
        lines += [*_table(result, prices), ""]
        lines += _assumptions(result, prices, arguments.seconds_per_reply)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stderr.write("".join(f"problem: {problem}\n" for problem in result.problems))
    last = f"problem: {result.problems[-1]}" if result.problems else ""
    if len(last) > MOST:
        sys.stderr.write(f"{sentence(last)}\n")
    return 1 if result.problems else 0


def _table(result: Estimate, prices: Prices) -> list[str]:
    """Return a row for each task, and their sum."""
    is_stored = result.captions is not None
    rows = [_cells([task], task, prices) for task in result.tasks]
    if len(rows) > 1:
        rows.append(_cells(result.tasks, None, prices))
    header = [
        "task", "judge", "runs", "questions", "calls", "input tokens", "output tokens", "cost",
        "in batches", "in the store",
    ]  # fmt: skip
    return text_table([row[: len(header) - (not is_stored)] for row in (header, *rows)], n_left=2)


def _cells(tasks: Sequence[TaskEstimate], one: TaskEstimate | None, prices: Prices) -> list[str]:
    costs = [[task.cost_usd(prices, mode) for task in tasks] for mode in ("now", "batch")]
    return [
        *((one.task, one.model, str(one.runs)) if one else ("all", "", "")),
        f"{sum(task.n_questions for task in tasks):,}",
        f"{sum(task.n_calls for task in tasks):,}",
        f"{sum(task.input_tokens for task in tasks):,.0f}",
        f"{sum(task.output_tokens for task in tasks):,.0f}",
        *(_dollars(None if None in cost else sum(c for c in cost if c)) for cost in costs),
        f"{sum(task.n_stored for task in tasks):,}",
    ]


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _assumptions(result: Estimate, prices: Prices, reply_s: float | None) -> Iterator[str]:
    reply_tokens = {
        name: tokens for task in result.tasks for name, tokens in task.reply_tokens.items()
    }
    outputs = ", ".join(f"{name} {tokens}" for name, tokens in sorted(reply_tokens.items()))
    yield f"Captions: {_captions(result)}."
    n_calls = sum(task.n_calls for task in result.tasks)
    if n_calls:
        yield _time(result, n_calls, reply_s)
    yield (
        f"Input: the real questions in the real prompts, {CHARS_PER_TOKEN:g} characters per token; "
        f"a first step's answer, part of the second step's prompt, has {len(TYPICAL_ANSWER)}."
    )
    yield f"Output tokens per reply: {outputs or 'none'}."
    yield (
        "Calls are exact except for unreadable replies (asked again, 3 times at most). Input "
        "tokens may be off by 20%, output tokens by half, by far more for a reasoning judge; "
        "without --captions the length of captions is the largest uncertainty."
    )
    yield (
        f"Prices of {prices.as_of}; in batches (LMMS_CAPTIONS_JUDGE_MODE=batch) at "
        f"{prices.batch_factor:g} of them."
    )
    yield from _remarks(result, prices)


def _captions(result: Estimate) -> str:
    tasks = result.tasks
    if result.captions is None:
        lengths = ", ".join(
            f"{task.task} {task.caption_chars / max(1, task.n_captions):,.0f}" for task in tasks
        )
        return f"a typical number of characters each ({lengths}); --captions FILE counts yours"
    n_judged = sum(task.n_captions for task in tasks)
    n_missing = sum(task.n_missing for task in tasks)
    mean_chars = sum(task.caption_chars for task in tasks) / max(1, n_judged)
    text = (
        f"{result.n_distinct:,} of {result.captions.path}, {mean_chars:,.0f} characters on "
        f"average, judged {n_judged:,} times (tasks: {len(tasks)})"
    )
    if not n_missing:
        return text
    fate = _MISSING.get(
        str(result.captions.missing),
        "where a run stops unless missing=skip or missing=drop; they are not counted here",
    )
    return f"{text}; missing, counted in each task: {n_missing:,}, {fate}"


def _time(result: Estimate, n_calls: int, reply_s: float | None) -> str:
    settings = result.settings
    if settings.mode == "batch":
        return "Time: that of the provider's batches, which promise a reply within 24 hours."
    rule = "--seconds-per-reply"
    if reply_s is None:
        n_tokens = sum(task.output_tokens for task in result.tasks)
        reply_s = _FIRST_TOKEN_S + _OUTPUT_TOKEN_S * n_tokens / n_calls
        rule = (
            f"{_FIRST_TOKEN_S:g} s and {_OUTPUT_TOKEN_S:g} s per output token; --seconds-per-reply "
            "replaces it"
        )
    seconds = -(-n_calls // settings.concurrency) * reply_s
    at_most = ""
    if settings.rate is not None:
        seconds = max(seconds, n_calls / settings.rate)
        at_most = f", at most {settings.rate:g} a second (LMMS_CAPTIONS_JUDGE_RATE)"
    return (
        f"Time: about {_duration(seconds)}, for {n_calls:,} calls, {settings.concurrency} at once "
        f"(LMMS_CAPTIONS_JUDGE_CONCURRENCY){at_most}, if a reply takes {reply_s:.3g} s: an "
        f"assumption ({rule}). Stored replies take no time; rate limits may take more."
    )


def _duration(seconds: float) -> str:
    """Return a duration in the largest fitting unit.

    >>> _duration(0.4), _duration(90), _duration(5400), _duration(200_000)
    ('1 second', '2 minutes', '1.5 hours', '56 hours')
    """
    minute, hour = 60, 3600
    if seconds < hour:
        is_short = seconds < minute
        n = max(1, round(seconds)) if is_short else -int(-seconds // minute)
        return plural(n, "second" if is_short else "minute")
    hours = seconds / hour
    return f"{hours:.1f} hours" if hours < 10 else f"{hours:,.0f} hours"


def _remarks(result: Estimate, prices: Prices) -> Iterator[str]:
    for task in result.tasks:
        if task.why_nan:
            yield f"{task.task}: no score is possible and nothing is asked: {task.why_nan}."
    n_pictures = sum(task.n_pictures for task in result.tasks)
    if n_pictures:
        yield f"{n_pictures:,} pictures, each counted as the most tokens it can have."
    if result.settings.ask_again:
        n_again = sum(task.n_again for task in result.tasks)
        counted = "" if result.captions else " (counted only with --captions)"
        yield (
            f"LMMS_CAPTIONS_ASK_AGAIN=1: {n_again:,} of the calls{counted} are for requests with "
            f"only unreadable replies in the store; each of them may become {N_ATTEMPTS}."
        )
    precision, cheap = result.settings.precision, result.settings.cheap_judge
    if precision is not None:
        shares = ", ".join(f"{share:.0%} of {name}" for name, share in _shares(result, precision))
        fewer = ", if half of the verdicts are right; fewer if most or hardly any are."
        if cheap:
            fewer = (
                f", and fewer the closer {split_address(cheap)[0]} is to the judge; it is asked "
                "everything and not counted here."
            )
        yield (
            f"LMMS_CAPTIONS_PRECISION={precision:g}: the table counts all questions. Of shares in "
            f"percent, a run asks about {shares}{fewer}"
        )
    unknown = {task.model for task in result.tasks if task.cost_usd(prices, "now") is None}
    if unknown:
        yield _without_price(", ".join(sorted(unknown)))
    if any(is_offline(task.model) for task in result.tasks):
        yield "The judge lexical sends nothing: name another one with --judge."


def _without_price(names: str) -> str:
    return f"No price is known of {names}: give one in LMMS_CAPTIONS_PRICES."


def _shares(result: Estimate, precision: float) -> Iterator[tuple[str, float]]:
    """Yield each benchmark by its tasks, and the share of its questions that is needed."""
    by_benchmark: dict[int, list[TaskEstimate]] = {}
    for task in result.tasks:
        by_benchmark.setdefault(id(benchmark_of_task(task.task)), []).append(task)
    needed = _NEEDED / precision**2
    for tasks in by_benchmark.values():
        n = sum(task.n_questions / task.runs for task in tasks)
        name = tasks[0].task if len(tasks) == 1 else f"{tasks[0].task} ... {tasks[-1].task}"
        if can_be_sampled(benchmark_of_task(tasks[0].task)) and n > 0:
            yield name, 1.0 if n <= FEW else needed / (needed + n)


def _captioning_lines(
    rows: Sequence[CaptioningEstimate], captioner: Captioner, prices: Prices
) -> list[str]:
    """Return the lines of an estimate of captioning."""
    if len(rows) > 1:
        numbers = zip(*(row[1:] for row in rows), strict=True)
        rows = [*rows, CaptioningEstimate("all", *map(sum, numbers))]
    table = [["task", "captioner", "captions", "input tokens", "output tokens", "cost"]]
    for task, n, n_input, n_output in rows:
        cost = prices.cost_usd(captioner.model, input_tokens=n_input, output_tokens=n_output)
        counts = [f"{n:,}", f"{n_input:,.0f}", f"{n_output:,.0f}"]
        table.append([task, captioner.model, *counts, _dollars(cost)])
    assumed = "" if captioner.is_exact else " at most, by an assumption"
    lines = [
        *text_table(table, n_left=2),
        "",
        f"Captions: {captioner.n_frames} frames of each clip, {captioner.frame_tokens:,} tokens "
        f"per frame{assumed}; clips with fewer frames and stored captions cost less."
        " Only requests that fail or return nothing are sent again.",
        f"Prices of {prices.as_of}. caption_openai's max_cost= sets a limit.",
    ]
    if prices.price(captioner.model) is None:
        lines.append(_without_price(captioner.model))
    return lines
