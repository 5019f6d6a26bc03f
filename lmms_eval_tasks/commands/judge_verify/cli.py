"""The command ``judge verify`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import dollars

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_judge(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``lmms-eval-captions``."""
    text = "verify that an endpoint is the judge it claims to be"
    judge = commands.add_parser("judge", help=text)
    parts = judge.add_subparsers(required=True, metavar="COMMAND")
    command = parts.add_parser(
        "verify",
        help=text,
        description="Asks the judge about 60 captions with planted facts per benchmark, and "
        "probes the endpoint: model name, truncation, temperature 0, cached replies. Verdicts are "
        "compared with the right ones, or with a record of the judge that you trust. Exit code: 0 "
        "for PASSED, 1 for FAILED, 3 for UNDECIDED, 2 for an error.",
    )
    command.add_argument(
        "--tasks", metavar="NAMES", help="benchmarks or tasks, comma-separated (default: all)"
    )
    command.add_argument(
        "--against", type=Path, metavar="FILE",
        help="record of the trusted judge, written by -o (default: the right verdicts)",
    )  # fmt: skip
    command.add_argument(
        "--max-cost", type=dollars, metavar="USD",
        help="cost limit in dollars (default: LMMS_CAPTIONS_MAX_COST)",
    )  # fmt: skip
    command.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the record there")
    command.set_defaults(run=_verify)


def _verify(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.anchors import subjects_of
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.record import (
        read_record,
        write_record,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.verify import (
        EXIT_CODES,
        text_of,
        verify,
    )

    settings = read_judge_settings()
    subjects = subjects_of(arguments.tasks, settings)
    settings.require_named_judge(subjects[0].config.model)
    settings.require_judge_access()
    verified = verify(
        subjects,
        settings,
        against=None if arguments.against is None else read_record(arguments.against.expanduser()),
        max_cost_usd=arguments.max_cost or settings.max_cost_usd,
    )
    if arguments.format == "json":
        sys.stdout.write(f"{json.dumps(verified.to_json(), indent=1, ensure_ascii=False)}\n")
    else:
        sys.stdout.write(text_of(verified))
    if arguments.output is not None:
        write_record(arguments.output, verified.record)
        print(f"record written to {arguments.output}", file=sys.stderr)
    return EXIT_CODES[verified.state]
