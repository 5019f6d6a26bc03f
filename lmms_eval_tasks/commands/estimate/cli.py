"""The subcommand ``estimate`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.commands.numbers_given import above_zero, positive

if TYPE_CHECKING:
    from argparse import _SubParsersAction


BuildEstimate = Callable[[Sequence[str]], int]
"""Prints an estimate of a build by its arguments; returns the exit code."""


def add_estimate(
    commands: _SubParsersAction[argparse.ArgumentParser], build_estimate: BuildEstimate
) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``.

    Args:
        commands: Subcommands of the parser.
        build_estimate: Called for ``--build``.
    """
    command = commands.add_parser(
        "estimate",
        help="what judging would take, before anything is sent: calls, tokens and cost",
        description="Counts the requests that a run would send, from the benchmarks' own questions "
        "(LMMS_CAPTIONS_DATA or the hub) and prompts. Asks no judge.",
    )
    wanted = command.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--tasks", metavar="NAMES", help="tasks and groups, separated by commas")
    wanted.add_argument(
        "--build",
        nargs=argparse.REMAINDER,
        metavar="KIND --videos DIR --writer MODELS",
        help="what `build` with these arguments would ask, of the models that write and check",
    )
    command.add_argument(
        "--captions",
        "--model_args",
        metavar="FILE",
        help="your captions: a file or folder, or what --model caption_file takes, "
        "path=FILE[,column=NAME][,missing=skip|drop]; without, captions of a typical length",
    )
    command.add_argument(
        "--captioner",
        metavar="ARGS",
        help="what --model caption_openai takes, such as model=gpt-4o,max_num_frames=16: what "
        "captions of it would cost, too",
    )
    command.add_argument(
        "--tokens-per-frame",
        type=positive,
        metavar="N",
        help="input tokens of a frame for the captioner; without, by its price list's rule",
    )
    command.add_argument(
        "--seconds-per-reply",
        type=above_zero,
        metavar="S",
        help="how long the judge takes for a reply; without, an assumption by its output tokens",
    )
    command.add_argument(
        "--runs", type=positive, metavar="N", help="judge runs (LMMS_CAPTIONS_JUDGE_RUNS)"
    )
    command.add_argument("--judge", metavar="MODEL", help="judge model (LMMS_CAPTIONS_JUDGE)")
    command.set_defaults(run=partial(_estimate, build_estimate))


def _estimate(build_estimate: BuildEstimate, arguments: argparse.Namespace) -> int:
    if arguments.build is not None:
        return build_estimate(arguments.build)
    from lmms_eval_captions.judges.endpoint.cost import load_prices
    from lmms_eval_captions.judges.settings import read_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.estimate.captioning import (
        CaptionerArguments,
        captioning_table,
        estimate_captions,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.estimate.captions import CaptionArguments
    from lmms_eval_captions.lmms_eval_tasks.commands.estimate.estimate import estimate
    from lmms_eval_captions.lmms_eval_tasks.commands.estimate.table import table_of
    from lmms_eval_captions.lmms_eval_tasks.sentence import MOST, sentence
    from lmms_eval_captions.lmms_eval_tasks.task_names import tasks_of

    settings = read_settings()
    settings = replace(
        settings,
        judge=arguments.judge or settings.judge,
        runs=arguments.runs or settings.runs,
    )
    captions = CaptionArguments.parse(arguments.captions) if arguments.captions else None
    tasks = tasks_of(arguments.tasks)
    if arguments.captioner:
        captioner, prices = (
            CaptionerArguments.parse(arguments.captioner),
            load_prices(settings.prices),
        )
        known = {"frame_tokens": arguments.tokens_per_frame}
        asked = estimate_captions(settings, tasks, captioner, prices, **known)
        of_captions = captioning_table(asked, captioner, prices, **known)
        sys.stdout.write("".join(f"{line}\n" for line in [*of_captions, ""]))
    result = estimate(settings, tasks, captions=captions)
    result.reply_s = arguments.seconds_per_reply
    lines = table_of(result, load_prices(settings.prices))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stderr.write("".join(f"problem: {problem}\n" for problem in result.problems))
    last = f"problem: {result.problems[-1]}" if result.problems else ""
    if len(last) > MOST:
        sys.stderr.write(f"{sentence(last)}\n")
    return 1 if result.problems else 0
