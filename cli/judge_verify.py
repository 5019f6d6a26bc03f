"""The command ``judge verify`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.cli.options import add_command, dollars

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.verification.decision import State
    from lmms_eval_captions.verification.verify import Verified

EXIT_CODES: Final[Mapping[State, int]] = {"passed": 0, "failed": 1, "undecided": 3}
_N_EXAMPLES: Final = 3


def add_judge(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``lmms-eval-captions``."""
    text = "verify that an endpoint is the judge it claims to be"
    judge = commands.add_parser("judge", help=text)
    parts = judge.add_subparsers(required=True, metavar="COMMAND")
    command = add_command(
        parts,
        "verify",
        _verify,
        help=text,
        description="Asks the judge about 60 captions with planted facts per benchmark, and "
        "probes the endpoint: model name, truncation, temperature 0, cached replies. Verdicts are "
        "compared with the right ones, or with a record of the judge that you trust. Exit code: 0 "
        "for PASSED, 1 for FAILED, 3 for UNDECIDED, 2 for an error.",
        example="lmms-eval-captions judge verify --judge gpt-4.1-mini -o gpt-4.1-mini.json",
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


def _verify(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.verification.anchors import subjects_of
    from lmms_eval_captions.verification.record import read_record, require_writable, write_record
    from lmms_eval_captions.verification.verify import verify

    settings = read_judge_settings()
    subjects = subjects_of(arguments.tasks, settings)
    settings.require_named_judge(subjects[0].config.model)
    settings.require_judge_access()
    if arguments.output is not None:
        require_writable(arguments.output)
    verified = verify(
        subjects,
        settings,
        against=None if arguments.against is None else read_record(arguments.against.expanduser()),
        max_cost_usd=arguments.max_cost or settings.max_cost_usd,
    )
    if arguments.format == "json":
        sys.stdout.write(f"{json.dumps(_json(verified), indent=1, ensure_ascii=False)}\n")
    else:
        sys.stdout.write("\n".join(_lines(verified)) + "\n")
    if arguments.output is not None:
        write_record(arguments.output, verified.record)
        print(f"record written to {arguments.output}", file=sys.stderr)
    return EXIT_CODES[verified.state]


def _lines(verified: Verified) -> Iterator[str]:
    yield f"{verified.record.model} at {', '.join(verified.endpoints)}"
    for finding in verified.findings:
        yield f"  {finding.state:<7} {finding.name}: {finding.text}"
    for each in verified.benchmarks:
        same = (each.n - len(each.different)) / each.n if each.n else nan
        yield (
            f"  {each.name}: {each.n} anchors, {same:.1%} as expected, {each.n_missing} without "
            "a reply"
        )
        yield from (f"    {sentence}" for sentence in each.different[:_N_EXAMPLES])
    cost = "" if verified.usd is None else f", ${verified.usd:.2f}"
    yield f"  {verified.n_calls:,} requests{cost}"
    reasons = f": {'; '.join(verified.reasons)}" if verified.reasons else ""
    yield f"{verified.state.upper()}{reasons}"


def _json(verified: Verified) -> dict[str, object]:
    return {
        "verdict": verified.state,
        "reasons": list(verified.reasons),
        "model": verified.record.model,
        "endpoints": list(verified.endpoints),
        "findings": [asdict(finding) for finding in verified.findings],
        "benchmarks": {
            each.name: {
                "anchors": each.n + each.n_missing,
                "missing": each.n_missing,
                "different": len(each.different),
            }
            for each in verified.benchmarks
        },
        "calls": verified.n_calls,
        "usd": verified.usd,
    }
