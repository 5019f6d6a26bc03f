"""The command line ``lmms-eval-captions``: what surrounds a run. Runs are lmms-eval's."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.cli import add_estimate
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.cli import add_meta_eval
from lmms_eval_captions.lmms_eval_tasks.registry import modules


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: Arguments, by default the process's own.

    Returns:
        Exit status: 0 for success, 1 for something found wrong, 2 for a usage error.
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except CaptionsError as error:
        print(f"lmms-eval-captions: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lmms-eval-captions",
        description="Helpers around the video-caption tasks of lmms-eval. To score captions, run "
        "lmms-eval --model M --tasks vdc_score.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "tasks-path",
        help="print the folder of the task definitions, for lmms-eval's --include_path",
    )
    command.set_defaults(run=_tasks_path)
    command = commands.add_parser(
        "check", help="exit with 1 where a results folder holds a score that is nan or incomplete"
    )
    command.add_argument("folder", type=Path, help="folder given to lmms-eval as --output_path")
    command.set_defaults(run=_check)
    command = commands.add_parser(
        "doctor",
        help="what is installed, which judge would be asked and whether it answers, data found",
    )
    command.set_defaults(run=_doctor)
    add_meta_eval(commands)
    add_estimate(commands)
    for benchmark in modules("commands"):
        benchmark.add_commands(commands)
    return parser


def _tasks_path(_: argparse.Namespace) -> int:
    from lmms_eval_captions.lmms_eval_tasks.plugin import tasks_path

    print(tasks_path())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.check import check_folder

    report = check_folder(arguments.folder, max_unscored=read_judge_settings().max_unscored)
    for line in (*report.fine, *report.problems):
        print(line)
    return 1 if report.problems else 0


def _doctor(_: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.doctor import examine
    from lmms_eval_captions.lmms_eval_tasks.commands.settings_in_force import settings_in_force

    for setting in settings_in_force(os.environ):
        print(f"{'ok     ' if setting.ok else 'problem'}  {'setting':<10} {setting.text}")
    findings = examine(read_settings())
    for finding in findings:
        print(f"{'ok     ' if finding.ok else 'problem'}  {finding.topic:<10} {finding.text}")
    return 0 if all(finding.ok for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
