"""The command ``agree``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import add_command, add_format, add_tasks, write_output

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_agree(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "agree",
        _agree,
        help="how far judges of the same captions agree, who is more lenient, what they cost",
        description="Compares judges on captions that are the same word for word: Cohen's kappa, "
        "Gwet's AC1 and Krippendorff's alpha with intervals over videos, confusion tables, "
        "leniency by group, slope over caption length, ranks of the captioners, dollars; first a "
        "sentence per judge. With one folder, the judge's runs are compared. Asks no judge.",
        example="lmms-eval-captions agree results/gpt-4o results/qwen3 --tasks vdc_score",
    )
    command.add_argument(
        "folders",
        type=Path,
        nargs="+",
        metavar="FOLDER",
        help="results folders with the same captions, of one captioner or several, each scored by "
        "several judges, the judge to compare with first; which belong together is found from the "
        "captions",
    )
    add_tasks(command)
    add_format(command, "text", "markdown", "latex", "json")


def _agree(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.agree import report
    from lmms_eval_captions.analysis.agree.agreement import agree
    from lmms_eval_captions.analysis.tables import as_json, render

    folders = [folder.expanduser() for folder in arguments.folders]
    several = agree(folders, tasks=arguments.tasks)
    if arguments.format == "json":
        text = as_json(report.documents(several))
    else:
        parts = [part for found in several for part in report.parts_of(found)]
        text = render(parts, arguments.format)
    write_output(text, arguments.output)
    return 0
