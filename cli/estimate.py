"""Command ``estimate``: calls, tokens and cost of a run before anything is sent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.cli.build import estimate_build
from lmms_eval_captions.cli.options import above_zero, add_command, positive

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.judges.endpoint.cost import Prices
    from lmms_eval_captions.lmms_eval_tasks.estimate import (
        Captioner,
        CaptionFile,
        CaptioningEstimate,
        Estimate,
    )
    from lmms_eval_captions.lmms_eval_tasks.request_counter import TaskEstimate

_HEADER: Final = (
    "task", "judge", "runs", "questions", "calls", "input tokens", "output tokens", "cost",
    "in batches",
)  # fmt: skip
_FIRST_TOKEN_S: Final = 1.0
"""Assumed seconds until a reply begins."""
_OUTPUT_TOKEN_S: Final = 0.02
"""Assumed seconds per output token."""
_NEEDED: Final = (1.96 * 50.0) ** 2
"""Questions that give a share of 50% within 1 point (95%), out of infinitely many."""


def add_estimate(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "estimate",
        _estimate,
        help="calls, tokens and cost of a run, before anything is sent",
        description="Counts the requests of a run from the benchmarks' own questions "
        "(LMMS_CAPTIONS_DATA or the hub) and prompts. Asks no judge. Exit code: 0, or 1 if a task "
        "cannot be estimated.",
        example="lmms-eval-captions estimate --tasks vdc_score --captions captions.jsonl "
        "--judge gpt-4.1-mini",
    )
    subject = command.add_mutually_exclusive_group(required=True)
    subject.add_argument("--tasks", metavar="NAMES", help="tasks and groups, comma-separated")
    subject.add_argument(
        "--build",
        nargs=argparse.REMAINDER,
        metavar="KIND --videos DIR --writer MODELS",
        help="requests of `build` with these arguments",
    )
    add = command.add_argument
    add(
        "--captions",
        "--model_args",
        metavar="FILE",
        help="captions to judge: a file or folder, or the arguments of --model caption_file, "
        "path=FILE[,column=NAME][,missing=skip|drop] (default: captions of typical length)",
    )
    add(
        "--captioner",
        metavar="ARGS",
        help="arguments of --model caption_openai, such as model=gpt-4o,max_num_frames=16, to "
        "estimate its captions too (default: captioning is not estimated)",
    )
    add(
        "--tokens-per-frame",
        type=positive,
        metavar="N",
        help="input tokens of a frame for the captioner (default: by its price list)",
    )
    add(
        "--seconds-per-reply",
        type=above_zero,
        metavar="S",
        help="seconds until the judge has replied (default: assumed from its output tokens)",
    )
    add("--runs", type=positive, metavar="N", help="judge runs (default: the benchmark's)")
    add("--judge", metavar="MODEL", help="judge model (default: LMMS_CAPTIONS_JUDGE)")


def _estimate(arguments: argparse.Namespace) -> int:
    if arguments.build is not None:
        return estimate_build(arguments.build)
    from lmms_eval_captions.judges.endpoint.cost import load_prices
    from lmms_eval_captions.judges.settings import read_settings
    from lmms_eval_captions.lmms_eval_tasks import estimate as room
    from lmms_eval_captions.lmms_eval_tasks.sentence import MOST, sentence
    from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of

    settings = read_settings()
    settings = replace(
        settings, judge=arguments.judge or settings.judge, runs=arguments.runs or settings.runs
    )
    prices = load_prices(settings.prices)
    captions = room.CaptionFile.parse(arguments.captions) if arguments.captions else None
    tasks = tasks_of(arguments.tasks)
    if arguments.captioner:
        captioner = room.Captioner.parse(arguments.captioner, prices, arguments.tokens_per_frame)
        rows = room.estimate_captions(settings, tasks, captioner)
        _print([*_captioning_lines(rows, captioner, prices), ""])
    result = room.estimate(settings, tasks, captions=captions)
    _print(lines_of(result, prices, arguments.seconds_per_reply))
    sys.stderr.write("".join(f"problem: {problem}\n" for problem in result.problems))
    last = f"problem: {result.problems[-1]}" if result.problems else ""
    if len(last) > MOST:
        sys.stderr.write(f"{sentence(last)}\n")
    return 1 if result.problems else 0


def _print(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def lines_of(estimate: Estimate, prices: Prices, reply_s: float | None = None) -> list[str]:
    """Return the lines of an estimate: a row for each task, their sum, and the assumptions.

    Args:
        estimate: Estimate of judging.
        prices: Price list.
        reply_s: Seconds of a reply; ``None`` to assume them from its output tokens.
    """
    from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

    if not estimate.tasks:
        return []
    is_stored = estimate.captions is not None
    rows = [_cells([task], prices, is_stored=is_stored) for task in estimate.tasks]
    if len(rows) > 1:
        rows.append(_cells(estimate.tasks, prices, is_stored=is_stored))
    header = [*_HEADER, *(["in the store"] if is_stored else [])]
    table = text_table([header, *rows], n_left=2)
    return [*table, "", *_assumptions(estimate, prices, reply_s)]


def _cells(tasks: Sequence[TaskEstimate], prices: Prices, *, is_stored: bool) -> list[str]:
    one = tasks[0] if len(tasks) == 1 else None
    costs = [[task.cost_usd(prices, mode) for task in tasks] for mode in ("now", "batch")]
    return [
        one.task if one else "all",
        one.model if one else "",
        str(one.runs) if one else "",
        f"{sum(task.n_questions for task in tasks):,}",
        f"{sum(task.n_calls for task in tasks):,}",
        f"{sum(task.input_tokens for task in tasks):,.0f}",
        f"{sum(task.output_tokens for task in tasks):,.0f}",
        *(_dollars(None if None in cost else sum(c for c in cost if c)) for cost in costs),
        *([f"{sum(task.n_stored for task in tasks):,}"] if is_stored else []),
    ]


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _assumptions(estimate: Estimate, prices: Prices, reply_s: float | None) -> Iterator[str]:
    from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN
    from lmms_eval_captions.lmms_eval_tasks.request_counter import TYPICAL_ANSWER

    reply_tokens = {
        name: tokens for task in estimate.tasks for name, tokens in task.reply_tokens.items()
    }
    outputs = ", ".join(f"{name} {tokens}" for name, tokens in sorted(reply_tokens.items()))
    yield f"Captions: {_captions(estimate)}."
    yield from _time(estimate, reply_s)
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
    yield from _remarks(estimate, prices)


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
    text = (
        f"{estimate.n_distinct:,} of {estimate.captions.path}, {mean_chars:,.0f} characters on "
        f"average, judged {n_judged:,} times (tasks: {len(estimate.tasks)})"
    )
    if not n_missing:
        return text
    return f"{text}; missing, counted in each task: {n_missing:,}, {_missing(estimate.captions)}"


def _missing(captions: CaptionFile) -> str:
    if captions.missing == "drop":
        return "left out of their tasks (missing=drop)"
    if captions.missing == "skip":
        return "their questions left unscored (missing=skip)"
    return "where a run stops unless missing=skip or missing=drop; they are not counted here"


def _time(estimate: Estimate, reply_s: float | None) -> Iterator[str]:
    settings = estimate.settings
    n_calls = sum(task.n_calls for task in estimate.tasks)
    if not n_calls:
        return
    if settings.mode == "batch":
        yield "Time: that of the provider's batches, which promise a reply within 24 hours."
        return
    rule = "--seconds-per-reply"
    if reply_s is None:
        n_tokens = sum(task.output_tokens for task in estimate.tasks)
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
    yield (
        f"Time: about {duration(seconds)}, for {n_calls:,} calls, {settings.concurrency} at once "
        f"(LMMS_CAPTIONS_JUDGE_CONCURRENCY){at_most}, if a reply takes {reply_s:.3g} s: an "
        f"assumption ({rule}). Stored replies take no time; rate limits may take more."
    )


def duration(seconds: float) -> str:
    """Return a duration in the largest fitting unit.

    >>> duration(0.4), duration(90), duration(5400), duration(200_000)
    ('1 second', '2 minutes', '1.5 hours', '56 hours')
    """
    minute, hour = 60, 3600
    if seconds < minute:
        n = max(1, round(seconds))
        return f"{n} second{'s' if n > 1 else ''}"
    if seconds < hour:
        n = -int(-seconds // minute)
        return f"{n} minute{'s' if n > 1 else ''}"
    hours = seconds / hour
    return f"{hours:.1f} hours" if hours < 10 else f"{hours:,.0f} hours"


def _remarks(estimate: Estimate, prices: Prices) -> Iterator[str]:
    from lmms_eval_captions.judges.endpoint.request import is_offline
    from lmms_eval_captions.lmms_eval_tasks.request_counter import N_ATTEMPTS
    from lmms_eval_captions.lmms_eval_tasks.sampling.plans import name_of

    for task in estimate.tasks:
        if task.why_nan:
            yield f"{task.task}: no score is possible and nothing is asked: {task.why_nan}."
    n_pictures = sum(task.n_pictures for task in estimate.tasks)
    if n_pictures:
        yield f"{n_pictures:,} pictures, each counted as the most tokens it can have."
    if estimate.settings.ask_again:
        n_again = sum(task.n_again for task in estimate.tasks)
        counted = "" if estimate.captions else " (counted only with --captions)"
        yield (
            f"LMMS_CAPTIONS_ASK_AGAIN=1: {n_again:,} of the calls{counted} are for requests with "
            f"only unreadable replies in the store; each of them may become {N_ATTEMPTS}."
        )
    precision, cheap = estimate.settings.precision, estimate.settings.cheap_judge
    if precision is not None:
        shares = ", ".join(f"{share:.0%} of {name}" for name, share in _shares(estimate, precision))
        yield (
            f"LMMS_CAPTIONS_PRECISION={precision:g}: the table counts all questions. Of shares in "
            f"percent, a run asks about {shares}"
            + (
                f", and fewer the closer {name_of(cheap)} is to the judge; it is asked everything "
                "and not counted here."
                if cheap
                else ", if half of the verdicts are right; fewer if most or hardly any are."
            )
        )
    unknown = {task.model for task in estimate.tasks if task.cost_usd(prices, "now") is None}
    if unknown:
        names = ", ".join(sorted(unknown))
        yield f"No price is known of {names}: give one in LMMS_CAPTIONS_PRICES."
    if any(is_offline(task.model) for task in estimate.tasks):
        yield "The judge lexical sends nothing: name another one with --judge."


def _shares(estimate: Estimate, precision: float) -> Iterator[tuple[str, float]]:
    """Yield each benchmark by its tasks, and the share of its questions that is needed."""
    from lmms_eval_captions.lmms_eval_tasks.sampling.plans import FEW, can_be_sampled
    from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

    by_benchmark: dict[int, list[TaskEstimate]] = {}
    for task in estimate.tasks:
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
    from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

    def cells(task: str, n: int, n_input: float, n_output: float) -> tuple[str, ...]:
        cost = prices.cost_usd(captioner.model, input_tokens=n_input, output_tokens=n_output)
        numbers = (f"{n:,}", f"{n_input:,.0f}", f"{n_output:,.0f}")
        return (task, captioner.model, *numbers, _dollars(cost))

    table = [cells(*row) for row in rows]
    if len(rows) > 1:
        table.append(
            cells(
                "all",
                sum(row.n_captions for row in rows),
                sum(row.input_tokens for row in rows),
                sum(row.output_tokens for row in rows),
            )
        )
    header = ("task", "captioner", "captions", "input tokens", "output tokens", "cost")
    assumed = "" if captioner.is_exact else " at most, by an assumption"
    lines = [
        *text_table([header, *table], n_left=2),
        "",
        f"Captions: {captioner.n_frames} frames of each clip, {captioner.frame_tokens:,} tokens "
        f"per frame{assumed} (--tokens-per-frame replaces it); clips with fewer frames and stored "
        "captions cost less. Only requests that fail or return nothing are sent again.",
        f"Prices of {prices.as_of}. caption_openai's max_cost= sets a limit.",
    ]
    if prices.price(captioner.model) is None:
        lines.append(f"No price is known of {captioner.model}: give one in LMMS_CAPTIONS_PRICES.")
    return lines
