"""The subcommand ``agree`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.commands.output import add_output, write_output

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_agree(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "agree",
        help="how far judges of the same captions agree, who is more lenient, what they cost",
        description="Compares judges on captions that are the same word for word: Cohen's kappa, "
        "Gwet's AC1 and Krippendorff's alpha with intervals over videos, confusion tables, "
        "leniency by group, slope over the captions' length, ranks of the captioners and dollars; "
        "last a line for each judge. With one folder, the judge's runs are compared with one "
        "another. Asks no judge.",
    )
    command.add_argument(
        "folders",
        type=Path,
        nargs="+",
        metavar="FOLDER",
        help="folders given to lmms-eval as --output_path: the same captions, of one captioner or "
        "of several, each scored by several judges. Which folders belong together is found out "
        "from the captions",
    )
    command.add_argument(
        "--tasks", metavar="NAMES", help="tasks and groups to look at, separated by commas"
    )
    command.add_argument(
        "--reference",
        metavar="JUDGE",
        help="the judge that the others are compared with; by default that of the first folder",
    )
    command.add_argument(
        "--format",
        choices=["text", "markdown", "latex", "csv", "json"],
        default="text",
        help="default: text",
    )
    add_output(command)
    command.set_defaults(run=_agree)


def _agree(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.agree.agree import agree
    from lmms_eval_captions.analysis.agree.data import as_csv, as_json
    from lmms_eval_captions.analysis.agree.tables import report

    folders = [folder.expanduser() for folder in arguments.folders]
    findings = agree(folders, tasks=arguments.tasks, reference=arguments.reference)
    writers = {"json": as_json, "csv": as_csv}
    writer = writers.get(arguments.format)
    text = report(findings, arguments.format) if writer is None else writer(findings)
    write_output(text, arguments.output)
    return 0
