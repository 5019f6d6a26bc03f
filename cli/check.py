"""Commands ``check`` and ``doctor``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import add_command, moment

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.cli.doctor import Finding


def add_check(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "check",
        _check,
        help="exit with 1 if a results folder holds a score that is nan or incomplete",
        description="Checks the newest results of every task of every model below a folder. Exit "
        "code: 0 if every score can be trusted; 1 if one cannot: it is nan, too many questions "
        "are unscored (LMMS_CAPTIONS_MAX_UNSCORED), or the judge is suspicious; 2 if there is "
        "nothing to check.",
        example="lmms-eval-captions check results/mine --since 2h",
    )
    command.add_argument("folder", type=Path, help="lmms-eval's --output_path, or one results file")
    command.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="leave out runs that ended before, such as 2h ago or 2026-01-31T18:30; exit code 2 "
        "if none ended since (default: all runs)",
    )
    command.add_argument(
        "--accept-doubts",
        action="store_true",
        help="report a suspicious judge as a warning, not a problem",
    )


def _check(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.check import Limits, check_folder
    from lmms_eval_captions.judges.settings import read_judge_settings

    limits = Limits(read_judge_settings().max_unscored, accept_doubts=arguments.accept_doubts)
    report = check_folder(arguments.folder.expanduser(), limits, since_s=arguments.since)
    for line in report.lines:
        print(line)
    print(report.last_line("lmms-eval-captions check"))
    return 1 if report.problems else 0


def add_doctor(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "doctor",
        _doctor,
        help="settings, software, judge and data that a run would use",
        description="Lists the settings that are set, checks installed packages and data, and "
        "asks the judge one question. Exit code: 0 without a problem, 1 with one, 2 if a setting "
        "cannot be used.",
        example="lmms-eval-captions doctor --judge qwen3 --judge-url http://127.0.0.1:8000/v1",
    )
    command.add_argument(
        "--all", action="store_true", help="list every setting, with the default of unset ones"
    )


def _doctor(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.cli.doctor import examine, settings_in_force
    from lmms_eval_captions.judges.settings import read_settings
    from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

    findings = _printed(settings_in_force(os.environ, with_unset=arguments.all))
    findings += _printed(examine(read_settings()))
    problems = [finding for finding in findings if finding.status == "problem"]
    others = f" ({len(problems) - 1} more above)" if len(problems) > 1 else ""
    last = f"problem{others}: {problems[0].topic}: {problems[0].text}" if problems else "ok"
    print(sentence(f"lmms-eval-captions doctor: {last}"))
    return 1 if problems else 0


def _printed(findings: list[Finding]) -> list[Finding]:
    for finding in findings:
        print(f"{finding.status:<8} {finding.topic:<9} {finding.text}")
    return findings
