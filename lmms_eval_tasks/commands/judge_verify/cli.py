"""The subcommand ``judge`` of ``lmms-eval-captions``, with its own subcommand ``verify``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.commands.numbers_given import dollars

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_INTERRUPTED: Final = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""


def add_judge(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    judge = commands.add_parser(
        "judge", help="verify: whether an endpoint behaves like the judge that it claims to be"
    )
    parts = judge.add_subparsers(required=True, metavar="COMMAND")
    command = parts.add_parser(
        "verify",
        help="whether an endpoint behaves like the judge that it claims to be",
        description="Asks the judge of the settings (LMMS_CAPTIONS_JUDGE, LMMS_CAPTIONS_JUDGE_URL) "
        "about captions with planted facts, whose answers are known by construction, and looks at "
        "what the endpoint does with requests: truncation, temperature, seed, tokenizer, caches. "
        "Verdicts are compared one by one with a record of the judge that is trusted, until it is "
        "known whether it is the same. Runs of a judge that passed have judge-fp in their "
        "signature. Exit code: 0 for PASSED, 1 for FAILED, 3 for UNDECIDED, 2 where it cannot be "
        "asked.",
    )
    command.add_argument(
        "--tasks",
        metavar="NAMES",
        help="benchmarks, tasks or groups, separated by commas; default: all that ask this judge",
    )
    command.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="record of the judge that is trusted, which -o wrote; default: what this judge said "
        "at this endpoint when it was first verified",
    )
    command.add_argument(
        "--recorded",
        type=Path,
        metavar="FOLDER",
        help="results folder of a run whose judge is trusted (with sample logs): up to 200 of its "
        "questions are asked anew",
    )
    command.add_argument(
        "--first",
        action="store_true",
        help="put aside what is kept of this judge at this endpoint, and take a new record",
    )
    command.add_argument(
        "--anew",
        action="store_true",
        help="ask everything anew, also what was answered before an interruption within a day",
    )
    command.add_argument(
        "--max-cost",
        type=dollars,
        metavar="USD",
        help="most that may be billed; default: LMMS_CAPTIONS_MAX_COST, or no limit",
    )
    command.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE",
        help="write the record there, for --against; then all anchors are asked",
    )  # fmt: skip
    command.set_defaults(run=_verify)


def _verify(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.plan import Options, Plan
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import (
        read_record,
        require_writable,
        write_record,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.report import (
        EXIT_CODES,
        json_of,
        text_of,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import subjects_of
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.verify import JudgeVerification

    if arguments.output is not None:
        require_writable(arguments.output)
    settings = read_judge_settings()
    subjects = subjects_of(arguments.tasks, settings)
    settings.require_named_judge(subjects[0].config.model)
    settings.require_judge_access()
    options = Options(
        against=None if arguments.against is None else read_record(arguments.against.expanduser()),
        recorded=None if arguments.recorded is None else arguments.recorded.expanduser(),
        is_first=arguments.first,
        is_anew=arguments.anew,
        wants_record=arguments.output is not None,
        max_cost_usd=arguments.max_cost or settings.max_cost_usd,
    )
    plan = Plan.of(subjects, settings, options)
    for sentence in plan.words:
        print(sentence, file=sys.stderr, flush=True)
    try:
        verified = JudgeVerification(plan).run()
    except KeyboardInterrupt:
        without = " without --anew" if arguments.anew else ""
        print(
            f"stopped: every reply that came is kept, and the same command{without} goes on from "
            "there",
            file=sys.stderr,
        )
        return _INTERRUPTED
    sys.stdout.write(json_of(verified) if arguments.format == "json" else text_of(verified))
    sys.stdout.flush()
    if arguments.output is not None and verified.record is not None:
        write_record(arguments.output, verified.record)
        print(f"record written to {arguments.output}", file=sys.stderr)
    elif arguments.output is not None:
        print(
            f"no record is written to {arguments.output}: not all anchors have a reply",
            file=sys.stderr,
        )
    return EXIT_CODES[verified.state]
