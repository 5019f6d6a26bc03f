"""The command line ``lmms-eval-captions``: what surrounds a run. Runs are lmms-eval's."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions import __version__
from lmms_eval_captions.cli.agree import add_agree
from lmms_eval_captions.cli.build import add_build, build_estimate
from lmms_eval_captions.cli.compare import add_compare
from lmms_eval_captions.cli.label import add_label, add_labels
from lmms_eval_captions.cli.meta_eval import add_meta_eval
from lmms_eval_captions.cli.report import add_report
from lmms_eval_captions.cli.settings_flags import settings_taken
from lmms_eval_captions.cli.stability import add_stability
from lmms_eval_captions.cli.t2v_verify import add_t2v_verify
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.cli import add_estimate
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.cli import add_judge
from lmms_eval_captions.lmms_eval_tasks.commands.moments import moment_since
from lmms_eval_captions.lmms_eval_tasks.commands.score.cli import add_score
from lmms_eval_captions.lmms_eval_tasks.dependencies import advice_for
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

if TYPE_CHECKING:
    from argparse import _SubParsersAction


_SETTINGS = (
    "Every setting is a flag too, such as --judge for LMMS_CAPTIONS_JUDGE and --max-cost for "
    "LMMS_CAPTIONS_MAX_COST, or stands under lmms_eval_captions in a --config file (YAML)."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: Arguments, by default the process's own.

    Returns:
        Exit status: 0 for success, 1 for something found wrong, 2 for a usage error, 3 where a
        gate of ``compare`` is open, or ``judge verify`` cannot decide.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    is_run = words[:1] == ["run"]
    try:
        if is_run:
            with settings_taken(words[1:], (), is_run=True) as rest:
                return _run(rest)  # the other options are lmms-eval's
        parser = _parser()
        with settings_taken(words, _own_flags(parser, words), is_run=False) as rest:
            arguments = parser.parse_args(rest)
            return int(arguments.run(arguments))
    except CaptionsError as error:
        sys.stdout.flush()
        print(sentence(f"lmms-eval-captions: {error}"), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        advice = advice_for(error)
        if advice is None:
            raise
        print(f"lmms-eval-captions: {words[0]} needs more packages: {advice}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lmms-eval-captions",
        description="Helpers around the video-caption tasks of lmms-eval. To score captions, run "
        "lmms-eval-captions run --model M --tasks vdc_score.",
    )
    parser.add_argument("--version", action="version", version=f"lmms-eval-captions {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "tasks-path",
        help="print the folder of the task definitions, for lmms-eval's --include_path",
    )
    command.set_defaults(run=_tasks_path)
    commands.add_parser(
        "run",
        help="lmms-eval with the same arguments, then check of what this run wrote",
        add_help=False,
    )
    _add_check(commands)
    command = commands.add_parser(
        "doctor",
        help="what is installed, which judge would be asked and whether it answers, data found",
    )
    command.set_defaults(run=_doctor)
    add_report(commands)
    add_compare(commands)
    add_meta_eval(commands)
    add_build(commands)
    add_estimate(commands, build_estimate)
    add_agree(commands)
    add_judge(commands)
    add_score(commands)
    add_stability(commands)
    add_label(commands)
    add_labels(commands)
    add_t2v_verify(commands)
    for each in commands.choices.values():
        each.epilog = _SETTINGS
    return parser


def _own_flags(parser: argparse.ArgumentParser, words: Sequence[str]) -> set[str]:
    """Return the flags of a command and of the commands in it."""
    flags = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word in words:
                if word in action.choices:
                    flags |= _own_flags(action.choices[word], words)
    return flags


def _add_check(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "check",
        help="exit with 1 where a results folder holds a score that is nan or incomplete",
        description="Looks at the newest results of every task of every model below a folder. Exit "
        "code: 0 where every score can be trusted; 1 where one cannot: it is nan, too much is "
        "unscored (LMMS_CAPTIONS_MAX_UNSCORED), or the judge may not have judged; 2 where there is "
        "nothing to check.",
    )
    command.add_argument(
        "folder", type=Path, help="folder given to lmms-eval as --output_path, or one results file"
    )
    command.add_argument(
        "--since",
        type=moment_since,
        metavar="TIME",
        help="leave out runs that ended before, such as 2h ago or at 2026-01-31T18:30; exit code 2 "
        "where none has ended since",
    )
    command.add_argument(
        "--accept-doubts",
        action="store_true",
        help="a judge of which there is doubt is told and is no problem",
    )
    command.set_defaults(run=_check)


def _run(words: Sequence[str]) -> int:
    from lmms_eval_captions.lmms_eval_tasks.commands.run import run

    return run(words)


def _tasks_path(_: argparse.Namespace) -> int:
    print(tasks_path())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.check import Limits, check_folder

    limits = Limits(read_judge_settings().max_unscored, accept_doubts=arguments.accept_doubts)
    report = check_folder(arguments.folder.expanduser(), limits, since_s=arguments.since)
    for line in report.lines:
        print(line)
    print(report.last_line("lmms-eval-captions check"))
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
    problems = [finding for finding in findings if not finding.ok]
    behind = f" ({len(problems) - 1} more above)" if len(problems) > 1 else ""
    last = f"problem{behind}: {problems[0].topic}: {problems[0].text}" if problems else "ok"
    print(sentence(f"lmms-eval-captions doctor: {last}"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
